#include "analysis/crossover_search.h"

#include <catch2/catch.hpp>

namespace gradwire {

namespace {

// Compute plus bits over the bandwidth: "dense" 1 s and 8e9 bit, "compressed" 3 s and 8e8 bit.
// They are equal where 7.2e9 / x = 2, at 3.6e9 bit/s.
TimePair at(double x) { return {x, 1 + 8e9 / x, 3 + 8e8 / x}; }

}  // namespace

TEST_CASE("a crossover of two straight costs is found where algebra puts it, with few replays") {
  const auto brackets = find_brackets({at(1e8), at(1e9), at(1e10), at(1e11)});
  REQUIRE(brackets.size() == 1);
  CHECK(brackets[0].below.bandwidth_bit_per_s == 1e9);
  CHECK(brackets[0].above.bandwidth_bit_per_s == 1e10);
  int replays = 0;
  const double crossing = close_in(brackets[0], [&](double x) {
    ++replays;
    return at(x);
  });
  CHECK(crossing == Approx(3.6e9).epsilon(1e-3));
  CHECK(replays <= 8);
}

TEST_CASE("equal times are nobody's lead: no crossover begins or ends in them") {
  CHECK(TimePair{1, 2, 2 * (1 + 1e-12)}.faster() == 0);
  CHECK(TimePair{1, 2, 3}.faster() == -1);
  CHECK(TimePair{1, 3, 2}.faster() == 1);
  CHECK(find_brackets({{1, 1, 2}, {2, 1, 1}, {3, 1, 2}}).empty());
  const auto through_equal = find_brackets({{1, 1, 2}, {2, 1, 1}, {3, 2, 1}});
  REQUIRE(through_equal.size() == 1);
  CHECK(through_equal[0].above.bandwidth_bit_per_s == 3);
  CHECK(find_brackets({}).empty());
}

TEST_CASE("leads that change twice have two crossovers") {
  CHECK(find_brackets({{1, 1, 2}, {2, 2, 1}, {3, 1, 2}}).size() == 2);
}

}  // namespace gradwire
