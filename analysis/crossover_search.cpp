#include "analysis/crossover_search.h"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <optional>

namespace gradwire {

namespace {
constexpr double kEqual = 1e-9;
constexpr double kTolerance = 1e-3;
constexpr std::uintmax_t kMaxEvaluations = 40;
}  // namespace

int TimePair::faster() const {
  if (std::abs(first_s - second_s) <= kEqual * std::max(first_s, second_s)) return 0;
  return first_s < second_s ? -1 : 1;
}

std::vector<Bracket> find_brackets(const std::vector<TimePair>& grid) {
  std::vector<Bracket> brackets;
  std::optional<TimePair> previous;
  for (const TimePair& point : grid) {
    if (point.faster() == 0) continue;
    if (previous && previous->faster() != point.faster()) brackets.push_back({*previous, point});
    previous = point;
  }
  return brackets;
}

double close_in(const Bracket& bracket, const std::function<TimePair(double)>& times_at) {
  // The relative difference over the bandwidth's logarithm is close to a straight line.
  const auto difference = [](const TimePair& t) {
    return (t.first_s - t.second_s) / std::max(t.first_s, t.second_s);
  };
  std::uintmax_t evaluations = kMaxEvaluations;
  const auto [low, high] = boost::math::tools::toms748_solve(
      [&](double x) { return difference(times_at(std::exp(x))); },
      std::log(bracket.below.bandwidth_bit_per_s), std::log(bracket.above.bandwidth_bit_per_s),
      difference(bracket.below), difference(bracket.above),
      [](double a, double b) { return std::abs(b - a) < kTolerance; }, evaluations);
  return std::exp((low + high) / 2);
}

}  // namespace gradwire
