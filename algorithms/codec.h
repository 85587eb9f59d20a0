// What dense numbers look like on the wire.  fp32 sends the arithmetic type itself (8 bytes in the
// double build); fp16 and bf16 round to nearest even, as IEEE binary16 and bfloat16.  Encoded
// numbers may lie at any address.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "models/matrix.h"

namespace gradwire {

enum class Wire { kFp32, kFp16, kBf16 };

/// `fp32`, `fp16` or `bf16`; throws std::invalid_argument otherwise.
Wire parse_wire(std::string_view name);

std::size_t wire_bytes(Wire wire, std::size_t scalars);

/// `out` has wire_bytes(wire, values.size()) bytes.
void encode(Wire wire, std::span<const Scalar> values, std::span<std::byte> out);
void decode(Wire wire, std::span<const std::byte> bytes, std::span<Scalar> out);
/// Adds the decoded numbers to `sum`, one by one.
void decode_add(Wire wire, std::span<const std::byte> bytes, std::span<Scalar> sum);

/// The matrix' scalars, row by row.
inline std::span<Scalar> scalars(Matrix& m) {
  return {m.data(), static_cast<std::size_t>(m.size())};
}
inline std::span<const Scalar> scalars(const Matrix& m) {
  return {m.data(), static_cast<std::size_t>(m.size())};
}

}  // namespace gradwire
