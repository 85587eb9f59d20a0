// Which coordinates of a flat gradient a worker sends: exact top-k, a threshold, a Gaussian
// estimate of one, or coordinates drawn from a seed that all workers share.  Magnitudes are
// compared by their bits, so NaN counts as larger than infinity: a broken gradient is sent, never
// hidden.
//
// Costs, d values of which k are taken:
//   scan  histogram and collection read the d values twice (what this code does); a threshold once.
//   sort  96 d log2 k flops and bytes, the shape that papers assume for top-k on a GPU.  The
//   constant
//         is PyTorch 2's topk on a 50 Gflop/s core (0.31 s for 100,000 of 10 million) and, in
//         bytes, the 2.19e-10 d log2 d seconds that Shi et al. (OMGS-SGD) fitted on a 440 GB/s
//         card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/matrix.h"
#include "models/random.h"

namespace gradwire {

/// Coordinates of a flat buffer, ascending, without repetition.
using Coordinates = std::vector<std::uint32_t>;

/// A set of coordinates below d, one bit each.
class CoordinateSet {
 public:
  explicit CoordinateSet(std::size_t d) : words_((d + 63) / 64) {}
  /// Whether it was not there before.
  bool insert(std::size_t i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    const bool fresh = (words_[i / 64] & bit) == 0;
    words_[i / 64] |= bit;
    return fresh;
  }
  Coordinates sorted() const;

 private:
  std::vector<std::uint64_t> words_;
};

struct Selection {
  Coordinates indices;
  Work work;
};

enum class SelectionCost { kScan, kSort };
/// `scan` or `sort`; throws std::invalid_argument otherwise.
SelectionCost parse_selection_cost(std::string_view name);

/// What top_k() of k among d costs under a model.
Work top_k_work(std::size_t d, std::size_t k, SelectionCost cost);

/// The min(k, d) values of largest magnitude; of equal ones the first.  O(d): a histogram over the
/// leading bits finds a magnitude that at least k values reach, an exact partition of those the
/// rest.
Selection top_k(std::span<const Scalar> values, std::size_t k,
                SelectionCost cost = SelectionCost::kScan);

/// All values with |x| >= threshold (>= 0): one pass, bound by memory.
Selection at_least(std::span<const Scalar> values, Scalar threshold);
std::size_t count_at_least(std::span<const Scalar> values, Scalar threshold);

/// About k values by the Gaussian fit of Shi et al. (2019): threshold |mean| + z sigma with
/// z = Phi^-1(1 - k/2d), then up to three corrections (halve it below 2k/3 values, times 1.5 above
/// 4k/3).  O(d).
struct GaussianSelection {
  Selection selection;
  Scalar threshold = 0;
};
GaussianSelection gaussian_k(std::span<const Scalar> values, std::size_t k);

/// min(k, d) distinct coordinates below d, uniformly drawn (Floyd's sampling).
Selection random_k(std::size_t d, std::size_t k, RandomStream stream);

/// min(k, d) neighbouring coordinates from a uniformly drawn start, around the end if need be.
Selection random_block(std::size_t d, std::size_t k, RandomStream stream);

/// Euclidean norm.
double norm(std::span<const Scalar> values);

/// x with Phi(x) = p for the standard normal distribution, 0 < p < 1.
double normal_quantile(double p);

}  // namespace gradwire
