// edAD against dAD and the exact mean gradient, and its traffic against the formulas of edad.cpp.
#include <catch2/catch.hpp>

#include "tests/algorithms/training_runs.h"
#include "tests/algorithms/two_branches.h"

using namespace gradwire;

namespace {
constexpr std::int64_t kWord = sizeof(Scalar);
}

TEST_CASE("edAD applies the exact mean gradient") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const std::string activation = GENERATE(as<std::string>{}, "relu", "tanh", "sigmoid");
  const std::string overlap = GENERATE(as<std::string>{}, "on", "off");
  CAPTURE(workers, activation, overlap);
  Scenario scenario = small_scenario("edad:overlap=" + overlap, workers, "mlp:7-6-5-3");
  scenario.model.activation = activation;
  const TrainingRun run = run_training(scenario);
  CHECK(gradient_error(run) < 1e-6);
  CHECK(replicas_equal(run));
}

TEST_CASE("edAD trains like dAD and dSGD, with one linear map too") {
  for (const std::string model : {"mlp:7-3", "mlp:7-6-5-3"}) {
    const TrainingRun run = run_training("edad", 5, model);
    CHECK(relative_difference(run.parameters(), run_training("dad", 5, model).parameters()) < 1e-6);
    CHECK(relative_difference(run.parameters(), run_training("dsgd", 5, model).parameters()) <
          1e-6);
  }
}

TEST_CASE("edAD sends all activations but only the last deltas") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const TrainingRun run = run_training("edad", workers);
  for (std::size_t w = 0; w < run.steps.size(); ++w) {
    CHECK(run.sent(w).messages_sent == 2 * run.peers());
    CHECK(run.sent(w).bytes_sent == run.peers() * 4 * (7 + 5 + 3) * kWord);
  }
}

TEST_CASE("edAD refuses a network that is no chain") {
  CHECK_THROWS_WITH(run_steps("edad", 2, small_dataset(small_scenario("edad", 2)), 4,
                              [] { return std::make_unique<TwoBranches>(7, 3); }),
                    "edad needs a network that is a chain of row-wise layers, such as an MLP");
}
