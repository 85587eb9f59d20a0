#include "algorithms/sparse_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace gradwire {

namespace {

using Bytes = std::vector<std::byte>;

[[noreturn]] void malformed(const std::string& what) {
  throw std::logic_error("malformed sparse list: " + what);
}

template <class T>
void append(Bytes& out, const T* data, std::size_t n) {
  const auto bytes = std::as_bytes(std::span(data, n));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Takes numbers off the front of a message.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t left() const { return bytes_.size(); }
  template <class T>
  std::vector<T> take(std::size_t n) {
    std::vector<T> out(n);
    if (n == 0) return out;
    std::memcpy(out.data(), take_bytes(n * sizeof(T)).data(), n * sizeof(T));
    return out;
  }
  std::span<const std::byte> take_bytes(std::size_t n) {
    if (n > bytes_.size()) malformed("it ends too early");
    const auto front = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return front;
  }

 private:
  std::span<const std::byte> bytes_;
};

void check_indices(const Coordinates& indices, std::size_t d) {
  if (std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) != indices.end())
    malformed("indices do not ascend");
  if (!indices.empty() && indices.back() >= d)
    malformed("index " + std::to_string(indices.back()) + " of " + std::to_string(d));
}

// How many pairs a message of pairs of that size holds.
std::size_t pairs_in(std::size_t bytes, std::size_t pair_bytes) {
  if (bytes % pair_bytes != 0) malformed(std::to_string(bytes) + " bytes are no whole pairs");
  return bytes / pair_bytes;
}

template <class T>
void encode_integers(const Coordinates& indices, Bytes& out) {
  const std::vector<T> wide(indices.begin(), indices.end());
  append(out, wide.data(), wide.size());
}

template <class T>
Coordinates decode_integers(Reader& in, std::size_t d) {
  const auto wide = in.take<T>(pairs_in(in.left(), sizeof(T) + sizeof(Scalar)));
  if (std::any_of(wide.begin(), wide.end(), [&](T i) { return static_cast<std::size_t>(i) >= d; }))
    malformed("an index is not below " + std::to_string(d));
  return {wide.begin(), wide.end()};
}

std::size_t bitmap_bytes(std::size_t d) { return (d + 7) / 8; }

void encode_bitmap(const Coordinates& indices, std::size_t d, Bytes& out) {
  const std::size_t begin = out.size();
  out.resize(begin + bitmap_bytes(d));
  for (const std::uint32_t i : indices) out[begin + i / 8] |= std::byte{1} << (i % 8);
}

Coordinates decode_bitmap(Reader& in, std::size_t d) {
  Coordinates indices;
  const auto bits = in.take_bytes(bitmap_bytes(d));
  for (std::size_t b = 0; b < bits.size(); ++b)
    for (auto byte = std::to_integer<unsigned>(bits[b]); byte != 0; byte &= byte - 1)
      indices.push_back(
          static_cast<std::uint32_t>(8 * b + static_cast<std::size_t>(std::countr_zero(byte))));
  return indices;
}

// Rice code with parameter s of gaps g >= 0: g >> s ones, a zero, the low s bits of g.  Bits fill
// bytes from the lowest.
class BitWriter {
 public:
  explicit BitWriter(Bytes& out) : out_(out) {}
  void put(std::uint32_t value, int bits) {
    for (int i = 0; i < bits; ++i) put((value >> i) & 1U);
  }
  void put(std::uint32_t bit) {
    if (used_ % 8 == 0) out_.push_back(std::byte{0});
    out_.back() |= static_cast<std::byte>(bit) << (used_++ % 8);
  }

 private:
  Bytes& out_;
  unsigned used_ = 0;
};

class BitReader {
 public:
  explicit BitReader(Reader& in) : in_(in) {}
  std::uint32_t take() {
    if (used_ % 8 == 0) byte_ = std::to_integer<unsigned>(in_.take_bytes(1).front());
    return (byte_ >> (used_++ % 8)) & 1U;
  }
  std::uint32_t take(int bits) {
    std::uint32_t value = 0;
    for (int i = 0; i < bits; ++i) value |= take() << i;
    return value;
  }

 private:
  Reader& in_;
  unsigned used_ = 0;
  unsigned byte_ = 0;
};

template <class Visitor>
void for_each_gap(const Coordinates& indices, const Visitor& visit) {
  std::uint32_t next = 0;
  for (const std::uint32_t i : indices) {
    visit(i - next);
    next = i + 1;
  }
}

// A parameter s that codes these gaps in few bits, and the bits: k (s + 1) + sum / 2^s is least at
// 2^s = mean ln 2, so only its neighbours are tried.
struct RiceFit {
  int parameter = 0;
  std::size_t bits = std::numeric_limits<std::size_t>::max();
};
RiceFit fit_rice(const Coordinates& indices) {
  if (indices.empty()) return {0, 0};
  const std::size_t sum = indices.back() + 1 - indices.size();  // of the gaps
  const int near = static_cast<int>(std::bit_width(sum / indices.size()));
  RiceFit best;
  for (int s = std::max(0, near - 2); s <= near; ++s) {
    std::size_t bits = indices.size() * static_cast<std::size_t>(s + 1);
    for_each_gap(indices, [&](std::uint32_t gap) { bits += gap >> s; });
    if (bits < best.bits) best = {s, bits};
  }
  return best;
}

constexpr std::size_t kDeltaHeader = 5;  // count (4 bytes), Rice parameter (1)

void encode_delta(const Coordinates& indices, Bytes& out) {
  const auto count = static_cast<std::uint32_t>(indices.size());
  const int s = fit_rice(indices).parameter;
  append(out, &count, 1);
  out.push_back(static_cast<std::byte>(s));
  BitWriter bits(out);
  for_each_gap(indices, [&](std::uint32_t gap) {
    for (std::uint32_t i = 0; i < gap >> s; ++i) bits.put(1);
    bits.put(0);
    bits.put(gap, s);
  });
}

Coordinates decode_delta(Reader& in, std::size_t d) {
  const std::size_t count = in.take<std::uint32_t>(1).front();
  const int s = std::to_integer<int>(in.take_bytes(1).front());
  if (count > d || s >= 32) malformed("a delta header that no list has");
  Coordinates indices;
  indices.reserve(count);
  BitReader bits(in);
  std::uint64_t next = 0;
  while (indices.size() < count) {
    std::uint64_t high = 0;
    while (bits.take() == 1) ++high;
    next += (high << s) + bits.take(s);
    if (next >= d) malformed("index " + std::to_string(next) + " of " + std::to_string(d));
    indices.push_back(static_cast<std::uint32_t>(next++));
  }
  return indices;
}

IndexCode smallest_code(const SparseList& list, std::size_t d) {
  const std::size_t int32 = 4 * list.indices.size();
  const std::size_t bitmap = bitmap_bytes(d);
  const std::size_t delta = kDeltaHeader + (fit_rice(list.indices).bits + 7) / 8;
  if (int32 <= std::min(bitmap, delta)) return IndexCode::kInt32;
  return bitmap <= delta ? IndexCode::kBitmap : IndexCode::kDelta;
}

void encode_indices(IndexCode code, const SparseList& list, std::size_t d, Bytes& out) {
  switch (code) {
    case IndexCode::kInt32:
      return encode_integers<std::int32_t>(list.indices, out);
    case IndexCode::kInt64:
      return encode_integers<std::int64_t>(list.indices, out);
    case IndexCode::kBitmap:
      return encode_bitmap(list.indices, d, out);
    case IndexCode::kDelta:
      return encode_delta(list.indices, out);
    case IndexCode::kSmallest:
      const IndexCode chosen = smallest_code(list, d);
      out.push_back(static_cast<std::byte>(chosen));
      return encode_indices(chosen, list, d, out);
  }
}

Coordinates decode_indices(IndexCode code, Reader& in, std::size_t d) {
  switch (code) {
    case IndexCode::kInt32:
      return decode_integers<std::int32_t>(in, d);
    case IndexCode::kInt64:
      return decode_integers<std::int64_t>(in, d);
    case IndexCode::kBitmap:
      return decode_bitmap(in, d);
    case IndexCode::kDelta:
      return decode_delta(in, d);
    case IndexCode::kSmallest:
      break;
  }
  const auto tag = std::to_integer<unsigned>(in.take_bytes(1).front());
  if (tag >= static_cast<unsigned>(IndexCode::kSmallest)) malformed("unknown index code");
  return decode_indices(static_cast<IndexCode>(tag), in, d);
}

}  // namespace

const std::vector<std::string>& index_code_names() {
  static const std::vector<std::string> names{"int32", "int64", "bitmap", "delta", "smallest"};
  return names;
}

IndexCode parse_index_code(std::string_view name) {
  const auto& names = index_code_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw std::invalid_argument("index code " + std::string(name) +
                                "; allowed: int32, int64, bitmap, delta, smallest");
  return static_cast<IndexCode>(found - names.begin());
}

SparseList pick(std::span<const Scalar> dense, Coordinates indices) {
  SparseList list{std::move(indices), {}};
  list.values.reserve(list.indices.size());
  for (const std::uint32_t i : list.indices) list.values.push_back(dense[i]);
  return list;
}

std::vector<std::byte> encode(IndexCode code, const SparseList& list, std::size_t d) {
  if (d > std::size_t{1} << 31U) throw std::invalid_argument("more than 2^31 coordinates");
  Bytes out;
  encode_indices(code, list, d, out);
  append(out, list.values.data(), list.values.size());
  return out;
}

SparseList decode(IndexCode code, std::span<const std::byte> bytes, std::size_t d) {
  Reader in(bytes);
  SparseList list;
  list.indices = decode_indices(code, in, d);
  check_indices(list.indices, d);
  list.values = in.take<Scalar>(list.indices.size());
  if (in.left() != 0) malformed(std::to_string(in.left()) + " bytes too many");
  return list;
}

Work sparse_code_work(std::size_t k) { return pass_work(static_cast<Index>(k), 4, 4); }

}  // namespace gradwire
