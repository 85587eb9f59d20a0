// The platform files of the folder behave as their README says.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/platform.h"
#include "sim/simulate.h"

namespace gradwire {
namespace {

Scenario on(const std::string& platform, int workers) {
  Scenario scenario;
  scenario.platform = platform;
  scenario.workers = workers;
  return scenario;
}

// Everyone sends `bytes` to the worker `distance` ranks further; when the last has arrived.
double shift_s(const Scenario& scenario, int distance, std::size_t bytes) {
  const SimulatedRun run = run_simulated(scenario, {}, [&](Communicator& comm) {
    const int n = comm.size();
    const Request received =
        comm.irecv((comm.rank() + n - distance) % n, {static_cast<std::byte*>(nullptr), bytes});
    comm.wait(
        comm.isend((comm.rank() + distance) % n, {static_cast<const std::byte*>(nullptr), bytes}));
    comm.wait(received);
    comm.end_step();
  });
  double end_s = 0;
  for (const auto& steps : run.steps_by_worker) end_s = std::max(end_s, steps.back().time_s);
  return end_s;
}

TEST_CASE("every platform of the folder is found by name and loads without a warning") {
  const std::vector<std::string> names = list_platforms();
  CHECK(names.size() >= 9);
  for (const std::string& name : names) {
    Scenario scenario = on(name, name == "hospital-wan" ? 32 : 64);
    scenario.workers_per_host = name == "two-level" ? 8 : 1;
    CAPTURE(name);
    CHECK(check_platform(scenario).warnings.empty());
  }
}

TEST_CASE("stars have the route latencies of the README") {
  for (const auto& [name, latency_s, bandwidth] :
       {std::tuple{"star-1g", 50e-6, 1e9}, std::tuple{"star-10g", 20e-6, 10e9},
        std::tuple{"star-100g", 15e-6, 100e9}}) {
    const PlatformInfo info = check_platform(on(name, 64));
    CHECK(info.min_route_latency_s == Approx(latency_s));
    CHECK(info.max_route_latency_s == Approx(latency_s));
    CHECK(info.min_route_bandwidth_bit_per_s == Approx(bandwidth));
  }
}

TEST_CASE("the fat tree has full bisection") {
  // Whoever the partner is, 1.25 MB cross at 10 Gbit/s in 1 ms.
  for (const int distance : {1, 8, 13, 32})
    CHECK(shift_s(on("fat-tree-64", 64), distance, 1'250'000) ==
          Approx(1e-3 + 20e-6).epsilon(1e-6));
}

TEST_CASE("the shared backbone is a tenth of what 64 ports could send") {
  // 64 x 1.25 MB through 10 Gbit/s.
  CHECK(shift_s(on("shared-backbone", 64), 1, 1'250'000) == Approx(64e-3 + 48e-6).epsilon(1e-6));
}

TEST_CASE("a hospital sends five times slower than it receives") {
  // Pairwise exchange of 1 MB: the uplink of 20 Mbit/s rules.
  CHECK(shift_s(on("hospital-wan", 8), 4, 1'000'000) == Approx(0.4 + 0.02));
}

TEST_CASE("traffic between the two sites shares their line") {
  Scenario scenario = on("two-site-wan", 8);
  scenario.hosts = "*-[0-3]";
  // 4 x 1 MB in each direction through 1 Gbit/s.
  CHECK(shift_s(scenario, 4, 1'000'000) == Approx(0.032 + 0.01002));
}

TEST_CASE("neighbours on the torus do not disturb each other") {
  // Along the first dimension everyone's right neighbour is one hop away, except at the row's end.
  CHECK(shift_s(on("torus", 64), 16, 12'500'000) == Approx(1e-3 + 1e-6).epsilon(1e-6));
}

TEST_CASE("the workers of a node share its port, and not their NVLink") {
  Scenario scenario = on("two-level", 16);
  scenario.workers_per_host = 8;
  CHECK(shift_s(scenario, 8, 50'000'000) == Approx(8e-3 + 20e-6));  // 8 x 1 ms
  scenario.workers = 8;
  CHECK(shift_s(scenario, 1, 300'000'000) == Approx(1e-3 + 1e-6));
}

}  // namespace
}  // namespace gradwire
