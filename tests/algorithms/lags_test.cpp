#include <catch2/catch.hpp>

#include "tests/algorithms/training_runs.h"

using namespace gradwire;

namespace {

// 40x30 + 30 = 1230 and 30x5 + 5 = 155 values: with density 0.1, 123 and 15 pairs.
constexpr const char* kModel = "mlp:40-30-5";

std::int64_t pairs_bytes(std::int64_t n, std::int64_t pairs) {
  return n * (n - 1) * (8 + pairs * static_cast<std::int64_t>(4 + sizeof(Scalar)));
}

}  // namespace

TEST_CASE("LAGS gathers the top k of every layer", "[lags]") {
  for (const int n : {1, 2, 3, 5, 8}) {
    const TrainingRun run = run_training("lags:density=0.1", n, kModel);
    CHECK(run.sent_by_all().bytes_sent == pairs_bytes(n, 123) + pairs_bytes(n, 15));
    CHECK(run.sent_by_all().messages_sent == 4 * n * (n - 1));
    CHECK(replicas_equal(run));
  }
}

TEST_CASE("OMGS merges all layers on a slow link and none on a free one", "[lags]") {
  const TrainingRun merged = run_training("omgs:density=0.1,latency-s=1", 3, kModel);
  CHECK(merged.sent_by_all().bytes_sent == pairs_bytes(3, 138));
  CHECK(merged.sent_by_all().messages_sent == 2 * 3 * 2);
  const TrainingRun apart = run_training("omgs:density=0.1,latency-s=0", 3, kModel);
  CHECK(apart.sent_by_all().bytes_sent == pairs_bytes(3, 123) + pairs_bytes(3, 15));
}

TEST_CASE("Overlap changes no number", "[lags]") {
  for (const std::string name : {"lags", "omgs"})
    CHECK(run_training(name + ":overlap=on", 3, kModel).parameters() ==
          run_training(name + ":overlap=off", 3, kModel).parameters());
}

TEST_CASE("LAGS and OMGS with density 1 apply the exact mean", "[lags]") {
  for (const std::string name : {"lags:density=1", "omgs:density=1,latency-s=1"})
    CHECK(gradient_error(run_training(name, 3, kModel)) < 1e-6);
}

TEST_CASE("LAGS equals per-layer top-k", "[lags]") {
  // One map without a second layer: its weight and bias are the whole gradient.  Bias first, so
  // that only ties could differ.
  CHECK(relative_difference(run_training("lags:density=0.2", 3, "mlp:20-6").parameters(),
                            run_training("top-k:density=0.2", 3, "mlp:20-6").parameters()) < 1e-6);
}
