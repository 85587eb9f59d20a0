// Simulated messages per second: a recording of one all-reduce of 1 MiB per worker, replayed on a
// star, folded and exactly (call by call through SimGrid); `bare` is the same traffic written
// directly against SimGrid, for what our own layer costs.  Then the points of a sweep per second.
//
// Elsewhere, as measured by us on two cores or as published: ASTRA-sim's analytical network 1.2 to
// 1.5 million messages/s, LogGOPSim 0.7 to 1.3 million (1 million in Hoefler et al., HPDC 2010).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <simgrid/s4u.hpp>

#include "algorithms/collectives.h"
#include "algorithms/dry_run.h"
#include "analysis/parallel.h"
#include "sim/child.h"
#include "sim/platform.h"
#include "sim/simulate.h"
#include "tests/sim/platform_file.h"

namespace gradwire {
namespace {

constexpr std::size_t kEqual = 262144;    // Scalars: 1 MiB
constexpr std::size_t kUnequal = 262147;  // not a multiple of the workers

Recording record(const std::string& all_reduce, int workers, std::size_t scalars) {
  Recording recording;
  for (int rank = 0; rank < workers; ++rank)
    recording.workers.push_back(record_dry(rank, workers, [&](Communicator& comm) {
      find_all_reduce(all_reduce)(comm, absent<Scalar>(scalars), Wire::kFp32);
      comm.end_step();
    }));
  return recording;
}

// A star like star-10g with as many hosts as it takes.
PlatformFile star(int workers) {
  return PlatformFile(platform_xml(
      "<cluster id=\"star\" prefix=\"node-\" suffix=\"\" radical=\"0-" +
      std::to_string(workers - 1) +
      "\" speed=\"50Gf\" bw=\"10Gbps\" lat=\"10us\" sharing_policy=\"SPLITDUPLEX\"/>"));
}

// Exact simulations run in a child process, folded ones here.
double cpu_s() {
  double sum_s = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      sum_s += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  }
  return sum_s;
}

void report(benchmark::State& state, double messages, double start_s) {
  state.counters["messages/cpu_s"] = messages / (cpu_s() - start_s);
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
}

void replayed(benchmark::State& state, const std::string& all_reduce, bool exact,
              std::size_t scalars = kEqual) {
  const auto workers = static_cast<int>(state.range(0));
  const Recording recording = record(all_reduce, workers, scalars);
  const PlatformFile file = star(workers);
  Scenario scenario = file.scenario(workers);
  scenario.exact_replay = exact;
  double messages = 0;
  const double start_s = cpu_s();
  for (auto _ : state)
    for (const auto& steps : replay(scenario, recording).steps_by_worker)
      messages += static_cast<double>(steps.back().traffic.messages_sent);
  report(state, messages, start_s);
}

// Points of a sweep: replays of two recorded batches, two at a time.
void points(benchmark::State& state, const std::string& platform, const std::string& algorithm) {
  Scenario scenario;
  scenario.platform = platform;
  scenario.workers = static_cast<int>(state.range(0));
  scenario.algorithm = parse_algorithm_spec(algorithm);
  scenario.model.name = "mlp:64-64-32-10";
  scenario.dataset = "synthetic:64x10";
  scenario.batch_size = 8;
  scenario.batches = 2;
  const Rehearsal rehearsal = rehearse(scenario, load_dataset(scenario.dataset, scenario.seed));
  constexpr std::size_t kPoints = 100;
  const double start_s = cpu_s();
  for (auto _ : state) {
    Replayer replayer(rehearsal.recording);
    parallel_for(kPoints, 2, [&](std::size_t i) {
      Scenario point = scenario;
      point.bandwidth_bit_per_s = 1e8 * static_cast<double>(i + 1);
      benchmark::DoNotOptimize(replayer.replay(point));
    });
  }
  const auto all = static_cast<double>(kPoints) * static_cast<double>(state.iterations());
  state.counters["points/cpu_s"] = all / (cpu_s() - start_s);
  state.counters["points/s"] = benchmark::Counter(all, benchmark::Counter::kIsRate);
}

// Ring: everyone sends 2(N-1) times to the right and receives from the left.
void bare_ring(benchmark::State& state) {
  namespace s4u = simgrid::s4u;
  const auto workers = static_cast<int>(state.range(0));
  const std::string path = find_platform("star-10g");
  double messages = 0;
  const double start_s = cpu_s();
  for (auto _ : state) {
    run_in_child([&](Child&) {
      s4u::Engine engine("bare");
      s4u::Engine::set_config("network/model:CM02");
      s4u::Engine::set_config("network/crosstraffic:0");
      engine.load_platform(path);
      for (int rank = 0; rank < workers; ++rank)
        s4u::Actor::create("worker", engine.host_by_name("node-" + std::to_string(rank)), [=] {
          auto* right = s4u::Mailbox::by_name(std::to_string((rank + 1) % workers));
          auto* mine = s4u::Mailbox::by_name(std::to_string(rank));
          int payload = 0;
          for (int step = 0; step < 2 * (workers - 1); ++step) {
            int* received = nullptr;
            auto receive = mine->get_async(&received);
            right->put_async(&payload, 64)->wait();
            receive->wait();
          }
        });
      engine.run();
      return std::string("done");
    });
    messages += 2.0 * workers * (workers - 1);
  }
  report(state, messages, start_s);
}

constexpr auto kUnit = benchmark::kMillisecond;
#define GRADWIRE_REPLAYS(name, all_reduce, exact) \
  BENCHMARK_CAPTURE(replayed, name, std::string(all_reduce), exact)->Unit(kUnit)->UseRealTime()
GRADWIRE_REPLAYS(ring, "ring", false)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096)->Iterations(1);
BENCHMARK_CAPTURE(replayed, ring_unequal, std::string("ring"), false, kUnequal)
    ->Unit(kUnit)
    ->UseRealTime()
    ->Arg(1024)
    ->Arg(4096)
    ->Iterations(1);
GRADWIRE_REPLAYS(ring_exact, "ring", true)->Arg(64)->Arg(256)->Iterations(1);
GRADWIRE_REPLAYS(halving_doubling, "halving-doubling", false)->Arg(64)->Arg(1024)->Arg(4096);
GRADWIRE_REPLAYS(halving_doubling_exact, "halving-doubling", true)->Arg(64)->Arg(1024);
GRADWIRE_REPLAYS(tree, "tree", false)->Arg(64)->Arg(1024);
GRADWIRE_REPLAYS(tree_exact, "tree", true)->Arg(64)->Arg(1024);
BENCHMARK(bare_ring)->Arg(64)->Arg(256)->Unit(kUnit)->UseRealTime()->Iterations(1);
#define GRADWIRE_POINTS(name, platform, algorithm)                               \
  BENCHMARK_CAPTURE(points, name, std::string(platform), std::string(algorithm)) \
      ->Unit(kUnit)                                                              \
      ->UseRealTime()                                                            \
      ->Iterations(1)
GRADWIRE_POINTS(star_ring, "star-1g", "dsgd")->Arg(8)->Arg(16)->Arg(64);
GRADWIRE_POINTS(star_rank_dad, "star-1g", "rank-dad")->Arg(8)->Arg(64);
GRADWIRE_POINTS(fat_tree_ring, "fat-tree-64", "dsgd")->Arg(64);
GRADWIRE_POINTS(fat_tree_rank_dad, "fat-tree-64", "rank-dad")->Arg(64);
GRADWIRE_POINTS(backbone_ring, "shared-backbone", "dsgd")->Arg(64);

}  // namespace
}  // namespace gradwire

BENCHMARK_MAIN();
