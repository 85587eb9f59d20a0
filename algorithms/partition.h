// How partitioned sparsifiers divide a gradient among the workers so that no coordinate is selected
// twice, and how they keep the density at its target (kljp's code for MiCRO, ExDyna and DEFT).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/matrix.h"

namespace gradwire {

/// Bounds of n nearly equal parts of d: part p is [b[p], b[p + 1]); the first d mod n have one
/// more.
std::vector<std::size_t> even_bounds(std::size_t d, int n);

/// The part that a worker owns at a step: parts go round so that all see all of the gradient.
int owned_part(std::int64_t step, int rank, int workers);

/// MiCRO's threshold: after every step a factor that depends on e = selected / target:
/// e > 1.1: 1.005; e < 1/1.1: 0.995; between: 1.00125.  The authors' code has 0.9987 in a branch
/// that cannot be reached; `symmetric` uses it for e <= 1.
class ThresholdControl {
 public:
  explicit ThresholdControl(bool symmetric) : symmetric_(symmetric) {}
  bool started() const { return value_ >= 0; }
  void start(Scalar value) { value_ = value; }
  void update(double selected_per_target);
  Scalar value() const { return value_; }

 private:
  bool symmetric_;
  Scalar value_ = -1;
};

/// ExDyna's parts: 1024 blocks of floor(d / 1024) values (rounded down to a multiple of 32 where
/// that leaves any; whatever remains belongs to the last part), first dealt out evenly.  Where a
/// part selected more than 1.05 of the mean and its neighbour less than 1/1.05, one block moves
/// across their border, unless the giver would keep fewer than 1024 / 4N (at least one).  A part
/// between the two ratios neither takes nor gives, so that load does not pass through it.
class BlockPartition {
 public:
  static constexpr std::size_t kBlocks = 1024;
  BlockPartition(std::size_t d, int parts);
  /// `selected` by part, at the previous step.
  void rebalance(const std::vector<std::size_t>& selected, double density);
  const std::vector<std::size_t>& blocks() const { return blocks_; }  ///< per part
  std::vector<std::size_t> bounds() const;

 private:
  std::size_t d_;
  std::size_t block_;
  std::vector<std::size_t> blocks_;
};

/// DEFT's pieces: tensors of more than d / n values are cut into n nearly equal ones.  Bounds, as
/// above.
std::vector<std::size_t> deft_pieces(std::span<const std::size_t> tensors, int n);

/// How many of k coordinates each piece gives, in proportion to its norm, at least one and at most
/// its size: by descending norm floor(k' norm / norm'), k' and norm' what is left over; what then
/// still is left goes to the largest norms that have room.  The sum is at least k (or all there is)
/// and at most k + the number of pieces.
std::vector<std::size_t> deft_counts(std::span<const double> norms,
                                     std::span<const std::size_t> bounds, std::size_t k);

/// Longest processing time first (Graham 1969): items by descending cost into the bin with the
/// least load; within 4/3 - 1/3n of the best makespan.  The items of every bin.
std::vector<std::vector<std::size_t>> lpt_bins(std::span<const double> costs, int bins);

}  // namespace gradwire
