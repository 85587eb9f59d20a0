#include "algorithms/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gradwire {

namespace {

// Indices by descending key, equal ones in order.
std::vector<std::size_t> descending(std::span<const double> keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
  return order;
}

}  // namespace

std::vector<std::size_t> even_bounds(std::size_t d, int n) {
  const auto parts = static_cast<std::size_t>(n);
  std::vector<std::size_t> bounds{0};
  for (std::size_t p = 0; p < parts; ++p)
    bounds.push_back(bounds.back() + d / parts + static_cast<std::size_t>(p < d % parts));
  return bounds;
}

int owned_part(std::int64_t step, int rank, int workers) {
  return static_cast<int>((step + rank) % workers);
}

void ThresholdControl::update(double selected_per_target) {
  double factor = 1.00125;
  if (selected_per_target > 1.1) factor = 1.005;
  if (selected_per_target <= 1 && symmetric_) factor = 0.9987;
  if (selected_per_target < 1 / 1.1) factor = 0.995;
  value_ = static_cast<Scalar>(factor * static_cast<double>(value_));
}

BlockPartition::BlockPartition(std::size_t d, int parts) : d_(d), block_(d / kBlocks) {
  if (block_ >= 32) block_ -= block_ % 32;
  const std::vector<std::size_t> even = even_bounds(kBlocks, parts);
  for (std::size_t p = 0; p + 1 < even.size(); ++p) blocks_.push_back(even[p + 1] - even[p]);
}

void BlockPartition::rebalance(const std::vector<std::size_t>& selected, double density) {
  const std::size_t parts = blocks_.size();
  const std::size_t least = std::max<std::size_t>(1, kBlocks / (4 * parts));
  const double total = std::accumulate(selected.begin(), selected.end(), 0.0);
  if (total == 0) return;
  std::vector<double> load(selected.begin(), selected.end());
  const double mean = total / static_cast<double>(parts);
  const double moved = static_cast<double>(block_) * density;  // what a block is taken to select
  const auto move = [&](std::size_t from, std::size_t to) {
    if (load[from] <= 1.05 * mean || load[to] >= mean / 1.05 || blocks_[from] <= least) return;
    --blocks_[from];
    ++blocks_[to];
    load[from] -= moved;
    load[to] += moved;
  };
  for (std::size_t p = 0; p + 1 < parts; ++p) {
    move(p, p + 1);
    move(p + 1, p);
  }
}

std::vector<std::size_t> BlockPartition::bounds() const {
  std::vector<std::size_t> bounds{0};
  for (const std::size_t blocks : blocks_) bounds.push_back(bounds.back() + blocks * block_);
  bounds.back() = d_;
  return bounds;
}

std::vector<std::size_t> deft_pieces(std::span<const std::size_t> tensors, int n) {
  const std::size_t largest = tensors.back() / static_cast<std::size_t>(n);
  std::vector<std::size_t> bounds{0};
  for (std::size_t t = 0; t + 1 < tensors.size(); ++t) {
    const std::size_t size = tensors[t + 1] - tensors[t];
    const auto cuts = even_bounds(size, size > largest ? n : 1);
    for (std::size_t c = 1; c < cuts.size(); ++c)
      if (cuts[c] > cuts[c - 1]) bounds.push_back(tensors[t] + cuts[c]);
  }
  return bounds;
}

std::vector<std::size_t> deft_counts(std::span<const double> norms,
                                     std::span<const std::size_t> bounds, std::size_t k) {
  std::vector<std::size_t> counts(norms.size());
  auto k_left = static_cast<double>(k);
  double norm_left = std::accumulate(norms.begin(), norms.end(), 0.0);
  const std::vector<std::size_t> order = descending(norms);
  const auto size_of = [&](std::size_t piece) {
    return static_cast<double>(bounds[piece + 1] - bounds[piece]);
  };
  for (const std::size_t piece : order) {
    const double size = size_of(piece);
    const double share = norm_left > 0 ? std::floor(k_left * norms[piece] / norm_left) : 0;
    const double count = share >= 1 ? std::min(share, size) : 1;  // 1 for NaN, too
    counts[piece] = static_cast<std::size_t>(count);
    k_left -= count;
    norm_left -= norms[piece];
  }
  for (const std::size_t piece : order) {
    if (k_left <= 0) break;
    const double more = std::min(k_left, size_of(piece) - static_cast<double>(counts[piece]));
    counts[piece] += static_cast<std::size_t>(more);
    k_left -= more;
  }
  return counts;
}

std::vector<std::vector<std::size_t>> lpt_bins(std::span<const double> costs, int bins) {
  std::vector<std::vector<std::size_t>> contents(static_cast<std::size_t>(bins));
  std::vector<double> load(contents.size());
  for (const std::size_t item : descending(costs)) {
    const auto lightest =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    contents[lightest].push_back(item);
    load[lightest] += costs[item];
  }
  return contents;
}

}  // namespace gradwire
