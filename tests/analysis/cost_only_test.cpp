// Cost-only models and users' data from the command line.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/cli.h"
#include "tests/scratch.h"

namespace gradwire {

namespace {

using Words = std::vector<std::string>;
using nlohmann::json;

struct Outcome {
  int status;
  std::string out;
  std::string err;
};

Outcome run(Words words) {
  words.insert(words.begin(), {"run", "--platform", "star-1g", "--workers", "2", "--quiet"});
  std::ostringstream out;
  std::ostringstream err;
  const int status = run_command_line(words, {.out = out, .err = err});
  return {status, out.str(), err.str()};
}

json report_of(const Words& words) {
  Words with_json = words;
  with_json.emplace_back("--json");
  const Outcome outcome = run(with_json);
  CAPTURE(outcome.err);
  REQUIRE(outcome.status == 0);
  return json::parse(outcome.out);
}

const std::string kTable = R"([{"name": "a.weight", "shape": [40, 24]},
                               {"name": "a.bias", "shape": [40]},
                               {"name": "b.weight", "shape": [30, 40]}])";

TEST_CASE("a cost-only model predicts times and bytes, and says that it has no loss") {
  const ScratchFile file("t.json", kTable);
  const json report = report_of({"--model", "table:" + file.path(), "--algorithm", "rank-dad"});
  CHECK(report["context"]["model"]["kind"] == "cost-only");
  CHECK(report["context"]["dataset"]["kind"] == "none");
  const json& result = report["results"][0];
  CHECK(result["loss"].is_null());
  CHECK(result["null_reasons"]["loss"] == "a cost-only model has no loss");
  CHECK(result["status"] == "ok");
  CHECK(result["replicas_equal"] == true);
  CHECK(result["effective_rank"].contains("a"));
}

TEST_CASE("ResNet-50 all-reduces its 25557032 gradients, with values or without") {
  const json report =
      report_of({"--model", "table:resnet50", "--math", "none", "--device", "v100-fp32",
                 "--batch-size", "64", "--algorithm", "dsgd", "powersgd"});
  CHECK(report["context"]["model"]["parameters"] == 25557032);
  const json& dsgd = report["results"][0];
  CHECK(dsgd["bytes_sent_per_worker"].get<double>() == 4.0 * 25557032);  // 2(N-1)/N = 1
  CHECK(dsgd["replicas_equal"].is_null());
  CHECK(dsgd["parameter_hash"].is_null());
  // 3 x 8.18 Gflop x 64 images at 9 Tflop/s, less the first layer's delta
  CHECK(dsgd["compute_time_s"].get<double>() == Approx(64 / 367.0).epsilon(0.02));
  CHECK(report["results"][1]["bytes_sent_per_worker"].get<double>() < 4.0 * 25557032 / 10);
}

TEST_CASE("sizes alone of a model beyond the memory do not keep us from forking") {
  report_of({"--model", "mlp:4-2", "--dataset", "synthetic:4x2"});  // keeps pages
  for (int i = 0; i < 2; ++i) {
    const json report = report_of({"--model", "table:llama-7b", "--math", "none", "--batch-size",
                                   "1", "--algorithm", "dsgd"});
    CHECK(report["results"][0]["bytes_sent_per_worker"].get<double>() == 4.0 * 6738415616);
  }
}

TEST_CASE("times given per layer are the compute time") {
  const ScratchFile file("t.json",
                         R"([{"name": "a", "shape": [40, 24], "fwd_us": 100, "bwd_us": 300},
                             {"name": "b", "shape": [30, 40], "fwd_us": 200, "bwd_us": 400}])");
  const Words words{"--model", "table:" + file.path(), "--optimizer",
                    "sgd",     "--device-rate",        "1000Tf"};
  CHECK(report_of(words)["results"][0]["compute_time_s"].get<double>() ==
        Approx(1000e-6).epsilon(1e-3));
}

TEST_CASE("what a cost-only model cannot do is refused with status 3") {
  const ScratchFile file("t.json", kTable);
  const auto [words, message] = GENERATE(table<Words, std::string>({
      {{"--evaluate-every", "1"}, "evaluate-every"},
      {{"--math", "none", "--algorithm", "top-k"}, "math: none is not implemented for top-k"},
      {{"--math", "none", "--gradient-error"}, "gradient-error"},
      {{"--math", "none", "--compute", "measured"}, "compute"},
      {{"--math", "some"}, "math: \"some\" is not run or none"},
      {{"--device", "abacus"}, "device: \"abacus\" is not known"},
      {{"--model", "table:none-such"}, "shipped: bert-base"},
      {{"--model", "mlp-mnist", "--dataset", "synthetic", "--math", "none"},
       "math: none needs a cost-only model"},
      {{"--model", "table:llama-7b"}, "memory: "},
      {{"--fold", "6/5", "--dataset", "synthetic:4x2", "--model", "mlp:4-2"}, "fold"},
      {{"--split", "odd"}, "split: \"odd\" is not random or by-class"},
  }));
  Words all{"--model", "table:" + file.path()};
  if (std::find(words.begin(), words.end(), "--model") != words.end()) all.clear();
  all.insert(all.end(), words.begin(), words.end());
  const Outcome outcome = run(all);
  CAPTURE(all, outcome.err);
  CHECK(outcome.status == 3);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::StartsWith("gradwire: ") && Catch::Contains(message));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

}  // namespace

}  // namespace gradwire
