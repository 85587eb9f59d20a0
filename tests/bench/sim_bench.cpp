// Simulated messages per second: a recording of one all-reduce, replayed on star-10g.
// `bare` is the same traffic written directly against SimGrid, for what our own layer costs.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cmath>
#include <simgrid/s4u.hpp>

#include "algorithms/collectives.h"
#include "algorithms/in_process.h"
#include "sim/child.h"
#include "sim/platform.h"
#include "sim/simulate.h"

namespace gradwire {
namespace {

Recording record(const std::string& all_reduce, int workers) {
  Recording recording;
  run_in_process({.workers = workers, .recordings = &recording.workers}, [&](Communicator& comm) {
    std::vector<Scalar> values(static_cast<std::size_t>(16 * workers));
    find_all_reduce(all_reduce)(comm, values, Wire::kFp32);
    comm.end_step();
  });
  return recording;
}

Scenario scenario(int workers) {
  Scenario s;
  s.platform = "star-10g";
  s.workers = workers;
  s.compute.device_flop_per_s = INFINITY;
  return s;
}

// The simulation runs in a child process.
double children_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void report(benchmark::State& state, double messages, double start_s) {
  state.counters["messages/cpu_s"] = messages / (children_cpu_s() - start_s);
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
}

void replayed(benchmark::State& state, const std::string& all_reduce) {
  const auto workers = static_cast<int>(state.range(0));
  const Recording recording = record(all_reduce, workers);
  double messages = 0;
  const double start_s = children_cpu_s();
  for (auto _ : state)
    for (const auto& steps : replay(scenario(workers), recording).steps_by_worker)
      messages += static_cast<double>(steps.back().traffic.messages_sent);
  report(state, messages, start_s);
}

// Ring: everyone sends 2(N-1) times to the right and receives from the left.
void bare_ring(benchmark::State& state) {
  namespace s4u = simgrid::s4u;
  const auto workers = static_cast<int>(state.range(0));
  const std::string path = find_platform("star-10g");
  double messages = 0;
  const double start_s = children_cpu_s();
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
BENCHMARK_CAPTURE(replayed, ring, std::string("ring"))
    ->Arg(64)
    ->Arg(256)
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(replayed, halving_doubling, std::string("halving-doubling"))
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(replayed, tree, std::string("tree"))
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK(bare_ring)->Arg(64)->Arg(256)->Unit(kUnit)->UseRealTime();

}  // namespace
}  // namespace gradwire

BENCHMARK_MAIN();
