#include "analysis/validate.h"

#include <catch2/catch.hpp>
#include <set>

using namespace gradwire;
using Catch::Matchers::Contains;

namespace {

ValidationCase make_case(const std::string& algorithm, std::vector<double> measured_s,
                         std::vector<double> predicted_s) {
  ValidationCase one{
      .scenario = {}, .measured_s = std::move(measured_s), .predicted_s = std::move(predicted_s)};
  one.scenario.algorithm = parse_algorithm_spec(algorithm);
  one.scenario.bandwidth_bit_per_s = 1e8;
  one.scenario.latency_s = 0;
  return one;
}

}  // namespace

TEST_CASE("A verdict compares medians and widens the predicted interval", "[validate]") {
  const Verdict v = judge(make_case("dsgd", {1, 2, 9}, {1.6, 1.8, 1.7}), 0.1);
  CHECK(v.measured_s == 2);
  CHECK(v.predicted_s == 1.7);
  CHECK(v.relative_error == Approx(-0.15));
  CHECK(v.least_s == Approx(1.6 / 1.1));
  CHECK(v.most_s == Approx(1.8 * 1.1));
  CHECK(v.outside);  // 2 > 1.98
}

TEST_CASE("Errors are summed up by median, 90th percentile and maximum", "[validate]") {
  std::vector<ValidationCase> cases;
  for (int i = 0; i <= 10; ++i) {  // errors 0 %, 1 %, ... 10 %
    cases.push_back(make_case("dsgd", {1}, {1 + 0.01 * i}));
    cases.back().scenario.workers = 2 + i;
  }
  const ValidationSummary s = summarize(cases, 0.051);
  CHECK(s.cases == 11);
  CHECK(s.median_error == Approx(0.05));
  CHECK(s.p90_error == Approx(0.09));
  CHECK(s.max_error == Approx(0.10));
  CHECK(s.outside.size() == 5);  // 6 % and more
  CHECK(s.cells == 0);           // one algorithm each
}

TEST_CASE("Only algorithms that clearly differ must be in order", "[validate]") {
  const auto dsgd = make_case("dsgd", {1.0}, {1.0});
  CHECK(summarize({dsgd, make_case("dad", {1.04}, {0.9})}, 0).cells == 0);
  CHECK(summarize({dsgd, make_case("dad", {1.2}, {1.1})}, 0).wrong_orders.empty());
  const ValidationSummary s = summarize({dsgd, make_case("dad", {1.2}, {0.9})}, 0);
  CHECK(s.cells == 1);
  REQUIRE(s.wrong_orders.size() == 1);
  CHECK(s.wrong_orders[0].faster == "dsgd");
  CHECK(s.wrong_orders[0].slower == "dad");
}

TEST_CASE("Results are read back, without the line that an interruption cut", "[validate]") {
  const std::string header = results_header("calibration");
  const ValidationRun run{.key = "a", .round = 1, .measured_s = {0.1}, .predicted_s = {0.25, 3}};
  const auto runs = parse_lines(header + to_line(run) + "{\"case\": \"b", header);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].key == "a");
  CHECK(runs[0].round == 1);
  CHECK(runs[0].predicted_s == run.predicted_s);
  CHECK(parse_lines("", header).empty());
}

TEST_CASE("The table has the measured spread and the prediction's interval", "[validate]") {
  const std::string table = validation_table({make_case("dsgd", {1, 3, 4}, {2, 2})}, 0.25);
  for (const char* time : {"1.00 s", "3.00 s", "4.00 s", "2.00 s", "1.60 s", "2.50 s"})
    CHECK_THAT(table, Contains(time));
}

TEST_CASE("Results of another calibration and broken lines are refused", "[validate]") {
  const std::string header = results_header("calibration");
  CHECK_THROWS_WITH(parse_lines(results_header("another"), header), Contains("this calibration"));
  CHECK_THROWS_WITH(parse_lines(header + "nonsense\n", header), Contains("line 2"));
  const ValidationRun empty{.key = "a", .round = 0, .measured_s = {}, .predicted_s = {1}};
  CHECK_THROWS_WITH(parse_lines(header + to_line(empty), header), Contains("no times"));
}

TEST_CASE("Every case of the matrix has a key of its own", "[validate]") {
  std::vector<std::string> keys;
  for (const Scenario& s : validation_matrix()) keys.push_back(case_key(s));
  CHECK(keys.size() == 3 * 6 * 2 * 11);
  std::sort(keys.begin(), keys.end());
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
}

TEST_CASE("Cases of another rate, delay, data set or seed are no results of this one",
          "[validate]") {
  const Scenario usual = make_case("dsgd", {1}, {1}).scenario;
  CHECK(case_key(usual) == usual.model.name + ", batch 64, 2 workers, 100 Mbit/s, dsgd");
  const auto changed = [&](const auto& change) {
    Scenario other = usual;
    change(other);
    return case_key(other);
  };
  const std::vector<std::string> keys{case_key(usual),
                                      changed([](Scenario& s) { s.bandwidth_bit_per_s = 100.2e6; }),
                                      changed([](Scenario& s) { s.bandwidth_bit_per_s = 100.3e6; }),
                                      changed([](Scenario& s) { s.latency_s = 5e-3; }),
                                      changed([](Scenario& s) { s.latency_s = 5.0001e-3; }),
                                      changed([](Scenario& s) { s.dataset = "synthetic:100x10"; }),
                                      changed([](Scenario& s) { s.seed = 7; })};
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == keys.size());
}

TEST_CASE("The plot has a mark for each case and no undefined number", "[validate]") {
  const auto marks = [](const std::string& svg) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = svg.find("<title>", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const std::vector<ValidationCase> cases{make_case("dsgd", {1}, {1}),
                                          make_case("dad", {0.03}, {2})};
  const std::string svg = validation_svg(cases, 0);
  CHECK(marks(svg) == 2);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(marks(validation_svg({}, 0)) == 0);
  ValidationCase file = cases[0];
  file.scenario.model.name = "table:<a&b>.json";
  CHECK_THAT(validation_svg({file}, 0), Contains("table:&lt;a&amp;b&gt;.json"));
  CHECK(validation_svg({cases[0]}, 0).find("nan") == std::string::npos);  // one decade at most
}
