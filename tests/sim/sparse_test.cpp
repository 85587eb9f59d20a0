// Sparse exchanges in simulation: empty selections, and the timeline of overlapped ones.
#include <catch2/catch.hpp>
#include <map>

#include "algorithms/bucket_plan.h"
#include "platform_file.h"
#include "sim/simulate.h"
#include "tests/algorithms/training_runs.h"

namespace gradwire {
namespace {

constexpr double kLatencyS = 50e-6;
constexpr double kBytePerS = 1e9 / 8;

Scenario on_star(const PlatformFile& platform, const std::string& spec, int workers) {
  Scenario s = small_scenario(spec, workers, "mlp:40-60-30-5");
  s.platform = platform.path();
  s.gradient_error = false;
  s.compute.device_flop_per_s = 1e9;
  return s;
}

// Seconds of a lane's charges, by job: cut at every event of that kind.  Starts after the first
// step, which is the broadcast of the parameters, and ends with the second.
std::vector<double> charged_s(const LaneRecording& lane, Event::Kind cut, bool main_lane,
                              double flop_per_s) {
  std::vector<double> seconds(1);
  int steps = main_lane ? 0 : 1;
  for (const Event& event : lane.events) {
    if (event.kind == Event::Kind::kStep) ++steps;
    if (steps != 1) continue;
    if (event.kind == cut) seconds.push_back(0);
    if (event.kind == Event::Kind::kCharge)
      seconds.back() += lane.charges[event.value].work.flops / flop_per_s;
  }
  return seconds;
}

TEST_CASE("a selection that picks nothing sends its sizes and changes nothing") {
  const PlatformFile star(star_xml());
  for (const std::string spec :
       {"threshold:threshold=1e30", "threshold:threshold=1e30,exchange=union"}) {
    CAPTURE(spec);
    const Scenario scenario = on_star(star, spec, 3);
    const Result result = simulate(scenario, small_dataset(scenario));
    CHECK(result.bytes_sent_by_worker == std::vector<double>(3, 2 * 8));
    CHECK(result.metrics.at("density") == std::vector<double>(3, 0));
    CHECK(result.replicas_equal);
  }
}

const std::vector<std::string> kAtTheEdges{"threshold:threshold=0.05,index=delta",
                                           "threshold:threshold=0.05,exchange=union",
                                           "gaussian-k:density=0.05,index=smallest",
                                           "top-k:density=1,scope=tensor,index=bitmap",
                                           "random-block:density=0.9",
                                           "gtop-k:density=0.9",
                                           "dgc:density=1e-9",
                                           "lags:density=1e-9",
                                           "micro:density=1e-9",
                                           "exdyna:density=0.9",
                                           "deft:density=0.9",
                                           "crossover:segments=3,group=2"};

TEST_CASE("ragged, tiny and nearly full selections keep five replicas equal in simulation") {
  const PlatformFile star(star_xml());
  for (const std::string& spec : kAtTheEdges) {
    CAPTURE(spec);
    const Scenario scenario = on_star(star, spec, 5);
    const Result result = simulate(scenario, small_dataset(scenario));
    CHECK(result.replicas_equal == find_algorithm(scenario.algorithm.name).consensus);
    CHECK(result.batch_time_s.min > 0);
  }
}

TEST_CASE("all-zero gradients leave every parameter as it was in simulation") {
  const PlatformFile star(star_xml());
  for (const std::string& spec : kAtTheEdges) {
    CAPTURE(spec);
    Scenario scenario = on_star(star, spec, 3);
    scenario.model.name = "mlp:40-60-30-1";  // a single class is always right
    const Dataset dataset = single_class(small_dataset(scenario));
    const Result result = simulate(scenario, dataset);
    Scenario shorter = scenario;
    shorter.batches = 1;
    CHECK(result.loss == std::vector<double>(3, 0));
    CHECK(result.parameter_hash == simulate(shorter, dataset).parameter_hash);
  }
}

TEST_CASE("a step of LAGS or OMGS ends when the recurrence of its buckets says") {
  const PlatformFile star(star_xml());
  const std::map<std::string, std::size_t> buckets_of{{"lags:density=0.05", 3},
                                                      {"lags:density=0.9", 3},
                                                      {"omgs:density=0.9,latency-s=0", 2},
                                                      {"omgs:density=0.05,latency-s=1", 1}};
  for (const auto& [spec, buckets] : buckets_of) {
    CAPTURE(spec);
    Scenario scenario = on_star(star, spec, 2);
    scenario.batches = 1;
    const Rehearsal rehearsal = rehearse(scenario, small_dataset(scenario));
    const auto& lanes = rehearsal.recording.workers[0].lanes;
    const double rate = scenario.compute.device_flop_per_s;
    // Processor: everything before each start, then what follows the last one.  Link, per job: an
    // 8-byte size and the list, each a latency and its bytes, and what the lane computes.
    std::vector<double> processor = charged_s(lanes[0], Event::Kind::kStart, true, rate);
    const double after = processor.back();
    processor.pop_back();
    const std::vector<double> lane = charged_s(lanes[1], Event::Kind::kJobEnd, false, rate);
    std::vector<double> job;
    for (const Event& event : lanes[1].events) {
      if (event.kind == Event::Kind::kJobEnd || job.empty()) job.push_back(0);
      if (event.kind == Event::Kind::kSend)
        job.back() += kLatencyS + static_cast<double>(event.value) / kBytePerS;
    }
    REQUIRE(processor.size() == buckets);
    std::vector<LayerTime> layers;
    for (std::size_t b = 0; b < processor.size(); ++b) layers.push_back({b, processor[b]});
    const double exchanged_s = predicted_end_s(
        layers, BucketPlan(layers.size(), 1),
        {.select_s = [](std::size_t) { return 0.0; },
         .exchange_s = [&](std::size_t bucket) { return job[bucket] + lane[bucket]; }});

    const SimulatedRun run = replay(scenario, rehearsal.recording);
    const auto& steps = run.steps_by_worker[0];
    // apply() and the scattering of the sums come after the last exchange.
    const double main_s = steps[1].time_s - steps[0].time_s;
    CHECK(main_s == Approx(exchanged_s + after).epsilon(1e-9));
  }
}

}  // namespace
}  // namespace gradwire
