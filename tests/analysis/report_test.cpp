#include "analysis/report.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/analysis/violations.h"
#include "tests/scratch.h"

namespace gradwire {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Two batches on two workers; nothing is measured, so every figure is easy to find again.
Result example() {
  Result r;
  r.scenario.platform = "star-1g";
  r.scenario.algorithm = parse_algorithm_spec("rank-dad:rank=4");
  r.batch_time_s = summarize({1, 3});
  r.compute_time_s = summarize({0.25, 0.75});
  r.optimizer_time_s = summarize({0.125, 0.25});
  r.exposed_communication_time_s = summarize({0.5, 1.5});
  r.bytes_sent_by_worker = {100, 300};
  r.messages_sent_by_worker = {2, 6};
  r.loss = {2.5, 2.25};
  r.metrics = {{"effective_rank/fc1", {4, 3}}, {"density", {0.5, 0.25}}};
  r.parameter_hash = 0xabc;
  r.network = {{"model", "exact"}, {"latency_factor", "1"}, {"links", "7"}};
  return r;
}

Study study_of(std::vector<Result> results) {
  Study study;
  study.results = std::move(results);
  study.dataset = {.name = "synthetic",
                   .synthetic = true,
                   .shape = {.features = 784, .classes = 10},
                   .train_examples = 100,
                   .test_examples = 10};
  study.model = {.name = "mlp", .parameters = 10, .maps = {{.name = "fc1", .in = 2, .out = 3}}};
  PlatformInfo platform;
  platform.path = "star.xml";
  platform.hosts = {"a", "b"};
  study.platforms.push_back(platform);
  return study;
}

ordered_json report_of(std::vector<Result> results) {
  return report_json(study_of(std::move(results)), {}, {.command_line = "gradwire run"});
}

}  // namespace

TEST_CASE("a report satisfies its schema") {
  CHECK(violations(report_schema(), report_of({example()})) == "");
  const auto timed = report_json(study_of({example()}), {}, {.wall_clock = true});
  CHECK(violations(report_schema(), timed) == "");
}

TEST_CASE("a cost-only model's report satisfies its schema, with reasons for what is null") {
  Result r = example();
  r.loss.clear();
  r.scenario.model.values = false;
  Study study = study_of({r});
  study.model.has_loss = false;
  study.dataset = {.name = "none", .none = true, .shape = {.features = 0, .classes = 1}};
  const json report = report_json(study, {}, {});
  CHECK(violations(report_schema(), report) == "");
  for (const char* key : {"loss", "replicas_equal", "parameter_hash"}) {
    CHECK(report["results"][0][key].is_null());
    CHECK(report["results"][0]["null_reasons"].contains(key));
  }
}

TEST_CASE("the schema refuses a report with a key missing, misspelt or of another type") {
  json report = report_of({example()});
  for (const auto& change : std::vector<std::function<void(json&)>>{
           [](json& r) { r["results"][0].erase("batch_time_s"); },
           [](json& r) { r["results"][0]["batch_time"] = 1; },
           [](json& r) { r["results"][0]["workers"] = "2"; },
           [](json& r) { r["results"][0]["compute_time_s"] = nullptr; },
           [](json& r) { r["results"][0]["loss"][0] = "nan"; },
           [](json& r) { r["results"][0]["parameter_hash"] = "0xabc"; },
           [](json& r) { r["context"].erase("seed"); }, [](json& r) { r["schema_version"] = 2; },
           [](json& r) { r["results"] = json::array(); }}) {
    json changed = report;
    change(changed);
    CHECK(violations(report_schema(), changed) != "");
  }
}

TEST_CASE("the program's schema is the file's") {
  CHECK(report_schema() == read_text(GRADWIRE_SOURCE_DIR "/analysis/report.schema.json"));
}

TEST_CASE("a row holds means over batches and over workers, in SI base units") {
  const auto row = report_of({example()})["results"][0];
  CHECK(row["algorithm"] == "rank-dad:rank=4");
  CHECK(row["batch_time_s"]["mean"] == 2);
  CHECK(row["batch_time_s"]["samples"] == json({1, 3}));
  CHECK(row["compute_time_s"] == 0.5);
  CHECK(row["optimizer_time_s"] == 0.1875);
  CHECK(row["exposed_communication_time_s"] == 1);
  CHECK(row["bytes_sent_per_worker"] == 200);
  CHECK(row["messages_per_worker"] == 4);
  CHECK(row["effective_rank"]["fc1"] == json({4, 3}));
  CHECK(row["metrics"]["density"] == json({0.5, 0.25}));
  CHECK(row["parameter_hash"] == "0000000000000abc");
  CHECK(row["status"] == "ok");
}

TEST_CASE("what is not defined is null with a reason") {
  const auto row = report_of({example()})["results"][0];
  for (const char* key : {"bandwidth_bit_per_s", "latency_s", "gradient_relative_error",
                          "diverged_at_batch", "batch_time_interval_s"}) {
    CAPTURE(key);
    CHECK(row[key].is_null());
    CHECK(row["null_reasons"].contains(key));
  }
  Result overridden = example();
  overridden.scenario.bandwidth_bit_per_s = 1e9;
  overridden.scenario.latency_s = 0;
  const auto other = report_of({overridden})["results"][0];
  CHECK(other["bandwidth_bit_per_s"] == 1e9);
  CHECK(other["latency_s"] == 0);
  CHECK_FALSE(other["null_reasons"].contains("latency_s"));
}

TEST_CASE("a calibrated prediction has the interval in which its batches are expected") {
  Result r = example();  // batches of 1 and 3 s
  CHECK(report_of({r})["results"][0]["batch_time_interval_s"].is_null());
  r.network.emplace_back(kPredictionUncertainty, "0.25");
  const ordered_json report = report_of({r});
  CHECK(violations(report_schema(), json::parse(dump(report))) == "");
  CHECK(report["results"][0]["batch_time_interval_s"] == ordered_json({0.8, 3.75}));
}

TEST_CASE("a diverged run says where, and its report stays valid JSON without NaN") {
  Result diverged = example();
  diverged.loss = {2.5, kNaN};
  diverged.gradient_relative_error = {0.5, std::numeric_limits<double>::infinity()};
  diverged.metrics["effective_rank/fc1"][1] = kNaN;
  diverged.evaluations.push_back({.batch = 2, .time_s = 4, .loss = kNaN, .macro_auc = kNaN});
  const ordered_json report = report_of({diverged});
  CHECK(violations(report_schema(), json::parse(dump(report))) == "");
  const auto row = report["results"][0];
  CHECK(row["status"] == "diverged");
  CHECK(row["diverged_at_batch"] == 1);
  CHECK(row["loss"].dump() == "[2.5,null]");
  CHECK(row["gradient_relative_error"].dump() == "[0.5,null]");
  CHECK(row["effective_rank"]["fc1"].dump() == "[4.0,null]");
  CHECK(row["null_reasons"].contains("loss"));
  CHECK(row["null_reasons"].contains("effective_rank/fc1"));
  CHECK(row["evaluations"][0]["macro_auc"].is_null());
}

TEST_CASE("constants that differ between results stand with each, the others once") {
  Result other = example();
  other.network[2].second = "9";
  const auto report = report_of({example(), other});
  CHECK(report["context"]["network_model"].dump() == R"({"model":"exact","latency_factor":1.0})");
  CHECK(report["results"][0]["network"].dump() == R"({"links":7.0})");
  CHECK(report["results"][1]["network"].dump() == R"({"links":9.0})");
}

TEST_CASE("wall-clock figures appear only when asked for, in a block of their own") {
  Study study = study_of({example()});
  const auto plain = report_json(study, {}, {});
  study.wall_mathematics_s = 12;
  CHECK(report_json(study, {}, {}) == plain);
  auto timed = report_json(study, {}, {.wall_clock = true});
  CHECK(timed["wall_clock"]["mathematics_s"] == 12);
  timed.erase("wall_clock");
  CHECK(timed == plain);
}

TEST_CASE("dumped JSON reads back the same, lists of values on one line") {
  const ordered_json value = ordered_json::parse(
      R"({"a":[1,2.5,null],"b":{"c":{}},"d":[{"e":1},{"f":[[]]}],"g":"\u00e9\n","h":[]})");
  CHECK(ordered_json::parse(dump(value)) == value);
  CHECK_THAT(dump(value), Catch::Contains("\"a\": [1,2.5,null],\n"));
  CHECK_THAT(dump(value), Catch::EndsWith("}\n"));
  CHECK(ordered_json::parse(dump({{"latin1", "\xe9"}}))["latin1"] == "\xef\xbf\xbd");
}

}  // namespace gradwire
