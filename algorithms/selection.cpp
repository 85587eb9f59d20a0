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

#ifdef __AVX512F__
#include <immintrin.h>
#endif

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

// Writes the coordinates, counted from `first`, of the keys from `floor` up to `out`, which has
// room for n + 16; returns how many.
std::size_t append(const Scalar* values, std::size_t n, Key floor, std::uint32_t first,
                   std::uint32_t* out) {
  std::size_t found = 0;
  std::size_t i = 0;
#if defined(__AVX512F__) && !defined(GRADWIRE_DOUBLE)
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const __m512i least = _mm512_set1_epi32(static_cast<int>(floor));
  __m512i indices =
      _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                       _mm512_set1_epi32(static_cast<int>(first)));
  constexpr std::size_t kLanes = 16;
  constexpr std::size_t kAhead = 2048;  // values; hides the memory's latency
  for (; i + kChunk <= n; i += kChunk) {
    for (std::size_t j = i; j < i + kChunk; j += kLanes)
      _mm_prefetch(values + j + kAhead, _MM_HINT_T0);  // never faults, if beyond the end
    for (std::size_t part = 0; part < kChunk / kLanes; ++part) {
      const __m512i keys =
          _mm512_and_epi32(_mm512_loadu_si512(values + i + part * kLanes), magnitude);
      const __mmask16 hits = _mm512_cmpge_epu32_mask(keys, least);
      _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(hits, indices));
      found += static_cast<std::size_t>(std::popcount(hits));
      indices = _mm512_add_epi32(indices, _mm512_set1_epi32(kLanes));
    }
  }
#endif
  while (i < n) {
    const std::size_t end = std::min(n, i + kChunk);
    if (count(values + i, end - i, floor) == 0) i = end;  // counting is fastest
    for (; i < end; ++i) {  // without a branch that could be mispredicted
      out[found] = first + static_cast<std::uint32_t>(i);
      found += static_cast<std::size_t>(key_of(values[i]) >= floor);
    }
  }
  return found;
}

// Coordinates of the keys from `floor` up.
Coordinates collect(std::span<const Scalar> values, Key floor, std::size_t expected) {
  constexpr std::size_t kBlock = 4096;
  std::array<std::uint32_t, kBlock + 16> found;
  Coordinates out;
  out.reserve(expected);
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t n = append(values.data() + begin, std::min(kBlock, values.size() - begin),
                                 floor, static_cast<std::uint32_t>(begin), found.data());
    out.insert(out.end(), found.data(), found.data() + n);
  }
  return out;
}

// About how many keys reach the floor, and somewhat more: from one chunk of every 64 Ki values.
std::size_t estimate(std::span<const Scalar> values, Key floor) {
  std::size_t chunks = 0;
  std::size_t found = 0;
  for (std::size_t begin = 0; begin + kChunk <= values.size(); begin += 65536, ++chunks)
    found += count(values.data() + begin, kChunk, floor);
  return chunks == 0 ? values.size() : values.size() / (chunks * kChunk) * (found + found / 8 + 1);
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

struct Sums {
  double values = 0;
  double squares = 0;
};
Sums sums(std::span<const Scalar> values) {
  Sums total;
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
    total.values += s[l];
    total.squares += q[l];
  }
  return total;
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
  const Key floor = key_of(threshold);
  Selection result{collect(values, floor, estimate(values, floor)), {}};
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
  const Sums total = sums(values);
  const auto n = static_cast<double>(d);
  const double mean = total.values / n;
  const double sigma = std::sqrt(std::max(0.0, total.squares / n - mean * mean));
  const auto target = static_cast<double>(k);
  double threshold = std::abs(mean) + normal_quantile(1 - target / (2 * n)) * sigma;
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

double norm(std::span<const Scalar> values) { return std::sqrt(sums(values).squares); }

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
