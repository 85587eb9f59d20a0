// The top-columns baseline against the exact mean gradient, and its traffic against its header.
#include <catch2/catch.hpp>

#include "tests/algorithms/factor_traffic.h"
#include "tests/algorithms/training_runs.h"
#include "tests/algorithms/two_branches.h"

using namespace gradwire;

TEST_CASE("Top-columns applies the exact mean gradient if k covers the batch") {
  const std::string options = GENERATE("k=4", "k=100", "k=4,rescale=batch-over-k");
  const int workers = GENERATE(1, 2, 3, 8);
  CAPTURE(options, workers);
  const TrainingRun run = run_training("top-columns:" + options, workers);
  CHECK(gradient_error(run) < 1e-6);
  CHECK(replicas_equal(run));
}

TEST_CASE("Top-columns scales by the batch over k, and by N, where asked") {
  const auto first_gradient = [](const std::string& options) {
    return run_training("top-columns:k=2" + options, 3).steps[0][0].applied;
  };
  const auto times = [&](Scalar factor) {
    Gradients gradients = first_gradient("");
    for (Matrix& m : gradients) m *= factor;
    return gradients;
  };
  CHECK(relative_difference(first_gradient(",rescale=batch-over-k"), times(2)) < 1e-6);
  CHECK(relative_difference(first_gradient(",authors-scale=on"), times(3)) < 1e-6);
}

TEST_CASE("Top-columns sums parameters outside linear maps exactly") {
  Dataset dataset = load_dataset("synthetic:6x3", 1);
  const auto steps = run_steps("top-columns:k=1", 3, dataset, 4,
                               [] { return std::make_unique<TwoBranches>(6, 3); });
  const Gradients exact = exact_mean(steps, 12);
  CHECK((steps[0].applied[1] - exact[1]).norm() < 1e-6 * exact[1].norm());
  CHECK((steps[0].applied[0] - exact[0]).norm() > 1e-2 * exact[0].norm());
}

TEST_CASE("Top-columns sends k rows of every map to everyone") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const int k = GENERATE(1, 3, 9);  // of 4 rows
  CAPTURE(workers, k);
  const TrainingRun run = run_training("top-columns:k=" + std::to_string(k), workers);
  for (int w = 0; w < workers; ++w) {
    const Traffic max = max_traffic(workers, w);
    const Traffic sent = run.sent(static_cast<std::size_t>(w));
    CHECK(sent.messages_sent == 2 * (std::int64_t{2} * (workers - 1) + max.messages_sent));
    CHECK(sent.bytes_sent == static_cast<std::int64_t>(sizeof(Scalar)) * (workers - 1) *
                                     std::min(k, 4) * (7 + 5 + 5 + 3) +
                                 2 * max.bytes_sent);
  }
}
