// The counter-based generator against Random123's known answers, and its streams.
#include "models/random.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace gradwire {
namespace {

TEST_CASE("A stream is Philox4x64-10 with counter (block, a, b, c) and key (seed, purpose)") {
  // Random123 1.14, kat_vectors: "philox4x64 10" with zero counter and key.
  RandomStream stream(0, Purpose{0});
  CHECK(stream.bits() == 0x16554d9eca36314cULL);
  CHECK(stream.bits() == 0xdb20fe9d672d0fdcULL);
  CHECK(stream.bits() == 0xd7e772cee186176bULL);
  CHECK(stream.bits() == 0x7e68b68aec7ba23bULL);
}

TEST_CASE("Streams that differ in seed, purpose or any index share no number") {
  const std::vector<RandomStream> streams = {
      {1, Purpose::kShuffle},       {2, Purpose::kShuffle},
      {1, Purpose::kSelection},     {1, Purpose::kShuffle, 1, 0, 0},
      {1, Purpose::kShuffle, 0, 1}, {1, Purpose::kShuffle, 0, 0, 1},
  };
  std::set<std::uint64_t> seen;
  for (RandomStream stream : streams)
    for (int i = 0; i < 1000; ++i) seen.insert(stream.bits());
  CHECK(seen.size() == 1000 * streams.size());
}

TEST_CASE("The same stream gives the same numbers whatever another stream draws") {
  RandomStream alone(7, Purpose::kSpiStart, 3);
  RandomStream mixed(7, Purpose::kSpiStart, 3);
  RandomStream other(7, Purpose::kSpiStart, 4);
  for (int i = 0; i < 20; ++i) {
    other.normal();
    CHECK(alone.bits() == mixed.bits());
  }
}

TEST_CASE("Uniform and normal numbers have the moments of their distributions") {
  RandomStream stream(3, Purpose::kSyntheticTensor);
  constexpr int kDraws = 200'000;  // tolerances are 5 standard errors
  double sum = 0, lowest = 1, highest = 0, normal_sum = 0, normal_squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = stream.uniform();
    sum += u;
    lowest = std::min(lowest, u);
    highest = std::max(highest, u);
    const double z = stream.normal();
    normal_sum += z;
    normal_squares += z * z;
  }
  CHECK(lowest >= 0);
  CHECK(highest < 1);
  CHECK(sum / kDraws == Approx(0.5).margin(5 * 0.289 / 447));
  CHECK(normal_sum / kDraws == Approx(0).margin(5.0 / 447));
  CHECK(normal_squares / kDraws == Approx(1).margin(5 * 1.414 / 447));
}

TEST_CASE("below() reaches every value under its bound equally often") {
  RandomStream stream(4, Purpose::kPeers);
  std::array<int, 7> count{};
  for (int i = 0; i < 70'000; ++i) ++count.at(stream.below(7));
  for (const int c : count) CHECK(c == Approx(10'000).margin(5 * 93));  // sqrt(n p (1-p)) = 92.6
  CHECK(stream.below(1) == 0);
}

TEST_CASE("Matrices are filled row by row") {
  Matrix m(2, 3);
  RandomStream(5, Purpose::kSelection).fill_uniform(m);
  RandomStream stream(5, Purpose::kSelection);
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 3; ++j) CHECK(m(i, j) == static_cast<Scalar>(stream.uniform()));
  RandomStream(5, Purpose::kSelection).fill_normal(m);
  CHECK(m(0, 0) == static_cast<Scalar>(RandomStream(5, Purpose::kSelection).normal()));
}

TEST_CASE("A random permutation holds every number once and depends on its stream") {
  const auto order = random_permutation(1000, {1, Purpose::kShuffle, 0});
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t i = 0; i < 1000; ++i) REQUIRE(sorted[i] == i);
  CHECK(order != sorted);
  CHECK(order == random_permutation(1000, {1, Purpose::kShuffle, 0}));
  CHECK(order != random_permutation(1000, {1, Purpose::kShuffle, 1}));
  CHECK(random_permutation(0, {1, Purpose::kShuffle}).empty());
}

}  // namespace
}  // namespace gradwire
