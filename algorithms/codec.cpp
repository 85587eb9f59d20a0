#include "algorithms/codec.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace gradwire {

namespace {

void check_sizes(Wire wire, std::size_t scalars, std::size_t bytes) {
  if (bytes != wire_bytes(wire, scalars))
    throw std::logic_error("codec: " + std::to_string(scalars) + " numbers take " +
                           std::to_string(wire_bytes(wire, scalars)) + " bytes, not " +
                           std::to_string(bytes));
}

// Encoded numbers may lie at any address: they pass through an aligned block in the nearest cache.
constexpr std::size_t kBlock = 512;
template <class T>
using Block = Eigen::Array<T, static_cast<int>(kBlock), 1>;

auto view(std::span<Scalar> values) {
  return Eigen::Map<Eigen::Array<Scalar, Eigen::Dynamic, 1>>(values.data(),
                                                             static_cast<Index>(values.size()));
}

template <class T>
void convert(std::span<const Scalar> values, std::span<std::byte> out) {
  Block<T> block;
  for (std::size_t i = 0; i < values.size(); i += kBlock) {
    const std::size_t n = std::min(kBlock, values.size() - i);
    const auto rows = static_cast<Index>(n);
    block.head(rows) =
        Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>>(&values[i], rows).cast<T>();
    std::memcpy(&out[i * sizeof(T)], block.data(), n * sizeof(T));
  }
}

// Calls use(numbers, decoded block) for one piece after the other.
template <class T, class Use>
void convert_back(std::span<const std::byte> bytes, std::span<Scalar> out, const Use& use) {
  Block<T> block;
  for (std::size_t i = 0; i < out.size(); i += kBlock) {
    const std::size_t n = std::min(kBlock, out.size() - i);
    std::memcpy(block.data(), &bytes[i * sizeof(T)], n * sizeof(T));
    use(view(out.subspan(i, n)), block.head(static_cast<Index>(n)).template cast<Scalar>());
  }
}

template <class Use>
void convert_back(Wire wire, std::span<const std::byte> bytes, std::span<Scalar> out,
                  const Use& use) {
  check_sizes(wire, out.size(), bytes.size());
  switch (wire) {
    case Wire::kFp32:
      return convert_back<Scalar>(bytes, out, use);
    case Wire::kFp16:
      return convert_back<Eigen::half>(bytes, out, use);
    case Wire::kBf16:
      return convert_back<Eigen::bfloat16>(bytes, out, use);
  }
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
  switch (wire) {
    case Wire::kFp32:
      if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
      return;
    case Wire::kFp16:
      return convert<Eigen::half>(values, out);
    case Wire::kBf16:
      return convert<Eigen::bfloat16>(values, out);
  }
}

void decode(Wire wire, std::span<const std::byte> bytes, std::span<Scalar> out) {
  convert_back(wire, bytes, out, [](auto numbers, const auto& decoded) { numbers = decoded; });
}

void decode_add(Wire wire, std::span<const std::byte> bytes, std::span<Scalar> sum) {
  convert_back(wire, bytes, sum, [](auto numbers, const auto& decoded) { numbers += decoded; });
}

}  // namespace gradwire
