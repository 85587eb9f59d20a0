// What every registered algorithm keeps, whatever it computes.
#include <catch2/catch.hpp>
#include <set>

#include "tests/algorithms/training_runs.h"

using namespace gradwire;

namespace {
const std::string kModel = "mlp:40-30-5";  // wide enough to be compressed
}

TEST_CASE("Every algorithm has a name of its own, a summary and usable defaults") {
  std::set<std::string> names;
  for (const AlgorithmRow& row : algorithm_registry()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK_FALSE(row.summary.empty());
    CHECK(make_algorithm({.name = row.name, .options = {}}) != nullptr);
    for (const OptionSpec& option : row.options) {
      CAPTURE(option.key);
      CHECK_FALSE(option.help.empty());
      CHECK_NOTHROW(make_algorithm({row.name, {{option.key, option.default_value}}}));
    }
  }
}

TEST_CASE("Every choice of every algorithm trains to finite losses on equal replicas") {
  for (const AlgorithmRow& row : algorithm_registry()) {
    for (const OptionSpec& option : row.options) {
      for (const std::string& value : option.allowed) {
        if (value == option.default_value) continue;
        const std::string spec = row.name + ":" + option.key + "=" + value;
        CAPTURE(spec);
        const TrainingRun run = run_training(spec, 3, kModel);
        for (const auto& steps : run.steps) CHECK(std::isfinite(steps.back().loss_sum));
        if (row.consensus) CHECK(replicas_equal(run));
      }
    }
  }
}

TEST_CASE("Every algorithm trains to finite losses on equal replicas, exactly if it says so") {
  const int workers = GENERATE(1, 2, 3, 5, 8);
  for (const AlgorithmRow& row : algorithm_registry()) {
    CAPTURE(row.name, workers);
    const TrainingRun run = run_training(row.name, workers, kModel);
    for (const auto& steps : run.steps) {
      REQUIRE(steps.size() == 3);
      for (const StepRecord& step : steps) CHECK(std::isfinite(step.loss_sum));
    }
    if (row.consensus) CHECK(replicas_equal(run));
    if (row.exact) CHECK(gradient_error(run) < 1e-6);
    if (workers == 1) CHECK(run.sent_by_all().messages_sent == 0);
  }
}

TEST_CASE("Every synchronous algorithm gives the same parameters and traffic in a second run") {
  for (const AlgorithmRow& row : algorithm_registry()) {
    if (!row.synchronous) continue;
    CAPTURE(row.name);
    const TrainingRun first = run_training(row.name, 3, kModel);
    const TrainingRun second = run_training(row.name, 3, kModel);
    CHECK(first.parameters() == second.parameters());
    CHECK(first.sent_by_all().bytes_sent == second.sent_by_all().bytes_sent);
  }
}

TEST_CASE("An unknown algorithm is refused with the names of the known ones") {
  CHECK_THROWS_WITH(find_algorithm("sgd"), Catch::StartsWith("unknown algorithm sgd; known: dsgd"));
}

TEST_CASE("a range that starts just above 0 is not printed as starting at 0") {
  CHECK_THROWS_WITH(make_algorithm(parse_algorithm_spec("top-k:density=0")),
                    "algorithm top-k: density=0; allowed: a number from 1e-09 to 1");
}
