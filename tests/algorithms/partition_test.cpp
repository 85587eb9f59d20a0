#include "algorithms/partition.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "models/random.h"

using namespace gradwire;

namespace {

double load(const std::vector<std::size_t>& bin, const std::vector<double>& costs) {
  double sum = 0;
  for (const std::size_t item : bin) sum += costs[item];
  return sum;
}

// The smallest possible largest load, by trying all assignments.
double best_makespan(const std::vector<double>& costs, std::vector<double> loads,
                     std::size_t item) {
  if (item == costs.size()) return *std::max_element(loads.begin(), loads.end());
  double best = 1e300;
  for (double& bin : loads) {
    bin += costs[item];
    best = std::min(best, best_makespan(costs, loads, item + 1));
    bin -= costs[item];
  }
  return best;
}

}  // namespace

TEST_CASE("Even bounds cut a buffer into parts that differ by one at most", "[partition]") {
  CHECK(even_bounds(11, 4) == std::vector<std::size_t>{0, 3, 6, 9, 11});
  CHECK(even_bounds(2, 4) == std::vector<std::size_t>{0, 1, 2, 2, 2});
  CHECK(even_bounds(0, 2) == std::vector<std::size_t>{0, 0, 0});
}

TEST_CASE("Every step gives each part one owner, a rotation each worker all parts", "[partition]") {
  for (const int n : {1, 2, 3, 5, 8, 64})
    for (int a = 0; a < n; ++a) {
      std::set<int> at_a_step;
      std::set<int> of_a_worker;
      for (int b = 0; b < n; ++b) {
        at_a_step.insert(owned_part(1000 + a, b, n));
        of_a_worker.insert(owned_part(1000 + b, a, n));
      }
      CHECK(at_a_step.size() == static_cast<std::size_t>(n));
      CHECK(of_a_worker.size() == static_cast<std::size_t>(n));
    }
}

TEST_CASE("The threshold rises above the target and falls below it", "[partition]") {
  const auto after = [](double e, bool symmetric) {
    ThresholdControl control(symmetric);
    control.start(1);
    control.update(e);
    return static_cast<double>(control.value());
  };
  CHECK(after(2, false) == Approx(1.005));
  CHECK(after(1.05, false) == Approx(1.00125));
  CHECK(after(0.95, false) == Approx(1.00125));
  CHECK(after(0.95, true) == Approx(0.9987));
  CHECK(after(1.05, true) == Approx(1.00125));
  CHECK(after(0.5, false) == Approx(0.995));
  CHECK(after(0, true) == Approx(0.995));
}

TEST_CASE("ExDyna's blocks always sum to 1024, contiguous and above the least", "[partition]") {
  RandomStream stream(1, Purpose::kSyntheticTensor);
  for (const int n : {1, 2, 3, 7, 64})
    for (const std::size_t d : {5U, 1023U, 1024U, 40000U, 100003U}) {
      BlockPartition partition(d, n);
      for (int t = 0; t < 300; ++t) {
        std::vector<std::size_t> selected(static_cast<std::size_t>(n));
        for (std::size_t& k : selected) k = stream.below(100);
        partition.rebalance(selected, 0.01);
        const auto& blocks = partition.blocks();
        REQUIRE(std::accumulate(blocks.begin(), blocks.end(), std::size_t{0}) == 1024);
        REQUIRE(*std::min_element(blocks.begin(), blocks.end()) >=
                std::max<std::size_t>(1, 1024 / (4 * static_cast<std::size_t>(n))));
        const auto bounds = partition.bounds();
        REQUIRE(std::is_sorted(bounds.begin(), bounds.end()));
        REQUIRE(bounds.front() == 0);
        REQUIRE(bounds.back() == d);
      }
    }
}

TEST_CASE("ExDyna moves one block from a loaded part to an idle neighbour", "[partition]") {
  BlockPartition partition(65536, 4);  // 64 values a block
  partition.rebalance({30, 10, 10, 10}, 0.01);
  CHECK(partition.blocks() == std::vector<std::size_t>{255, 257, 256, 256});
  partition.rebalance({10, 10, 30, 10}, 0.01);  // to the left; then 29.4 against 10: to the right
  CHECK(partition.blocks() == std::vector<std::size_t>{255, 258, 254, 257});
  partition.rebalance({10, 10, 10, 10}, 0.01);
  CHECK(partition.blocks() == std::vector<std::size_t>{255, 258, 254, 257});
  for (int t = 0; t < 500; ++t) partition.rebalance({90, 1, 1, 1}, 0.01);
  CHECK(partition.blocks().front() == 64);  // 1024 / 16
}

TEST_CASE(
    "ExDyna's borders move until neighbours select alike, but not across a part that has its share",
    "[partition]") {
  // The first quarter of 65536 values holds all 1024 candidates, 4 a block.
  const auto settled = [](int parts) {
    BlockPartition partition(65536, parts);
    std::vector<std::size_t> selected(static_cast<std::size_t>(parts));
    for (int t = 0; t < 600; ++t) {
      const auto bounds = partition.bounds();
      for (std::size_t p = 0; p < selected.size(); ++p)
        selected[p] = (std::min<std::size_t>(bounds[p + 1], 16384) -
                       std::min<std::size_t>(bounds[p], 16384)) /
                      16;
      partition.rebalance(selected, 1.0 / 64);
    }
    return selected;
  };
  CHECK(settled(2) == std::vector<std::size_t>{536, 488});  // 488 is the first above 512 / 1.05
  // 244 is above 256 / 1.05, so part 1 takes no more, and below 1.05 * 256, so it gives nothing.
  CHECK(settled(4) == std::vector<std::size_t>{780, 244, 0, 0});
}

TEST_CASE("DEFT cuts the large tensors into one piece per worker", "[partition]") {
  const std::vector<std::size_t> tensors{0, 10, 100, 102};
  CHECK(deft_pieces(tensors, 4) == std::vector<std::size_t>{0, 10, 33, 56, 78, 100, 102});
  CHECK(deft_pieces(tensors, 1) == tensors);
}

TEST_CASE("DEFT's counts follow the norms", "[partition]") {
  const std::vector<std::size_t> bounds{0, 100, 200, 300, 302};
  // By descending norm: floor(60 * 6/12) = 30, floor(30 * 3/6) = 15, floor(15 * 2/3) = 10, then
  // floor(5 * 1/1) = 5, at most 2; the 3 that are left go to the largest norm.
  CHECK(deft_counts(std::vector<double>{3, 6, 2, 1}, bounds, 60) ==
        std::vector<std::size_t>{15, 33, 10, 2});
  CHECK(deft_counts(std::vector<double>{0, 0, 0, 0}, bounds, 60) ==
        std::vector<std::size_t>{57, 1, 1, 1});
}

TEST_CASE("DEFT's counts are at least k, and exceed it by at most the number of pieces",
          "[partition]") {
  RandomStream stream(2, Purpose::kSyntheticTensor);
  for (int t = 0; t < 100; ++t) {
    std::vector<std::size_t> bounds{0};
    std::vector<double> norms;
    for (int p = 0; p < 20; ++p) {
      bounds.push_back(bounds.back() + 1 + stream.below(50));
      norms.push_back(stream.uniform());
    }
    const std::size_t k = 1 + stream.below(bounds.back());
    const auto counts = deft_counts(norms, bounds, k);
    const auto total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    CHECK(total >= k);
    CHECK(total <= k + 20);
    for (std::size_t p = 0; p < 20; ++p) {
      CHECK(counts[p] >= 1);
      CHECK(counts[p] <= bounds[p + 1] - bounds[p]);
    }
  }
}

TEST_CASE("Longest-first packing is within 4/3 of the best", "[partition]") {
  RandomStream stream(3, Purpose::kSyntheticTensor);
  for (int t = 0; t < 60; ++t) {
    std::vector<double> costs(8);
    for (double& c : costs) c = 1 + static_cast<double>(stream.below(40));
    const auto bins = lpt_bins(costs, 3);
    std::set<std::size_t> packed;
    double worst = 0;
    for (const auto& bin : bins) {
      worst = std::max(worst, load(bin, costs));
      packed.insert(bin.begin(), bin.end());
    }
    CHECK(packed.size() == costs.size());
    CHECK(worst <= 4.0 / 3 * best_makespan(costs, std::vector<double>(3), 0));
  }
  CHECK(lpt_bins({}, 3).size() == 3);
}
