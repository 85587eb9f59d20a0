#include "algorithms/bucket_plan.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "models/random.h"

using namespace gradwire;

namespace {

BucketTimes linear(double select_each_s, double latency_s, double exchange_each_s) {
  return {.select_s = [=](std::size_t n) { return select_each_s * static_cast<double>(n); },
          .exchange_s =
              [=](std::size_t n) { return latency_s + exchange_each_s * static_cast<double>(n); }};
}

// Every way to cut n layers into runs.
std::vector<BucketPlan> all_plans(std::size_t n) {
  std::vector<BucketPlan> plans;
  for (unsigned cuts = 0; cuts < 1U << (n - 1); ++cuts) {
    BucketPlan plan{1};
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if ((cuts >> i) & 1U)
        plan.push_back(1);
      else
        ++plan.back();
    }
    plans.push_back(plan);
  }
  return plans;
}

}  // namespace

TEST_CASE("The predicted end follows processor and link", "[bucket_plan]") {
  const std::vector<LayerTime> layers{{10, 1}, {20, 2}, {30, 3}};
  const BucketTimes times = linear(0.1, 5, 0.1);
  // Alone: ready at 2, 6, 12; exchanges 6, 7, 8 long: end at 8, 15, 23.
  CHECK(predicted_end_s(layers, {1, 1, 1}, times) == Approx(23));
  // First two: ready at 3 + 3 = 6, then 12; exchanges 8, 8: end at 14, 22.
  CHECK(predicted_end_s(layers, {2, 1}, times) == Approx(22));
  // All: ready at 6 + 6 = 12, exchange 11.
  CHECK(predicted_end_s(layers, {3}, times) == Approx(23));
}

TEST_CASE("Layers merge when latency dominates and stay apart when there is none",
          "[bucket_plan]") {
  const std::vector<LayerTime> layers{{10, 1}, {20, 2}, {30, 3}};
  CHECK(plan_buckets(layers, linear(0, 1000, 0.1)) == BucketPlan{3});
  CHECK(plan_buckets(layers, linear(0, 0, 0.1)) == BucketPlan{1, 1, 1});
  CHECK(plan_buckets({}, linear(0, 1, 1)).empty());
}

TEST_CASE("A plan is never predicted slower than no merging or one bucket", "[bucket_plan]") {
  RandomStream stream(1, Purpose::kSyntheticTensor);
  double worst = 1;
  for (int t = 0; t < 200; ++t) {
    std::vector<LayerTime> layers(7);
    for (LayerTime& layer : layers) layer = {1 + stream.below(1000), stream.uniform() * 100};
    const BucketTimes times = linear(0.05 * stream.uniform(), 100 * stream.uniform(), 0.1);
    const BucketPlan plan = plan_buckets(layers, times);
    CHECK(std::accumulate(plan.begin(), plan.end(), std::size_t{0}) == 7);
    const double end = predicted_end_s(layers, plan, times);
    CHECK(end <= predicted_end_s(layers, BucketPlan(7, 1), times));
    CHECK(end <= predicted_end_s(layers, {7}, times));
    double best = end;
    for (const BucketPlan& other : all_plans(7))
      best = std::min(best, predicted_end_s(layers, other, times));
    worst = std::max(worst, end / best);
  }
  CHECK(worst < 4.0 / 3);  // the greedy rule is not optimal
}
