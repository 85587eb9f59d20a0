// Who else computes on this machine: real runs share its cores with whatever else is running, and a
// measurement that was disturbed says nothing.  Sums what /proc says of each process.
#pragma once

#include <chrono>
#include <thread>

namespace gradwire {

/// Watches from its construction on.
class ForeignLoad {
 public:
  ForeignLoad();
  /// Share of all cores' time that went to processes other than this one and its children, kernel
  /// threads apart (they work for those that send); 0 where the system does not say.
  double share() const;

  static constexpr double kTolerable = 0.02;

 private:
  double foreign_s_;  // at the start
  std::chrono::steady_clock::time_point start_;
};

/// Calls `measure()` until nobody else computed meanwhile, at most `tries` times.  `disturbed` says
/// whether the last result is one with company.
template <class Measure>
auto measure_undisturbed(int tries, bool& disturbed, const Measure& measure) {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(500))) {
    const ForeignLoad load;
    auto found = measure();
    disturbed = load.share() > ForeignLoad::kTolerable;
    if (!disturbed || --tries <= 0) return found;
  }
}

}  // namespace gradwire
