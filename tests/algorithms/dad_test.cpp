// dAD against the exact mean gradient, and its traffic against the formulas of dad.cpp.
#include <catch2/catch.hpp>

#include "tests/algorithms/training_runs.h"

using namespace gradwire;

namespace {

constexpr std::int64_t kWord = sizeof(Scalar);
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kBlocks = kRows * (7 + 5 + 5 + 3) * kWord;  // u of mlp:7-5-3
constexpr std::int64_t kGradients = (7 * 5 + 5 + 5 * 3 + 3) * kWord;

}  // namespace

TEST_CASE("dAD applies the exact mean gradient by every exchange") {
  const std::string options =
      GENERATE(as<std::string>{}, "exchange=allgather", "exchange=star", "exchange=star-reduced",
               "exchange=allgather,overlap=off", "exchange=star-reduced,overlap=off");
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(options, workers);
  const TrainingRun run = run_training("dad:" + options, workers);
  CHECK(gradient_error(run) < 1e-6);
  CHECK(replicas_equal(run));
  CHECK(relative_difference(run.parameters(), run_training("dsgd", workers).parameters()) < 1e-6);
}

TEST_CASE("dAD is exact without biases") {
  Scenario scenario = small_scenario("dad", 3);
  scenario.model.bias = false;
  CHECK(gradient_error(run_training(scenario)) < 1e-6);
  scenario.algorithm = parse_algorithm_spec("dad:exchange=star-reduced");
  CHECK(gradient_error(run_training(scenario)) < 1e-6);
}

TEST_CASE("dAD with N workers of batch B trains like one worker of batch NB") {
  Scenario one = small_scenario("dad", 1);
  one.batch_size = 20;
  CHECK(relative_difference(run_training("dad", 5).parameters(), run_training(one).parameters()) <
        1e-6);
}

TEST_CASE("The authors' scale makes dAD's gradient N times as large") {
  const TrainingRun mean = run_training("dad", 3);
  const TrainingRun authors = run_training("dad:authors-scale=on", 3);
  Gradients expected = mean.steps[0][0].applied;
  for (Matrix& m : expected) m *= 3;
  CHECK(relative_difference(authors.steps[0][0].applied, expected) < 1e-6);
}

TEST_CASE("dAD sends what its header says") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(workers);
  const std::int64_t peers = workers - 1;
  const TrainingRun gathered = run_training("dad", workers);
  const TrainingRun star = run_training("dad:exchange=star", workers);
  const TrainingRun reduced = run_training("dad:exchange=star-reduced", workers);
  for (std::size_t w = 0; w < gathered.steps.size(); ++w) {
    CHECK(gathered.sent(w).messages_sent == 2 * peers);
    CHECK(gathered.sent(w).bytes_sent == peers * kBlocks);
    CHECK(star.sent(w).messages_sent == (w == 0 ? 2 * peers : 2));
    CHECK(star.sent(w).bytes_sent == (w == 0 ? peers * workers * kBlocks : kBlocks));
    CHECK(reduced.sent(w).messages_sent == (w == 0 ? peers : 2));
    CHECK(reduced.sent(w).bytes_sent == (w == 0 ? peers * kGradients : kBlocks));
  }
}

TEST_CASE("dAD charges every worker with the gradients of the whole global batch") {
  const auto gradient_flops = [](const std::string& algorithm, std::size_t worker) {
    const Scenario scenario = small_scenario(algorithm, 3);
    const Rehearsal rehearsal = rehearse(scenario, small_dataset(scenario));
    double flops = 0;
    const LaneRecording& lane = rehearsal.recording.workers[worker].lanes[0];
    for (const Event& event : lane.events)
      if (event.kind == Event::Kind::kCharge) flops += lane.charges[event.value].work.flops;
    return flops / static_cast<double>(scenario.batches);
  };
  // 3 workers of 4 rows instead of 4 rows: 8 rows more of weight and bias gradients
  const double more = 8 * (2 * (7 * 5 + 5 * 3) + 5 + 3);
  CHECK(gradient_flops("dad", 1) - gradient_flops("dsgd", 1) == Approx(more).epsilon(1e-9));
  CHECK(gradient_flops("dad:exchange=star-reduced", 0) == Approx(gradient_flops("dad", 0)));
  CHECK(gradient_flops("dad", 1) - gradient_flops("dad:exchange=star-reduced", 1) ==
        Approx(12.0 / 8 * more).epsilon(1e-9));
}
