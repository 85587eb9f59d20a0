#include "algorithms/selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace gradwire {

namespace {

// The bits of a magnitude, ordered as the magnitudes are.
using Key = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
constexpr int kKeyBits = 8 * sizeof(Key) - 1;
Key key_of(Scalar x) { return std::bit_cast<Key>(x) & (~Key{0} >> 1U); }

constexpr std::size_t kChunk = 64;

std::size_t count(const Scalar* values, std::size_t n, Key floor) {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < n; ++i)
    found += static_cast<std::uint32_t>(key_of(values[i]) >= floor);
  return found;
}

// One bit per value of a chunk: its key reaches the floor.
std::uint64_t hits(const Scalar* chunk, Key floor) {
  std::array<std::uint8_t, kChunk> hit;
  for (std::size_t i = 0; i < kChunk; ++i)
    hit[i] = static_cast<std::uint8_t>(key_of(chunk[i]) >= floor);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kChunk; i += 8) {
    std::uint64_t bytes = 0;
    for (std::size_t j = 0; j < 8; ++j) bytes |= std::uint64_t{hit[i + j]} << (8 * j);
    bits |= (bytes * 0x0102040810204080U >> 56U) << i;  // gathers the low bits of eight bytes
  }
  return bits;
}

// Coordinates of the keys from `floor` up.  Most chunks have none: count first, which is fastest.
Coordinates collect(std::span<const Scalar> values, Key floor, std::size_t expected) {
  Coordinates out;
  out.reserve(expected);
  const std::size_t whole = values.size() - values.size() % kChunk;
  for (std::size_t begin = 0; begin < whole; begin += kChunk) {
    const Scalar* chunk = values.data() + begin;
    if (count(chunk, kChunk, floor) == 0) continue;
    for (std::uint64_t bits = hits(chunk, floor); bits != 0; bits &= bits - 1)
      out.push_back(static_cast<std::uint32_t>(begin) +
                    static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
  for (std::size_t i = whole; i < values.size(); ++i)
    if (key_of(values[i]) >= floor) out.push_back(static_cast<std::uint32_t>(i));
  return out;
}

// A key that at least k values reach (0 < k < d), and how many: a bin edge of the histogram over
// the leading 12 bits.
struct Floor {
  Key key;
  std::size_t count;
};
Floor find_floor(std::span<const Scalar> values, std::size_t k) {
  constexpr int kShift = kKeyBits - 12;
  constexpr std::size_t kBins = 4096;
  std::vector<std::uint32_t> bins(2 * kBins);  // two, so that equal neighbours do not wait
  std::size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    ++bins[static_cast<std::size_t>(key_of(values[i]) >> kShift)];
    ++bins[kBins + static_cast<std::size_t>(key_of(values[i + 1]) >> kShift)];
  }
  if (i < values.size()) ++bins[static_cast<std::size_t>(key_of(values[i]) >> kShift)];
  std::size_t reached = 0;
  std::size_t bin = kBins;
  while (reached < k) {
    --bin;
    reached += bins[bin] + bins[kBins + bin];
  }
  return {static_cast<Key>(bin) << kShift, reached};
}

Coordinates all_coordinates(std::size_t d) {
  Coordinates all(d);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

struct Moments {
  double mean;
  double sigma;
};
Moments moments(std::span<const Scalar> values) {
  double sum = 0;
  double squares = 0;
  constexpr std::size_t kLanes = 16;  // independent sums, in a fixed order
  std::array<double, kLanes> s{};
  std::array<double, kLanes> q{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double x = values[i + l];
      s[l] += x;
      q[l] += x * x;
    }
  for (; i < values.size(); ++i) {
    const double x = values[i];
    s[0] += x;
    q[0] += x * x;
  }
  for (std::size_t l = 0; l < kLanes; ++l) {
    sum += s[l];
    squares += q[l];
  }
  const auto n = static_cast<double>(values.size());
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean))};
}

Work pass(std::size_t n, double flops_each, double accesses_each) {
  return pass_work(static_cast<Index>(n), flops_each, accesses_each);
}

}  // namespace

Coordinates CoordinateSet::sorted() const {
  Coordinates out;
  for (std::size_t w = 0; w < words_.size(); ++w)
    for (std::uint64_t word = words_[w]; word != 0; word &= word - 1)
      out.push_back(static_cast<std::uint32_t>(64 * w) +
                    static_cast<std::uint32_t>(std::countr_zero(word)));
  return out;
}

SelectionCost parse_selection_cost(std::string_view name) {
  if (name == "scan") return SelectionCost::kScan;
  if (name == "sort") return SelectionCost::kSort;
  throw std::invalid_argument("selection cost " + std::string(name) + "; allowed: scan, sort");
}

Work top_k_work(std::size_t d, std::size_t k, SelectionCost cost) {
  if (cost == SelectionCost::kScan) return pass(d, 6, 2) + pass(k, 4, 2);
  const double comparisons =
      static_cast<double>(d) * std::log2(static_cast<double>(std::max<std::size_t>(k, 2)));
  return {.flops = 96 * comparisons, .memory_bytes = 96 * comparisons};
}

Selection top_k(std::span<const Scalar> values, std::size_t k, SelectionCost cost) {
  const std::size_t d = values.size();
  Selection result{{}, top_k_work(d, std::min(k, d), cost)};
  if (k == 0) return result;
  if (k >= d) {
    result.indices = all_coordinates(d);
    return result;
  }
  const Floor floor = find_floor(values, k);
  result.indices = collect(values, floor.key, floor.count + kChunk);
  if (floor.count == k) return result;

  std::vector<Key> keys;
  keys.reserve(floor.count);
  for (const std::uint32_t i : result.indices) keys.push_back(key_of(values[i]));
  const auto kth = keys.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(keys.begin(), kth, keys.end(), std::greater<>());
  const Key smallest = *kth;
  auto ties_left = std::count(keys.begin(), kth + 1, smallest);
  std::erase_if(result.indices, [&](std::uint32_t i) {
    const Key key = key_of(values[i]);
    return key == smallest ? ties_left-- <= 0 : key < smallest;
  });
  return result;
}

Selection at_least(std::span<const Scalar> values, Scalar threshold) {
  Selection result{collect(values, key_of(threshold), values.size() / 64), {}};
  result.work = pass(values.size(), 1, 1) + pass(result.indices.size(), 1, 1);
  return result;
}

std::size_t count_at_least(std::span<const Scalar> values, Scalar threshold) {
  std::size_t total = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += 4096)  // a count fits 32 bits
    total += count(values.data() + begin, std::min<std::size_t>(4096, values.size() - begin),
                   key_of(threshold));
  return total;
}

GaussianSelection gaussian_k(std::span<const Scalar> values, std::size_t k) {
  const std::size_t d = values.size();
  if (k == 0 || d == 0) return {};
  if (k >= d) return {{all_coordinates(d), {}}, 0};
  const Moments m = moments(values);
  const auto target = static_cast<double>(k);
  double threshold =
      std::abs(m.mean) + normal_quantile(1 - target / (2 * static_cast<double>(d))) * m.sigma;
  Work work = pass(d, 4, 1);
  // Above 0, so that zeros are never sent.
  const auto rounded = [&] {
    return std::max(static_cast<Scalar>(threshold), std::numeric_limits<Scalar>::denorm_min());
  };
  for (int correction = 0; correction < 3; ++correction) {
    const auto found = static_cast<double>(count_at_least(values, rounded()));
    work += pass(d, 1, 1);
    if (found < 2 * target / 3) {
      threshold *= 0.5;
    } else if (found > 4 * target / 3) {
      threshold *= 1.5;
    } else {
      break;
    }
  }
  GaussianSelection result{at_least(values, rounded()), rounded()};
  result.selection.work += work;
  return result;
}

Selection random_k(std::size_t d, std::size_t k, RandomStream stream) {
  k = std::min(k, d);
  Selection result{{}, pass(k, 16, 2) + pass(d / (8 * sizeof(Scalar)), 1, 1)};
  CoordinateSet taken(d);
  for (std::size_t last = d - k; last < d; ++last)
    if (!taken.insert(stream.below(last + 1))) taken.insert(last);
  result.indices = taken.sorted();
  return result;
}

Selection random_block(std::size_t d, std::size_t k, RandomStream stream) {
  k = std::min(k, d);
  if (k == 0) return {};
  Selection result{Coordinates(k), pass(k, 1, 1)};
  const std::size_t begin = stream.below(d);
  const std::size_t wrapped = begin + k > d ? begin + k - d : 0;  // how many lie at the front
  for (std::size_t i = 0; i < k; ++i)
    result.indices[i] = static_cast<std::uint32_t>(i < wrapped ? i : begin + (i - wrapped));
  return result;
}

double normal_quantile(double p) {
  double low = -40;
  double high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace gradwire
