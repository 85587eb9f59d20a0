// Where one algorithm overtakes another: sign changes of a difference of batch times over the
// bandwidth, bracketed by a grid and closed in on by TOMS 748 (Alefeld, Potra and Shi 1995), a
// bisection that interpolates.
#pragma once

#include <functional>
#include <vector>

namespace gradwire {

/// Batch times of two algorithms at a bandwidth.
struct TimePair {
  double bandwidth_bit_per_s;
  double first_s;
  double second_s;
  /// -1: the first is faster, 1: the second; 0: equal within one part in 1e9.
  int faster() const;
};

/// Between two neighbouring points of the grid, equal ones left out.
struct Bracket {
  TimePair below;
  TimePair above;
};
/// `grid`: slowest network first.
std::vector<Bracket> find_brackets(const std::vector<TimePair>& grid);

/// The bandwidth of equal times within a bracket, to one part in 1000 at most.
double close_in(const Bracket& bracket, const std::function<TimePair(double)>& times_at);

}  // namespace gradwire
