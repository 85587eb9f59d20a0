// One loading of a platform for many scenarios.
#include "sim/platform_facts.h"

#include <catch2/catch.hpp>
#include <optional>

#include "algorithms/dry_run.h"
#include "platform_file.h"
#include "sim/simulate.h"

namespace gradwire {
namespace {

// Everyone sends `bytes` to the next, as many workers to a host as the scenario says.
Recording shift(int workers, std::size_t bytes) {
  Recording recording;
  for (int rank = 0; rank < workers; ++rank)
    recording.workers.push_back(record_dry(rank, workers, [&](Communicator& comm) {
      const Request sent = comm.isend((rank + 1) % workers, absent<std::byte>(bytes));
      comm.recv((rank + workers - 1) % workers, absent<std::byte>(bytes));
      comm.wait(sent);
      comm.end_step();
    }));
  return recording;
}

struct Override {
  std::optional<double> bandwidth_bit_per_s, latency_s;
};
const std::vector<Override> kOverrides{{}, {1e8, {}}, {{}, 1e-3}, {5e9, 2e-6}, {1e8, 1e-3}};

TEST_CASE("scenarios that share one loading of a platform equal those that load it themselves") {
  const PlatformFile star(star_xml());
  const PlatformFile backbone(star_xml(R"(bb_bw="150MBps" bb_lat="10us")"));
  for (const PlatformFile* file : {&star, &backbone})
    for (const int per_host : {1, 2}) {  // two: over the port, with a warning
      Scenario scenario = file->scenario(6);
      scenario.workers_per_host = per_host;
      const Recording recording = shift(6, 1'000'000);
      Replayer replayer(recording);
      for (const Override& own : kOverrides) {
        scenario.bandwidth_bit_per_s = own.bandwidth_bit_per_s;
        scenario.latency_s = own.latency_s;
        const SimulatedRun shared = replayer.replay(scenario);
        const SimulatedRun alone = replay(scenario, recording);
        CHECK(shared.network == alone.network);
        CHECK(shared.warnings == alone.warnings);
        for (std::size_t w = 0; w < 6; ++w)
          CHECK(shared.steps_by_worker[w].back().time_s == alone.steps_by_worker[w].back().time_s);
      }
    }
}

TEST_CASE("constants and warnings of a folded replay are those of an exact one") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(6);
  scenario.workers_per_host = 2;
  const Recording recording = shift(6, 1000);
  Replayer replayer(recording);
  for (const Override& own : kOverrides) {
    scenario.bandwidth_bit_per_s = own.bandwidth_bit_per_s;
    scenario.latency_s = own.latency_s;
    scenario.exact_replay = false;
    SimulatedRun folded = replayer.replay(scenario);
    scenario.exact_replay = true;
    SimulatedRun exact = replayer.replay(scenario);
    REQUIRE(folded.network.back() == std::pair<std::string, std::string>("replay", "folded"));
    REQUIRE(exact.network.back() == std::pair<std::string, std::string>("replay", "exact"));
    folded.network.pop_back();
    exact.network.pop_back();
    CHECK(folded.network == exact.network);
    CHECK(folded.warnings == exact.warnings);
    REQUIRE(folded.warnings.size() == 1);
    CHECK_THAT(folded.warnings[0], Catch::Contains(own.latency_s == 1e-3 ? "1ms)" : "us)"));
  }
}

TEST_CASE("a platform is loaded once for all scenarios of a recording") {
  auto file = std::make_optional<PlatformFile>(star_xml());
  Scenario scenario = file->scenario(2);
  const Recording recording = shift(2, 1000);
  Replayer replayer(recording);
  const double first_s = replayer.replay(scenario).steps_by_worker[0].back().time_s;
  file.reset();  // deletes it
  scenario.bandwidth_bit_per_s = 1e9;
  CHECK(replayer.replay(scenario).steps_by_worker[0].back().time_s == first_s);
  CHECK_THROWS_AS(replay(scenario, recording), std::invalid_argument);
}

TEST_CASE("a bad rate is refused although its platform is loaded") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(2);
  const Recording recording = shift(2, 1000);
  Replayer replayer(recording);
  replayer.replay(scenario);
  scenario.bandwidth_bit_per_s = -1;
  CHECK_THROWS_WITH(replayer.replay(scenario), Catch::Contains("-1 bit/s is not above 0"));
}

TEST_CASE("one route of each kind has the extremes of all, whatever a scenario overrides") {
  RouteTable table;
  for (const double rate : {1e9, 1e9, 2e9, 4e9}) table.add_link({.bandwidth_byte_per_s = rate});
  table.add_link({.bandwidth_byte_per_s = 5e8, .latency_s = 1e-5});  // inside
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t to = 0; to < 4; ++to)
      if (from != to)
        table.add_route(from, to,
                        (from + to) % 2 == 1 ? std::vector<std::uint32_t>{from, 4, to}
                                             : std::vector<std::uint32_t>{from, to});
  RouteTable kinds = table.one_of_each_kind();
  CHECK(kinds.has_route(0, 1));
  CHECK_FALSE(kinds.has_route(1, 0));  // as 0 to 1
  for (const Override& own : kOverrides) {
    Scenario scenario;
    scenario.bandwidth_bit_per_s = own.bandwidth_bit_per_s;
    scenario.latency_s = own.latency_s;
    RouteTable all = table, some = kinds;
    all.override_ports(scenario);
    some.override_ports(scenario);
    CHECK(all.extremes().min_latency_s == some.extremes().min_latency_s);
    CHECK(all.extremes().max_latency_s == some.extremes().max_latency_s);
    CHECK(all.extremes().min_bandwidth_bit_per_s == some.extremes().min_bandwidth_bit_per_s);
    CHECK(all.extremes().max_bandwidth_bit_per_s == some.extremes().max_bandwidth_bit_per_s);
  }
}

}  // namespace
}  // namespace gradwire
