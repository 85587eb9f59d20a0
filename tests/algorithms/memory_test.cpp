// The memory estimate, control groups, and the refusal.
#include "algorithms/memory.h"

#include <catch2/catch.hpp>
#include <limits>
#include <map>

#include "models/cost_only.h"
#include "tests/algorithms/training_runs.h"
#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;

constexpr double kGiB = 1 << 30;

TEST_CASE("Memory is parameters times copies plus activations, for every worker") {
  Scenario s;
  s.workers = 3;
  s.model.name = "mlp:100-50-10";
  s.batch_size = 7;
  const Dataset data{
      .name = "d", .shape = {.features = 100, .classes = 10}, .train = {}, .test = {}};
  const auto model = make_model(s.model, data.shape, 1);
  const double parameters = 100 * 50 + 50 + 50 * 10 + 10;
  const double traces = model->trace_size(7);
  CHECK(traces == 7 * (100 + 50 + 50 + 10));
  const auto bytes = [&](double copies) {
    return Approx(sizeof(Scalar) * (copies * parameters + 3 * traces));
  };
  CHECK(estimate_memory_bytes(s, *model, data) == bytes(3 * 2 + 2 * 3));  // Adam's state is shared
  s.optimizer.name = "sgd";
  CHECK(estimate_memory_bytes(s, *model, data) == bytes(3 * 2 + 2));
  s.gradient_error = true;
  CHECK(estimate_memory_bytes(s, *model, data) == bytes(3 * 6 + 2));
  s.algorithm.name = "d-psgd";
  CHECK(estimate_memory_bytes(s, *model, data) == bytes(3 * 6 + 3));
}

// mlp:40-30-5: what each algorithm's header says that it keeps, in Scalars.
constexpr double kParameters = 40 * 30 + 30 + 30 * 5 + 5;
constexpr double kWarmStart = 2 * (30 + 5);    // Q (out, rank) of both weights at rank 2
constexpr double kWeights = 40 * 30 + 30 * 5;  // PowerSGD's error feedback
const std::map<std::string, double> kState{
    {"dsgd", 0},
    {"dad", 0},
    {"edad", 0},
    {"rank-dad", 0},
    {"top-columns", 0},
    {"crossover", 0},
    {"d-psgd", 0},
    {"sgp", 1},  // the push-sum weight
    {"powersgd", kWarmStart + kWeights},
    {"powersgd:error-feedback=off", kWarmStart},
    {"powersgd:flavour=authors", kWarmStart},
    {"top-k", kParameters},
    {"top-k:feedback=off", 0},
    {"threshold", kParameters},
    {"gaussian-k", kParameters},
    {"gtop-k", kParameters},
    {"dgc", 2 * kParameters},  // and a velocity
    {"random-k", kParameters},
    {"random-block", kParameters},
    {"micro", kParameters},
    {"exdyna", kParameters},
    {"deft", kParameters},
    {"lags", kParameters},
    {"omgs", kParameters},
};

WorkerMemory memory_of(const Scenario& scenario) {
  Result result;
  describe(rehearse(scenario, small_dataset(scenario)), result);
  return result.memory;
}

TEST_CASE("Every algorithm keeps between steps what its header says") {
  for (const AlgorithmRow& row : algorithm_registry()) CHECK(kState.contains(row.name));
  for (const auto& [spec, scalars] : kState) {
    CAPTURE(spec);
    Scenario scenario = small_scenario(
        spec.starts_with("powersgd") ? spec + (spec == "powersgd" ? ":rank=2" : ",rank=2") : spec,
        3, "mlp:40-30-5");
    scenario.gradient_error = false;
    CHECK(memory_of(scenario).state_bytes == scalars * sizeof(Scalar));
  }
}

TEST_CASE("A worker holds parameters, gradient, optimiser, batch and what its algorithm keeps") {
  Scenario scenario = small_scenario("top-k", 3, "mlp:40-30-5");
  const double traces = 4 * (40 + 30 + 30 + 5);
  CHECK(memory_of(scenario).total_bytes == sizeof(Scalar) * (3 * kParameters + traces));
  scenario.optimizer.name = "adam";
  CHECK(memory_of(scenario).total_bytes == sizeof(Scalar) * (5 * kParameters + traces));
}

TEST_CASE("Attention weights count as memory") {
  const DataShape images{.features = 200, .classes = 2, .channels = 2, .height = 10, .width = 10};
  const auto model = make_model({.name = "vit:patch=1,dim=8,heads=2,depth=3"}, images, 1);
  const double steps = 101;  // pixels and the class token
  const double maps = 100 * (2 + 8) + 3 * steps * (4 * (8 + 8) + 2 * (8 + 32)) + (8 + 2);
  CHECK(model->trace_size(5) == 5 * (maps + 3 * 2 * steps * steps));
}

TEST_CASE("A run that does not fit is refused with both figures") {
  Scenario s;
  s.workers = 16;
  s.model.name = "table:llama-7b";
  s.batch_size = 1;
  const Dataset none = no_dataset();
  const auto model = make_model_for_checks(s.model, none.shape);
  CHECK_THROWS_AS(check_memory(s, *model, none, 8 * kGiB), std::invalid_argument);
  CHECK_THROWS_WITH(check_memory(s, *model, none, 8 * kGiB),
                    Contains("16 workers of table:llama-7b") && Contains("8 GiB are available") &&
                        Contains("--math none"));
  s.model.values = false;
  CHECK_NOTHROW(check_memory(s, *model, none, 8 * kGiB));
}

TEST_CASE("Available memory is what the system or a control group leaves, whichever is less") {
  const TemporaryFolder folder;
  const auto available = [&] {
    return available_memory_bytes(folder.path("proc"), folder.path("cg"));
  };
  CHECK(available() == std::numeric_limits<double>::infinity());
  folder.write("proc/meminfo", "MemTotal: 999 kB\nMemAvailable:    2048 kB\n");
  CHECK(available() == 2048.0 * 1024);
  folder.write("proc/self/cgroup", "0::/a/b\n");
  folder.write("cg/a/b/memory.max", "max\n");
  folder.write("cg/a/b/memory.current", "100\n");
  CHECK(available() == 2048.0 * 1024);
  folder.write("cg/a/memory.max", "5000\n");  // a group above
  folder.write("cg/a/memory.current", "4000\n");
  folder.write("cg/a/memory.stat", "anon 1\ninactive_file 300\nactive_file 200\n");
  CHECK(available() == 1500);
  folder.write("proc/self/cgroup", "3:cpu:/x\n4:memory:/job\n");
  folder.write("cg/memory/job/memory.limit_in_bytes", "900\n");
  folder.write("cg/memory/job/memory.usage_in_bytes", "1000\n");
  CHECK(available() == 0);
}

}  // namespace
}  // namespace gradwire
