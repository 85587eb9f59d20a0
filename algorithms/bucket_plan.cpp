#include "algorithms/bucket_plan.h"

#include <algorithm>
#include <array>

namespace gradwire {

namespace {

BucketPlan greedy_plan(const std::vector<LayerTime>& layers, const BucketTimes& times) {
  BucketPlan plan;
  double processor_s = 0;  // when the processor begins with the bucket's first layer
  double link_s = 0;       // when the link is free
  std::size_t first = 0;
  while (first < layers.size()) {
    std::size_t size = layers[first].size;
    double backward_s = layers[first].backward_s;
    std::size_t next = first + 1;
    for (; next < layers.size(); ++next) {
      const std::size_t merged = size + layers[next].size;
      const double ready_s = processor_s + backward_s + times.select_s(size);
      const double idle_s = std::max(0.0, link_s - ready_s);
      const double delay_s =
          layers[next].backward_s + times.select_s(merged) - times.select_s(size);
      const double saved_s =
          times.exchange_s(size) + times.exchange_s(layers[next].size) - times.exchange_s(merged);
      if (delay_s - idle_s >= saved_s) break;
      size = merged;
      backward_s += layers[next].backward_s;
    }
    plan.push_back(next - first);
    first = next;
    processor_s += backward_s + times.select_s(size);
    link_s = std::max(link_s, processor_s) + times.exchange_s(size);
  }
  return plan;
}

}  // namespace

double predicted_end_s(const std::vector<LayerTime>& layers, const BucketPlan& plan,
                       const BucketTimes& times) {
  double processor_s = 0;
  double link_s = 0;
  std::size_t layer = 0;
  for (const std::size_t count : plan) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i, ++layer) {
      size += layers[layer].size;
      processor_s += layers[layer].backward_s;
    }
    processor_s += times.select_s(size);
    link_s = std::max(link_s, processor_s) + times.exchange_s(size);
  }
  return link_s;
}

BucketPlan plan_buckets(const std::vector<LayerTime>& layers, const BucketTimes& times) {
  if (layers.empty()) return {};
  const std::array<BucketPlan, 3> plans{greedy_plan(layers, times), BucketPlan(layers.size(), 1),
                                        BucketPlan{layers.size()}};
  return *std::min_element(plans.begin(), plans.end(), [&](const auto& a, const auto& b) {
    return predicted_end_s(layers, a, times) < predicted_end_s(layers, b, times);
  });
}

}  // namespace gradwire
