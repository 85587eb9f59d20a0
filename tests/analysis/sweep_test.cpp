#include "analysis/sweep.h"

#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>

#include "analysis/sweep_plan.h"
#include "tests/scratch.h"

namespace gradwire {

namespace {

Sweep sweep_of(const std::string& text) {
  return load_sweep(ScratchFile("s.json", text).path(), Grid());
}

void check_refused(const std::string& text, const std::string& message) {
  CAPTURE(text);
  CHECK_THROWS_AS(sweep_of(text), std::invalid_argument);
  CHECK_THROWS_WITH(sweep_of(text), Catch::Contains("s.json: ") && Catch::Contains(message));
}

}  // namespace

TEST_CASE("in a sweep every field may be a list") {
  const Sweep sweep = sweep_of(R"({"platform": ["star-1g", "star-10g"], "workers": [2, 4],
      "device-rate": ["10Gf", "20Gf"], "batch-size": [8, 16], "model": ["mnistnet", "mlp:784-10"]})");
  CHECK(sweep.size() == 32);
  CHECK(sweep.point(0).platform == "star-1g");
  CHECK(sweep.point(31).platform == "star-10g");
  CHECK(sweep.point(31).compute.device_flop_per_s == 20e9);
  CHECK(sweep.point(31).batch_size == 16);
}

TEST_CASE("strong scaling shares the global batch out, weak scaling keeps the worker's") {
  const Sweep strong =
      sweep_of(R"({"platform": "star-1g", "workers": [1, 2, 8], "global-batch-size": 64})");
  CHECK(strong.point(0).batch_size == 64);
  CHECK(strong.point(1).batch_size == 32);
  CHECK(strong.point(2).batch_size == 8);
  CHECK(strong.reference(strong.point(2)).batch_size == 64);
  const Sweep weak = sweep_of(R"({"platform": "star-1g", "workers": [1, 8], "batch-size": 16})");
  CHECK(weak.point(1).batch_size == 16);
  CHECK(weak.reference(weak.point(1)).batch_size == 16);
  CHECK(weak.reference(weak.point(1)).workers == 1);
}

TEST_CASE("a sweep's echo is the same sweep") {
  const Sweep sweep = sweep_of(
      R"({"platform": "star-1g", "workers": [2, 4], "global-batch-size": 64, "crossovers": false,
          "bandwidth": {"from": "1Gbps", "to": "10Gbps", "points": 3, "spacing": "log"}})");
  const Sweep again = parse_sweep(sweep.echo());
  CHECK(again.echo() == sweep.echo());
  CHECK(again.global_batch_size == 64);
  CHECK_FALSE(again.crossovers);
  CHECK(sweep_identity(again) == sweep_identity(sweep));
}

TEST_CASE("what the command line sets overrides a sweep's file") {
  Grid fields(Grid::Lists::kEverywhere);
  fields.set(find_field("workers"), {"2", "3"});
  const ScratchFile file("s.json", R"({"platform": "star-1g", "workers": [16, 32, 64]})");
  const Sweep sweep = load_sweep(file.path(), fields);
  CHECK(sweep.size() == 2);
  CHECK(sweep.point(1).workers == 3);
}

TEST_CASE("a sweep's identity changes with its scenario and with the text of its platform") {
  const ScratchFile platform("net.xml", "<!-- one -->");
  const std::string scenario = R"({"platform": ")" + platform.path() + R"("})";
  const auto before = sweep_identity(sweep_of(scenario));
  std::ofstream(platform.path()) << "<!-- another -->";
  const auto after = sweep_identity(sweep_of(scenario));
  CHECK(before["hash"] != after["hash"]);
  CHECK(before["scenario"] == after["scenario"]);
}

TEST_CASE("a bad sweep file is refused, naming the file and the key") {
  check_refused(R"({"platform": "star-1g", "workers": []})", "workers: no value");
  check_refused(R"({"platform": "star-1g", "worker": 2})",
                "unknown key worker; did you mean workers?");
  check_refused(R"({"platform": "star-1g", "global-batchsize": 2})",
                "did you mean global-batch-size?");
  check_refused(R"({"platform": "star-1g", "workers": [2, 2]})", "2 is listed twice");
  check_refused(R"({"platform": "star-1g", "global-batch-size": 8, "batch-size": 4})",
                "exclude each other");
  check_refused(R"({"platform": "star-1g", "global-batch-size": 8, "workers": [2, 3]})",
                "8 examples cannot be shared out equally to 3 workers");
  check_refused(R"({"platform": "star-1g", "global-batch-size": [8, 16]})", "takes one value");
  check_refused(R"({"platform": "star-1g", "crossovers": 3})", "is not true or false");
  check_refused(R"({"platform": "star-1g", "bandwidth": "50us"})", "bandwidth: \"50us\" is not");
  check_refused(R"({"workers": 2})", "no platform");
  check_refused("[1]", "is not a JSON object");
  check_refused(R"({"platform": "star-1g", "platform": "star-10g"})", "has \"platform\" twice");
}

TEST_CASE("a plan has each point once, with those of its mathematics") {
  const SweepPlan plan(sweep_of(R"({"platform": "star-1g", "workers": [2, 4],
      "bandwidth": ["1Gbps", "100Mbps"], "latency": ["1us", "2us"], "algorithm": ["dsgd", "dad", "edad"]})"));
  REQUIRE(plan.families.size() == 3);  // two worker counts and the single worker
  std::set<std::uint64_t> seen;
  for (const SweepFamily& family : plan.families)
    for (const SweepGroup& group : family.groups)
      for (const std::uint64_t point : group.points) CHECK(seen.insert(point).second);
  CHECK(seen.size() == plan.size());
  CHECK(plan.size() == 24 + 1);
  CHECK(plan.families[0].groups.size() == 3);
  CHECK(plan.families[0].groups[0].points.size() == 4);
  CHECK(plan.families[0].pairs.size() == 3 * 2);          // pairs of algorithms, latencies
  for (const SweepPair& pair : plan.families[0].pairs) {  // along the bandwidth
    CHECK(plan.scenario(pair.by_bandwidth[0][0]).bandwidth_bit_per_s == 1e8);
    CHECK(plan.scenario(pair.by_bandwidth[1][1]).bandwidth_bit_per_s == 1e9);
    CHECK(plan.scenario(pair.by_bandwidth[0][0]).latency_s ==
          plan.scenario(pair.by_bandwidth[1][0]).latency_s);
  }
}

TEST_CASE("no two algorithms cross over on one bandwidth or on the platform's own") {
  const auto pairs = [](const std::string& bandwidth) {
    return SweepPlan(
               sweep_of(R"({"platform": "star-1g", "algorithm": ["dsgd", "dad"], "bandwidth": )" +
                        bandwidth + "}"))
        .families[0]
        .pairs.size();
  };
  CHECK(pairs(R"(["platform", "1Gbps"])") == 0);
  CHECK(pairs(R"("1Gbps")") == 0);
  CHECK(pairs(R"(["platform", "1Gbps", "2Gbps"])") == 1);
}

}  // namespace gradwire
