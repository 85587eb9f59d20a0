// D-PSGD, SGP and Crossover-SGD.
#include <catch2/catch.hpp>

#include "tests/algorithms/training_runs.h"

using namespace gradwire;

namespace {

// mlp:7-5-3 has 58 parameters.
constexpr auto kModelBytes = static_cast<std::int64_t>(58 * sizeof(Scalar));

using Flat = Eigen::VectorXd;

Flat flat(const std::vector<Matrix>& matrices) {
  Flat all(58);
  Index i = 0;
  for (const Matrix& m : matrices)
    for (Index j = 0; j < m.size(); ++j) all(i++) = static_cast<double>(m.data()[j]);
  return all;
}

Flat mean_model(const TrainingRun& run, std::size_t step) {
  Flat mean = Flat::Zero(58);
  for (const auto& steps : run.steps) mean += flat(steps[step].parameters);
  return mean / static_cast<double>(run.steps.size());
}

// Mean over the workers of the gradients that they took, each at its own model.
Flat mean_gradient(const TrainingRun& run, std::size_t step) {
  Flat mean = Flat::Zero(58);
  for (const auto& steps : run.steps) mean += flat(steps[step].local) / 4;  // rows of a batch
  return mean / static_cast<double>(run.steps.size());
}

const std::vector<std::string> kPreserving{"d-psgd",
                                           "d-psgd:graph=torus",
                                           "d-psgd:graph=exponential",
                                           "d-psgd:graph=one-peer",
                                           "d-psgd:order=mix-first",
                                           "sgp",
                                           "sgp:graph=ring",
                                           "sgp:order=mix-first",
                                           "crossover",
                                           "crossover:segments=1",
                                           "crossover:segments=58"};

std::vector<double> metric(const std::string& spec, int workers, const std::string& name,
                           std::int64_t batches = 3) {
  Scenario scenario = small_scenario(spec, workers);
  scenario.batches = batches;
  Result result;
  describe(rehearse(scenario, small_dataset(scenario)), result);
  return result.metrics.at(name);
}

}  // namespace

TEST_CASE("Gossip moves the mean model by the mean gradient", "[gossip]") {
  for (const std::string& spec : kPreserving)
    for (const int n : {1, 2, 3, 5, 8}) {
      INFO(spec << " on " << n);
      const TrainingRun run = run_training(spec, n);
      for (std::size_t t = 1; t < 3; ++t) {
        const Flat expected = mean_model(run, t - 1) - 0.1 * mean_gradient(run, t);
        CHECK((mean_model(run, t) - expected).norm() < 1e-5 * expected.norm());
      }
    }
}

TEST_CASE("Gossip over the complete graph is dSGD on models", "[gossip]") {
  for (const std::string spec : {"d-psgd:graph=complete", "sgp:graph=complete"})
    for (const int n : {1, 2, 3, 5}) {
      const TrainingRun run = run_training(spec, n);
      CHECK(replicas_equal(run));
      CHECK(relative_difference(run.parameters(), run_training("dsgd", n).parameters()) < 1e-5);
    }
}

TEST_CASE("Crossover with one group of all workers is dSGD", "[gossip]") {
  const TrainingRun run = run_training("crossover:group=4", 4);
  CHECK(replicas_equal(run));
  CHECK(relative_difference(run.parameters(), run_training("dsgd", 4).parameters()) < 1e-5);
}

TEST_CASE("Members of a crossover group share one model", "[gossip]") {
  const TrainingRun run = run_training("crossover:group=2,segments=3", 5);
  const auto model = [&](std::size_t w) { return run.steps[w].back().parameters; };
  CHECK(model(0) == model(1));
  CHECK(model(2) == model(3));
  CHECK(model(0) != model(2));
  CHECK(model(2) != model(4));
}

TEST_CASE("Push-sum weights sum to the number of workers", "[gossip]") {
  for (const int n : {1, 2, 3, 5, 8}) {
    for (const std::string spec : {"sgp:graph=line", "sgp:graph=line,order=mix-first"})
      for (const double mean : metric(spec, n, "push_weight", 6))
        CHECK(mean == Approx(1).epsilon(1e-5));
    for (const double mean : metric("sgp", n, "push_weight", 6)) CHECK(mean == 1);
  }
}

TEST_CASE("Push-sum corrects for unequal weights", "[gossip]") {
  // On a line the ends give more than they get.  Without gradients z stays what all agree on.
  const std::string order = GENERATE(as<std::string>{}, "step-first", "mix-first");
  Scenario scenario = small_scenario("sgp:graph=line,order=" + order, 4);
  scenario.optimizer.learning_rate = 1e-12;
  scenario.batches = 10;
  const TrainingRun run = run_training(scenario);
  const auto& start = run.steps.front().front().parameters;
  for (const auto& steps : run.steps)
    CHECK(relative_difference(steps.back().parameters, start) < 1e-5);
}

TEST_CASE("Replicas of a sparse graph differ but stay close", "[gossip]") {
  const auto ring = metric("d-psgd:graph=ring", 8, "consensus_distance", 20);
  const auto torus = metric("d-psgd:graph=torus", 8, "consensus_distance", 20);
  const auto complete = metric("d-psgd:graph=complete", 8, "consensus_distance", 20);
  CHECK(ring.back() > 0);
  CHECK(ring.back() < 1);
  CHECK(torus.back() < ring.back());
  CHECK(complete.back() < 1e-6);
}

TEST_CASE("Gossip sends a model to every peer", "[gossip]") {
  const auto w = static_cast<std::int64_t>(sizeof(Scalar));
  for (const std::int64_t n : {2, 3, 5, 8}) {
    const auto sent = [&](const std::string& spec, std::size_t worker = 0) {
      const Traffic traffic = run_training(spec, static_cast<int>(n)).sent(worker);
      return std::pair(traffic.messages_sent, traffic.bytes_sent);
    };
    const std::int64_t neighbours = n == 2 ? 1 : 2;
    const auto copies = [](std::int64_t k) { return std::pair(k, k * kModelBytes); };
    CHECK(sent("d-psgd") == copies(neighbours));
    CHECK(sent("d-psgd:order=mix-first") == copies(neighbours));
    CHECK(sent("d-psgd:graph=one-peer") == copies(1));
    CHECK(sent("d-psgd:graph=complete") == copies(n - 1));
    CHECK(sent("sgp") == std::pair<std::int64_t, std::int64_t>(1, kModelBytes + w));
    CHECK(sent("crossover:segments=4") == std::pair<std::int64_t, std::int64_t>(4, kModelBytes));
    if (n == 8) {
      CHECK(sent("crossover:group=4,segments=3") ==
            std::pair<std::int64_t, std::int64_t>(6, 4 * kModelBytes));
      CHECK(sent("crossover:group=4,segments=3", 1) == copies(1));
    }
  }
}

TEST_CASE("Crossover refuses more segments than parameters instead of taking for ever") {
  CHECK_THROWS_WITH(run_training("crossover:segments=100000", 2),
                    Catch::Contains("at most one for each of the model's"));
}

TEST_CASE("Averaging first overlaps and still uses the models before the step", "[gossip]") {
  // With one worker both orders are SGD.
  CHECK(run_training("d-psgd:order=mix-first", 1).parameters() ==
        run_training("d-psgd", 1).parameters());
  CHECK(run_training("d-psgd:order=mix-first", 3).parameters() !=
        run_training("d-psgd", 3).parameters());
}
