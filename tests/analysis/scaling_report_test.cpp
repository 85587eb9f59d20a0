// Reports over sweeps whose lines are written by hand, so that every figure is easy to find again.
#include "analysis/scaling_report.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "analysis/html_report.h"
#include "analysis/report.h"
#include "analysis/scaling_text.h"
#include "analysis/svg_plot.h"
#include "analysis/sweep_file.h"
#include "tests/analysis/violations.h"
#include "tests/scratch.h"

namespace gradwire {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Two algorithms, 1 and 4 workers, two bandwidths: points 0..7, the algorithm fastest; 8 is the
// single worker.
const std::string kScenario = R"({"platform": "star-1g", "workers": [1, 4],
  "bandwidth": ["1Gbps", "10Gbps"], "algorithm": ["dsgd", "rank-dad"], "batch-size": 10)";

ordered_json point(std::uint64_t index, const Scenario& s, double batch_time_s) {
  Result r;
  r.scenario = s;
  r.batch_time_s = summarize({batch_time_s});
  r.compute_time_s = summarize({0.5});
  r.exposed_communication_time_s = summarize({batch_time_s - 0.5});
  r.bytes_sent_by_worker = {100};
  r.messages_sent_by_worker = {2};
  r.memory = {.total_bytes = 5e6, .state_bytes = 2e6};
  r.loss = {2};
  r.evaluations = {
      {.batch = 1, .time_s = batch_time_s, .loss = 1, .accuracy = 0.5, .macro_auc = 0.8},
      {.batch = 2, .time_s = 2 * batch_time_s, .loss = 0.5, .accuracy = 0.75, .macro_auc = 0.9}};
  if (s.algorithm.name != "dsgd")
    r.metrics = {{"density", {0.5, 0.25}}, {"target_density", {0.25, 0.25}}};
  r.network = {{"network_model", "exact"}, {"hosts_used", std::to_string(s.workers)}};
  ordered_json row = result_json(r);
  row.erase("bytes_sent_by_worker");
  row.erase("messages_by_worker");
  return {{"point", index}, {"result", row}};
}

class Example {
 public:
  // Batch times by point; the single worker takes 1 s.
  explicit Example(const std::vector<double>& times = {1, 1, 1, 1, 4, 2, 1.25, 2},
                   const std::string& more = "}")
      : sweep_(load_sweep(ScratchFile("s.json", kScenario + more).path(), Grid())) {
    const SweepPlan plan(sweep_);
    for (std::size_t i = 0; i < times.size(); ++i)
      records_.push_back(point(i, plan.scenario(i), times[i]));
    records_.push_back(point(8, plan.scenario(8), 1));
    records_.push_back({{"crossover", {4, 5}}, {"bandwidths_bit_per_s", {5e9}}});
  }
  std::vector<ordered_json>& records() { return records_; }

  std::string file(const std::string& name, std::size_t begin, std::size_t end) const {
    SweepFile file(folder_ / name, sweep_identity(sweep_), [](const ordered_json&) {});
    for (std::size_t i = begin; i < std::min(end, records_.size()); ++i) file.append(records_[i]);
    return folder_ / name;
  }
  std::string file() const { return file("a.jsonl", 0, records_.size()); }
  SweepResults results() const { return load_sweep_results({file()}); }

 private:
  Sweep sweep_;
  ScratchFolder folder_;
  std::vector<ordered_json> records_;
};

ScalingReport report_of(const Example& example) {
  static std::vector<SweepResults> kept;  // rows point into their results
  kept.push_back(example.results());
  return analyse_sweep(kept.back(), "", {});
}

}  // namespace

TEST_CASE("speed-up is throughput over a single worker's, efficiency that over the workers") {
  const ScalingReport weak = report_of(Example());
  REQUIRE(weak.rows.size() == 8);
  CHECK_FALSE(weak.strong);
  CHECK(weak.rows[4].throughput_example_per_s == 10);  // 40 examples in 4 s
  CHECK(weak.rows[4].speedup == 1);                    // one worker: 10 examples in 1 s
  CHECK(weak.rows[5].speedup == 2);
  CHECK(weak.rows[5].efficiency == 0.5);
  CHECK(weak.rows[5].speedup_vs_baseline == 2);
  CHECK(weak.rows[7].speedup_vs_baseline == 0.625);
}

TEST_CASE("the best choice is the fastest, and says no compression where plain dSGD is") {
  const ScalingReport report = report_of(Example());
  REQUIRE(report.best.size() == 2);  // a single worker sends nothing
  CHECK(report.best[0].row == 5);
  CHECK(report.best[0].gain_over_no_compression == 2);
  CHECK_FALSE(report.best[0].no_compression);
  CHECK(verdict(report, report.best[0]) == "rank-dad is 2.00x as fast as no compression");
  CHECK(report.best[1].row == 6);
  CHECK(verdict(report, report.best[1]) == "no compression");
}

TEST_CASE("a gain below one percent is no reason to compress") {
  const ScalingReport report = report_of(Example({1, 1, 1, 1, 1, 0.995, 1, 0.98}));
  CHECK(verdict(report, report.best[0]) == "no compression: rank-dad gains less than 1 %");
  CHECK_FALSE(report.best[1].no_compression);
}

TEST_CASE("a crossover names who overtakes whom, or who is faster on every network") {
  const ScalingReport report = report_of(Example());
  REQUIRE(report.crossovers.size() == 1);
  CHECK(report.crossovers[0].faster_below == 1);
  CHECK(describe(report, report.crossovers[0]) == "dsgd overtakes rank-dad at 5 Gbit/s");
  const ScalingReport equal = report_of(Example({1, 1, 1, 1, 2, 2, 2, 2}));
  CHECK(describe(equal, equal.crossovers[0]) == "dsgd and rank-dad take the same time");
  Example always({1, 1, 1, 1, 4, 2, 3, 2});
  always.records().back()["bandwidths_bit_per_s"] = ordered_json::array();
  const ScalingReport one = report_of(always);
  CHECK(describe(one, one.crossovers[0]) ==
        "rank-dad is faster than dsgd from 1 Gbit/s to 10 Gbit/s");
}

TEST_CASE("time to a target is the first evaluation that reaches it") {
  const SweepResults results = Example().results();
  const ScalingReport report = analyse_sweep(
      results, "", {parse_target("auc=0.9"), parse_target("loss=1"), parse_target("accuracy=0.8")});
  REQUIRE(report.target_times.size() == 24);
  CHECK(report.target_times[12].row == 4);
  CHECK(report.target_times[12].time_s == 8);
  CHECK(report.target_times[12].batches == 2);
  CHECK(report.target_times[13].time_s == 4);
  CHECK(report.target_times[14].batches == -1);
  CHECK(violations(scaling_schema(), scaling_json(report, results)) == "");
}

TEST_CASE("a baseline is one of the sweep's algorithms") {
  const SweepResults results = Example().results();
  CHECK(analyse_sweep(results, "", {}).baseline == "dsgd");
  CHECK(analyse_sweep(results, "rank-dad", {}).rows[4].speedup_vs_baseline == 0.5);
  CHECK_THROWS_WITH(analyse_sweep(results, "powersgd", {}),
                    Catch::Contains("the sweep has no powersgd; it has dsgd, rank-dad"));
}

TEST_CASE("bad targets are refused") {
  for (const char* text : {"auc", "auc=", "auc=2", "f1=0.5", "auc=0.5=1"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_target(text), Catch::StartsWith("target: "));
  }
}

TEST_CASE("a scaling report satisfies its schema, complete or not") {
  Example example;
  const SweepResults whole = example.results();
  CHECK(violations(scaling_schema(), scaling_json(analyse_sweep(whole, "", {}), whole)) == "");
  example.records().erase(example.records().begin() + 8);  // the single worker
  example.records().erase(example.records().begin() + 4);  // the baseline of four workers
  const SweepResults part = load_sweep_results({example.file("part.jsonl", 0, 99)});
  const ScalingReport report = analyse_sweep(part, "", {});
  CHECK(report.missing_points == 2);
  CHECK(std::isnan(report.rows[4].speedup));
  CHECK(std::isnan(report.rows[4].speedup_vs_baseline));
  CHECK(violations(scaling_schema(), scaling_json(report, part)) == "");
}

TEST_CASE("the scaling schema refuses a report with a key missing, misspelt or of another type") {
  const SweepResults results = Example().results();
  const json report = scaling_json(analyse_sweep(results, "", {}), results);
  REQUIRE(violations(scaling_schema(), report) == "");
  for (const auto& change : std::vector<std::function<void(json&)>>{
           [](json& r) { r["results"][0].erase("speedup"); },
           [](json& r) { r["results"][0]["speed_up"] = 1; },
           [](json& r) { r["results"][0]["bytes_sent_by_worker"] = json::array({1}); },
           [](json& r) { r["best"][0]["workers"] = "4"; },
           [](json& r) { r["crossovers"][0].erase("algorithms"); },
           [](json& r) { r["context"].erase("scaling"); },
           [](json& r) { r["context"]["command_line"] = "x"; },
           [](json& r) { r["kind"] = "run"; }}) {
    json changed = report;
    change(changed);
    CHECK(violations(scaling_schema(), changed) != "");
  }
}

TEST_CASE("files of shards in any order give the bytes of the whole sweep's report") {
  const Example example;
  const SweepResults whole = example.results();
  const std::string expected = dump(scaling_json(analyse_sweep(whole, "", {}), whole));
  const SweepResults merged =
      load_sweep_results({example.file("2.jsonl", 7, 99), example.file("1.jsonl", 0, 9)});
  CHECK(dump(scaling_json(analyse_sweep(merged, "", {}), merged)) == expected);
  CHECK(scaling_html(analyse_sweep(merged, "", {}), merged) ==
        scaling_html(analyse_sweep(whole, "", {}), whole));
}

TEST_CASE("files that contradict each other, of another sweep or without a point are refused") {
  Example example;
  const std::string one = example.file("1.jsonl", 0, 9);
  example.records()[3]["result"]["batch_time_s"]["mean"] = 17;
  const std::string other = example.file("2.jsonl", 0, 9);
  CHECK_THROWS_WITH(load_sweep_results({one, other}),
                    Catch::Contains("2.jsonl: point 3 contradicts another line or file"));
  CHECK_THROWS_WITH(load_sweep_results({example.file("0.jsonl", 0, 0)}),
                    Catch::Contains("no point has been finished"));
  const Example seeded({1}, R"(, "seed": 2})");
  CHECK_THROWS_WITH(load_sweep_results({one, seeded.file()}), Catch::Contains("of another sweep"));
  example.records()[0]["point"] = 4711;
  CHECK_THROWS_WITH(load_sweep_results({example.file("3.jsonl", 0, 9)}),
                    Catch::Contains("the sweep has no point 4711"));
  example.records()[0]["point"] = "x";
  CHECK_THROWS_WITH(load_sweep_results({example.file("4.jsonl", 0, 9)}),
                    Catch::Contains("corrupt record"));
}

TEST_CASE("CSV has a line per point, every line with as many cells as its head") {
  const std::string csv = scaling_csv(report_of(Example()));
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const auto commas = std::count(line.begin(), line.end(), ',');
  int points = 0;
  for (; std::getline(lines, line); ++points)
    CHECK(std::count(line.begin(), line.end(), ',') == commas);
  CHECK(points == 8);
  CHECK_THAT(csv, Catch::Contains("\n5,rank-dad,4,star-1g,1e+09,,"));
  CHECK_THAT(csv, Catch::Contains(",100,2,5e+06,2e+06,"));
}

TEST_CASE("the table shows a worker's memory, and intervals where a calibration gives them") {
  CHECK_THAT(scaling_table(report_of(Example())),
             Catch::Contains("5.00 MB  2.00 MB") && !Catch::Contains("expected"));
  Example example;
  example.records()[4]["result"]["batch_time_interval_s"] = {3, 6};
  const ScalingReport report = report_of(example);
  CHECK(report.rows[4].batch_time_high_s == 6);
  CHECK(std::isnan(report.rows[5].batch_time_high_s));
  CHECK_THAT(scaling_table(report),
             Catch::Contains("expected") && Catch::Contains("4.00 s  3.00 s - 6.00 s"));
  CHECK_THAT(scaling_csv(report), Catch::Contains(",4,3,6,0.5,"));
}

TEST_CASE("Learning curves have a line per evaluation") {
  const std::string csv = learning_csv(report_of(Example()));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 8 * 2);
  CHECK_THAT(csv, Catch::Contains("\n5,rank-dad,4,1e+09,1,2,4,0.5,0.75,0.9\n"));
}

TEST_CASE("a page is one file: no script, nothing to fetch, no undefined number") {
  const SweepResults results = Example().results();
  const std::string page =
      scaling_html(analyse_sweep(results, "", {parse_target("auc=0.9")}), results);
  for (const char* foreign : {"<script", "href=", "src=", "@import", "nan", "inf\""}) {
    CAPTURE(foreign);
    CHECK_THAT(page, !Catch::Contains(foreign));
  }
  for (const char* part :
       {"prefers-color-scheme:dark", "stroke-dasharray", "Speed-up against one worker",
        "exposed communication", "Fastest algorithm", ">none<",
        "dsgd overtakes rank-dad at 5 Gbit/s", "1 - test macro AUC", "auc 0.9",
        "density, last half of the batches", "density, 4 workers", ">target<"}) {
    CAPTURE(part);
    CHECK_THAT(page, Catch::Contains(part));
  }
  CHECK_THAT(page, !Catch::Contains("target density"));
}

TEST_CASE("text in a page cannot become markup") {
  CHECK(escape("<a & \"b\">") == "&lt;a &amp; &quot;b&quot;&gt;");
}

}  // namespace gradwire
