// Which layers share an exchange when sparsification overlaps back-propagation (OMGS-SGD, Shi et
// al. 2020, after the authors' code).  Layers come last first, as back-propagation yields them; a
// bucket is a run of neighbours, selected from and sent together.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace gradwire {

struct LayerTime {
  std::size_t size = 0;   ///< values
  double backward_s = 0;  ///< back-propagation through it
};

/// Seconds to select from, and to exchange the selection of, so many values.
struct BucketTimes {
  std::function<double(std::size_t size)> select_s;
  std::function<double(std::size_t size)> exchange_s;
};

/// How many neighbouring layers each bucket takes.
using BucketPlan = std::vector<std::size_t>;

/// When the last exchange ends.  One processor goes through the layers and selects when a bucket is
/// complete; one link carries the exchanges in order, each as soon as it is selected and the link
/// is free.
double predicted_end_s(const std::vector<LayerTime>& layers, const BucketPlan& plan,
                       const BucketTimes& times);

/// A greedy plan: the next layer joins the bucket if waiting for it costs less than the exchange of
/// its own saves.  No merging at all or a single bucket where these are predicted to be faster.
BucketPlan plan_buckets(const std::vector<LayerTime>& layers, const BucketTimes& times);

}  // namespace gradwire
