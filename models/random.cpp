#include "models/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace gradwire {

RandomStream::RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint64_t b,
                           std::uint64_t c)
    : key_{seed, static_cast<std::uint64_t>(purpose)}, counter_{0, a, b, c} {}

std::uint64_t RandomStream::bits() {
  if (used_ == 4) {
    const auto out = r123::Philox4x64()({{counter_[0], counter_[1], counter_[2], counter_[3]}},
                                        {{key_[0], key_[1]}});
    for (std::size_t i = 0; i < 4; ++i) block_[i] = out[i];
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double RandomStream::uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

double RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  const double angle = 2 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  const std::uint64_t rejected =
      (0 - bound) % bound;  // 2^64 mod bound values would be too frequent
  std::uint64_t x = bits();
  while (x < rejected) x = bits();
  return x % bound;
}

void RandomStream::fill_uniform(Matrix& m) {
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = static_cast<Scalar>(uniform());
}

void RandomStream::fill_normal(Matrix& m) {
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = static_cast<Scalar>(normal());
}

std::vector<std::uint32_t> random_permutation(std::uint32_t n, RandomStream stream) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[stream.below(i)]);
  return order;
}

}  // namespace gradwire
