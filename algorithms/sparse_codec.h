// What a list of (index, value) pairs looks like on the wire.  Values travel as Scalars, after the
// indices:
//   int32, int64  4 or 8 bytes an index
//   bitmap        one bit per coordinate, ceil(d / 8) bytes
//   delta         gaps between indices, Rice-coded (Golomb 1966, Rice 1979): about
//                 log2(d / k) + 1.5 bits an index for scattered ones, plus 5 bytes
//   smallest      one byte that names the smallest of int32, bitmap and delta, then that
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/selection.h"

namespace gradwire {

enum class IndexCode { kInt32, kInt64, kBitmap, kDelta, kSmallest };

/// The names above; throws std::invalid_argument otherwise.
IndexCode parse_index_code(std::string_view name);
const std::vector<std::string>& index_code_names();

/// Values at ascending coordinates of a flat buffer of d Scalars.
struct SparseList {
  Coordinates indices;
  std::vector<Scalar> values;
};

/// The values of `dense` at `indices`.
SparseList pick(std::span<const Scalar> dense, Coordinates indices);

std::vector<std::byte> encode(IndexCode code, const SparseList& list, std::size_t d);

/// Throws std::logic_error for bytes that encode() cannot have written for d coordinates.
SparseList decode(IndexCode code, std::span<const std::byte> bytes, std::size_t d);

/// Encoding or decoding k pairs: a pass over them.
Work sparse_code_work(std::size_t k);

}  // namespace gradwire
