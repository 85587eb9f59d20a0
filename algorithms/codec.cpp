#include "algorithms/codec.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace gradwire {

namespace {

using Scalars = Eigen::Array<Scalar, Eigen::Dynamic, 1>;

void check_sizes(Wire wire, std::size_t scalars, std::size_t bytes) {
  if (bytes != wire_bytes(wire, scalars))
    throw std::logic_error("codec: " + std::to_string(scalars) + " numbers take " +
                           std::to_string(wire_bytes(wire, scalars)) + " bytes, not " +
                           std::to_string(bytes));
}

// The encoded numbers as an array of T.  Unaligned, hence for element-wise use only.
template <class T>
auto view(std::span<const std::byte> bytes) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(
      reinterpret_cast<const T*>(bytes.data()), static_cast<Index>(bytes.size() / sizeof(T)));
}
template <class T>
auto view(std::span<std::byte> bytes) {
  return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(
      reinterpret_cast<T*>(bytes.data()), static_cast<Index>(bytes.size() / sizeof(T)));
}
auto view(std::span<Scalar> values) {
  return Eigen::Map<Scalars>(values.data(), static_cast<Index>(values.size()));
}
auto view(std::span<const Scalar> values) {
  return Eigen::Map<const Scalars>(values.data(), static_cast<Index>(values.size()));
}

}  // namespace

Wire parse_wire(std::string_view name) {
  if (name == "fp32") return Wire::kFp32;
  if (name == "fp16") return Wire::kFp16;
  if (name == "bf16") return Wire::kBf16;
  throw std::invalid_argument("wire=" + std::string(name) + "; allowed: fp32, fp16, bf16");
}

std::size_t wire_bytes(Wire wire, std::size_t scalars) {
  return scalars * (wire == Wire::kFp32 ? sizeof(Scalar) : 2);
}

void encode(Wire wire, std::span<const Scalar> values, std::span<std::byte> out) {
  check_sizes(wire, values.size(), out.size());
  if (values.empty()) return;
  switch (wire) {
    case Wire::kFp32:
      std::memcpy(out.data(), values.data(), out.size());
      break;
    case Wire::kFp16:
      view<Eigen::half>(out) = view(values).cast<Eigen::half>();
      break;
    case Wire::kBf16:
      view<Eigen::bfloat16>(out) = view(values).cast<Eigen::bfloat16>();
      break;
  }
}

void decode(Wire wire, std::span<const std::byte> bytes, std::span<Scalar> out) {
  check_sizes(wire, out.size(), bytes.size());
  if (out.empty()) return;
  switch (wire) {
    case Wire::kFp32:
      std::memcpy(out.data(), bytes.data(), bytes.size());
      break;
    case Wire::kFp16:
      view(out) = view<Eigen::half>(bytes).cast<Scalar>();
      break;
    case Wire::kBf16:
      view(out) = view<Eigen::bfloat16>(bytes).cast<Scalar>();
      break;
  }
}

void decode_add(Wire wire, std::span<const std::byte> bytes, std::span<Scalar> sum) {
  check_sizes(wire, sum.size(), bytes.size());
  if (sum.empty()) return;
  switch (wire) {
    case Wire::kFp32:
      view(sum) += view<Scalar>(bytes);
      break;
    case Wire::kFp16:
      view(sum) += view<Eigen::half>(bytes).cast<Scalar>();
      break;
    case Wire::kBf16:
      view(sum) += view<Eigen::bfloat16>(bytes).cast<Scalar>();
      break;
  }
}

}  // namespace gradwire
