#include "algorithms/selection.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace gradwire;

namespace {

std::vector<Scalar> normal_values(std::size_t d, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::kSyntheticTensor);
  std::vector<Scalar> values(d);
  for (Scalar& x : values) x = static_cast<Scalar>(stream.normal());
  return values;
}

// The definition: a stable sort by magnitude.
Coordinates sorted_top_k(const std::vector<Scalar>& values, std::size_t k) {
  Coordinates order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return std::abs(values[a]) > std::abs(values[b]); });
  order.resize(std::min(k, order.size()));
  std::sort(order.begin(), order.end());
  return order;
}

bool ascending_below(const Coordinates& indices, std::size_t d) {
  return std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) ==
             indices.end() &&
         (indices.empty() || indices.back() < d);
}

}  // namespace

TEST_CASE("top-k is what a stable sort by magnitude keeps", "[selection]") {
  for (const std::size_t d : {1U, 2U, 63U, 64U, 65U, 1000U, 5003U}) {
    const auto values = normal_values(d, d);
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}, d / 10, d / 2, d - 1, d, d + 7})
      CHECK(top_k(values, k).indices == sorted_top_k(values, k));
  }
}

TEST_CASE("top-k of equal magnitudes keeps the first ones", "[selection]") {
  std::vector<Scalar> values(200, Scalar{-2});
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 2;
  values[150] = 5;
  values[10] = 1;
  const auto indices = top_k(values, 20).indices;
  CHECK(indices == sorted_top_k(values, 20));
  CHECK(indices.back() == 150);
  CHECK(top_k(std::vector<Scalar>(100, 0), 7).indices == Coordinates{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("top-k tells magnitudes in one histogram bin apart", "[selection]") {
  auto values = normal_values(3000, 5);
  for (Scalar& x : values) x = 1 + x * Scalar{1e-5F};
  CHECK(top_k(values, 100).indices == sorted_top_k(values, 100));
}

TEST_CASE("Nothing out of nothing is a legal selection", "[selection]") {
  CHECK(top_k({}, 5).indices.empty());
  CHECK(top_k(normal_values(10, 1), 0).indices.empty());
  CHECK(at_least({}, 1).indices.empty());
  CHECK(at_least(std::vector<Scalar>(100, 0), Scalar{1e-30F}).indices.empty());
  CHECK(gaussian_k({}, 3).selection.indices.empty());
  CHECK(random_k(0, 3, RandomStream(1, Purpose::kSelection)).indices.empty());
  CHECK(random_block(0, 3, RandomStream(1, Purpose::kSelection)).indices.empty());
}

TEST_CASE("NaN and infinity count as the largest values", "[selection]") {
  auto values = normal_values(500, 2);
  values[17] = std::numeric_limits<Scalar>::quiet_NaN();
  values[400] = -std::numeric_limits<Scalar>::infinity();
  CHECK(top_k(values, 2).indices == Coordinates{17, 400});
  CHECK(at_least(values, 1e30F).indices == Coordinates{17, 400});
}

TEST_CASE("What top-k leaves is at most (1 - k/d) of the energy", "[selection]") {
  const auto values = normal_values(4000, 3);
  double all = 0;
  for (const double x : values) all += x * x;
  for (const std::size_t k : {40U, 400U, 3000U}) {
    double kept = 0;
    for (const auto i : top_k(values, k).indices) kept += double{values[i]} * double{values[i]};
    CHECK(all - kept <= (1 - static_cast<double>(k) / 4000) * all);
  }
  // Equal magnitudes meet the bound with equality: 25 of 100 ones leave 75.
  CHECK(top_k(std::vector<Scalar>(100, 1), 25).indices.size() == 25);
}

TEST_CASE("A threshold selects all that reach it, in order", "[selection]") {
  for (const std::size_t d : {1U, 63U, 64U, 130U, 2000U, 4096U, 9001U, 70000U}) {
    const auto values = normal_values(d, 10 + d);
    for (const Scalar threshold : {Scalar{0}, Scalar{0.5}, Scalar{2}, Scalar{100}}) {
      Coordinates expected;
      for (std::uint32_t i = 0; i < d; ++i)
        if (std::abs(values[i]) >= threshold) expected.push_back(i);
      CHECK(at_least(values, threshold).indices == expected);
      CHECK(count_at_least(values, threshold) == expected.size());
    }
  }
}

TEST_CASE("Gaussian-k takes k of normal values to within a third", "[selection]") {
  for (const std::size_t k : {20U, 200U, 2000U}) {
    const auto found = gaussian_k(normal_values(20000, k), k).selection.indices.size();
    CHECK(3 * found >= 2 * k);
    CHECK(3 * found <= 4 * k);
  }
}

TEST_CASE("Gaussian-k corrects its threshold where the values are not normal", "[selection]") {
  // One value of 1000 among ones: sigma 10, so the fit for k = 50 of 10,000 starts far above 1.
  std::vector<Scalar> values(10000, Scalar{0.01F});
  for (std::size_t i = 0; i < 50; ++i) values[200 * i] = 8;
  values[1] = 1000;
  const auto [selection, threshold] = gaussian_k(values, 50);
  // sigma = 10.0, z(1 - 0.0025) = 2.81: 28.2 finds 1, 14.1 finds 1, 7.0 finds 51.
  CHECK(selection.indices.size() == 51);
  CHECK(threshold == Approx(7.05).margin(0.1));
}

TEST_CASE("Random-k draws k distinct coordinates that all workers can repeat", "[selection]") {
  for (const std::size_t k : {1U, 10U, 99U, 100U, 200U}) {
    const auto draw = [&] { return random_k(100, k, RandomStream(7, Purpose::kSelection, 3)); };
    const auto indices = draw().indices;
    CHECK(indices.size() == std::min<std::size_t>(k, 100));
    CHECK(ascending_below(indices, 100));
    CHECK(indices == draw().indices);
  }
  CHECK(random_k(100, 10, RandomStream(7, Purpose::kSelection, 3)).indices !=
        random_k(100, 10, RandomStream(7, Purpose::kSelection, 4)).indices);
}

TEST_CASE("Random-k draws every coordinate equally often", "[selection]") {
  std::vector<int> drawn(20);
  for (std::uint64_t step = 0; step < 4000; ++step)
    for (const auto i : random_k(20, 5, RandomStream(1, Purpose::kSelection, step)).indices)
      ++drawn[i];
  // 1000 each; standard deviation sqrt(4000 * 0.25 * 0.75) = 27.
  CHECK(*std::min_element(drawn.begin(), drawn.end()) > 1000 - 4 * 27);
  CHECK(*std::max_element(drawn.begin(), drawn.end()) < 1000 + 4 * 27);
}

TEST_CASE("A random block is contiguous around the end", "[selection]") {
  std::set<std::uint32_t> starts;
  for (std::uint64_t step = 0; step < 200; ++step) {
    const auto indices = random_block(10, 4, RandomStream(1, Purpose::kSelection, step)).indices;
    REQUIRE(indices.size() == 4);
    REQUIRE(ascending_below(indices, 10));
    std::vector<bool> in(10);
    for (const auto i : indices) in[i] = true;
    int edges = 0;  // a cyclic run has one start
    for (std::uint32_t i = 0; i < 10; ++i)
      if (in[i] && !in[(i + 9) % 10]) {
        ++edges;
        starts.insert(i);
      }
    CHECK(edges == 1);
  }
  CHECK(starts.size() == 10);
  CHECK(random_block(5, 9, RandomStream(1, Purpose::kSelection)).indices.size() == 5);
}

TEST_CASE("Normal quantiles are the tabled ones", "[selection]") {
  CHECK(normal_quantile(0.5) == Approx(0).margin(1e-12));
  CHECK(normal_quantile(0.975) == Approx(1.959963984540054));
  CHECK(normal_quantile(1e-6) == Approx(-4.753424308822899));
  CHECK(normal_quantile(0.9995) == Approx(3.290526731491926));
}

TEST_CASE("The sort model charges d log2 k, the scan model O(d)", "[selection]") {
  const auto sort = [](std::size_t d, std::size_t k) {
    return top_k_work(d, k, SelectionCost::kSort).flops;
  };
  CHECK(sort(1000, 16) == 96 * 1000 * 4);
  CHECK(sort(1000, 256) == 2 * sort(1000, 16));
  const Work scan = top_k_work(1000, 0, SelectionCost::kScan);
  CHECK(scan.memory_bytes == 2 * 1000 * sizeof(Scalar));
  CHECK(top_k(normal_values(1000, 1), 16, SelectionCost::kSort).work.flops == sort(1000, 16));
  CHECK_THROWS_AS(parse_selection_cost("heap"), std::invalid_argument);
}

TEST_CASE("The norm of a sequence is Euclidean, whatever its length", "[selection]") {
  CHECK(norm({}) == 0);
  CHECK(norm(std::vector<Scalar>{3, -4}) == 5);
  for (const std::size_t d : {15U, 16U, 17U, 1000U})
    CHECK(norm(std::vector<Scalar>(d, Scalar{2})) == Approx(2 * std::sqrt(static_cast<double>(d))));
}
