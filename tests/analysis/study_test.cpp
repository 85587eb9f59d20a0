#include "analysis/study.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "analysis/fields.h"
#include "analysis/report.h"

namespace gradwire {

namespace {

Scenario tiny() {
  Scenario s;
  s.platform = "star-1g";
  s.dataset = "synthetic:20x3";
  s.model.name = "mlp:20-8-3";
  s.batch_size = 4;
  s.batches = 2;
  return s;
}

std::vector<Scenario> four() {
  std::vector<Scenario> all;
  for (const double bandwidth : {1e8, 1e9})
    for (const char* algorithm : {"dsgd", "dsgd:exchange=tree"}) {
      all.push_back(tiny());
      all.back().bandwidth_bit_per_s = bandwidth;
      all.back().algorithm = parse_algorithm_spec(algorithm);
    }
  return all;
}

std::string report_text(const Study& study) { return dump(report_json(study, {}, {})); }

}  // namespace

TEST_CASE("the mathematics runs once per algorithm, and every result stands in its place") {
  int runs = 0;
  const auto scenarios = four();
  const Study study =
      run_study(scenarios, {.progress = [&](const std::string&, double) { ++runs; }});
  CHECK(runs == 2);
  REQUIRE(study.results.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(study.results[i].scenario.algorithm.text() == scenarios[i].algorithm.text());
    CHECK(study.results[i].scenario.bandwidth_bit_per_s == scenarios[i].bandwidth_bit_per_s);
  }
  CHECK(study.results[0].loss == study.results[2].loss);
  CHECK(study.results[0].batch_time_s.mean > study.results[2].batch_time_s.mean);
  CHECK(study.dataset.synthetic);
  CHECK(study.model.parameters == 20 * 8 + 8 + 8 * 3 + 3);
}

TEST_CASE("a study's result is what simulating its scenario alone gives") {
  const auto scenarios = four();
  const Study study = run_study(scenarios, {});
  const Dataset dataset = load_dataset(scenarios[3].dataset, scenarios[3].seed);
  const Result alone = simulate(scenarios[3], dataset);
  CHECK(study.results[3].batch_time_s.samples == alone.batch_time_s.samples);
  CHECK(study.results[3].parameter_hash == alone.parameter_hash);
  CHECK(study.results[3].loss == alone.loss);
}

TEST_CASE("results do not depend on the number of jobs") {
  CHECK(report_text(run_study(four(), {.jobs = 1})) == report_text(run_study(four(), {.jobs = 3})));
}

TEST_CASE("a bad scenario at the end of the list is found before any mathematics") {
  const std::vector<std::pair<std::string, std::string>> faults{
      {"algorithm", "no-such-algorithm"}, {"algorithm", "dsgd:no-such-option=1"},
      {"platform", "no-such-platform"},   {"workers", "1000000"},
      {"hosts", "no-such-host"},          {"network-model", "no-such-model"},
      {"model", "no-such-model"},         {"model", "mlp:21-3"},
      {"dataset", "no-such-dataset"},     {"optimizer", "no-such-optimizer"},
      {"batch-size", "1000000"}};
  for (const auto& [key, value] : faults) {
    CAPTURE(key, value);
    auto scenarios = four();
    find_field(key).set(scenarios.back(), value);
    int runs = 0;
    CHECK_THROWS_AS(run_study(scenarios, {.progress = [&](const std::string&, double) { ++runs; }}),
                    std::invalid_argument);
    CHECK(runs == 0);
  }
}

TEST_CASE("the timeline of the first scenario ends with its last batch") {
  const Study study = run_study({tiny()}, {.keep_timeline = true});
  REQUIRE(study.timeline.size() == 2);
  double end_s = 0;
  for (const auto& worker : study.timeline)
    for (const Span& span : worker) end_s = std::max(end_s, span.end_s);
  const Result& r = study.results[0];
  CHECK(end_s == Approx(r.setup_time_s + 2 * r.batch_time_s.mean).epsilon(1e-12));
}

}  // namespace gradwire
