// Sums over the workers of values at coordinates that differ from worker to worker, or are shared.
// All workers end with the same bits.  N workers, k_w pairs from worker w, u bytes an index, w
// bytes a value, U the union of all coordinates, D = 2(N-1)/N w the bytes of a ring all-reduce per
// value.
#pragma once

#include <span>
#include <vector>

#include "algorithms/collectives.h"
#include "algorithms/sparse_codec.h"

namespace gradwire {

struct SparseSum {
  SparseList sum;                     ///< at the union, over the workers
  std::vector<std::size_t> selected;  ///< pairs from each worker, by rank
};

/// N max(k) / sum(k) - 1: what padding to the longest list adds.
double padding_waste(const std::vector<std::size_t>& selected);

/// Sums two lists; the union of their coordinates.
SparseList merge(const SparseList& a, const SparseList& b);

/// Ragged all-gather of the encoded lists, then everyone adds them: an 8-byte size and one list to
/// the right neighbour, N-1 times; 2(N-1) messages, 8(N-1) bytes + all lists but the neighbour's.
SparseSum all_gather_sum(Communicator& comm, const SparseList& mine, IndexCode code, std::size_t d);

/// The form of the DEFT, MiCRO and ExDyna authors: all-gather of the counts (8 bytes), all-gather
/// of the indices padded to the longest list, all-reduce of everyone's values of `dense` at the
/// union; (N-1)(8 + u max k) + D |U| bytes.  `common` coordinates, known to all, join the union for
/// free. `code` is int32 or int64.
SparseSum union_sum(Communicator& comm, const Coordinates& mine, std::span<const Scalar> dense,
                    IndexCode code, AllReduce all_reduce, const Coordinates& common = {});

/// Everyone's values at coordinates that all workers know: D k bytes.
SparseSum shared_sum(Communicator& comm, const Coordinates& shared, std::span<const Scalar> dense,
                     AllReduce all_reduce);

/// gTop-k (Shi et al. 2019): lists meet in a binomial tree, each meeting keeps the k largest sums;
/// worker 0 broadcasts what remains.  Everyone gives k pairs; every message has k pairs: k (u + w)
/// bytes, one up from each worker but 0, one down the broadcast tree.  `code` is int32 or int64.
struct TreeSum {
  SparseSum result;
  /// Sums that a meeting on this worker dropped although their coordinate survived elsewhere: in
  /// nobody's list and nobody's memory.
  SparseList leaked;
};
TreeSum tree_sum(Communicator& comm, const SparseList& mine, IndexCode code, std::size_t d);

/// Coordinates in both; in the first but not in the second.
Coordinates intersection(const Coordinates& a, const Coordinates& b);
Coordinates difference(const Coordinates& a, const Coordinates& b);

}  // namespace gradwire
