// Counter-based random numbers: every value is a function of (seed, purpose, three indices, draw),
// so that any worker can reproduce any other's numbers and no result depends on time, address or
// order. Philox4x64-10 (Salmon et al., SC'11), through Random123.
#pragma once

#include <array>
#include <cstdint>

#include "models/matrix.h"

namespace gradwire {

/// What a stream is for: two purposes never share numbers.
enum class Purpose : std::uint64_t {
  kInitialParameters = 1,
  kShuffle,
  kSyntheticData,
  kSpiStart,
  kSecondSpiStart,
  kPowerSgdStart,
  kSelection,
  kPeers,
  kSyntheticTensor,
  kFold,
};

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t a = 0, std::uint64_t b = 0,
               std::uint64_t c = 0);

  std::uint64_t bits();                      ///< 64 random bits
  double uniform();                          ///< in [0, 1), 53 bits
  double normal();                           ///< N(0, 1), Box-Muller
  std::uint64_t below(std::uint64_t bound);  ///< uniform in [0, bound), bound > 0, unbiased

  void fill_uniform(Matrix& m);  ///< row by row, U[0, 1)
  void fill_normal(Matrix& m);   ///< row by row, N(0, 1)

 private:
  std::array<std::uint64_t, 2> key_;
  std::array<std::uint64_t, 4> counter_;
  std::array<std::uint64_t, 4> block_{};
  int used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

/// 0..n-1 in random order (Fisher-Yates).
std::vector<std::uint32_t> random_permutation(std::uint32_t n, RandomStream stream);

}  // namespace gradwire
