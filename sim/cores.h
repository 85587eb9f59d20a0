// The cores of one machine, shared in simulated time by all that computes there: n jobs on C cores
// each run at min(1, C/n), as threads under a fair scheduler do.
#pragma once

#include <list>
#include <simgrid/s4u.hpp>

namespace gradwire {

class Cores {
 public:
  explicit Cores(int count) : count_(count) {}

  /// Blocks the calling actor until it has had `seconds` of a core.
  void run(double seconds);

 private:
  double rate() const;
  void advance();
  void wake_all();

  int count_;
  double each_s_ = 0;   // of a core that every job running since the start would have had
  double since_s_ = 0;  // when each_s_ was true
  std::list<simgrid::s4u::SemaphorePtr> jobs_;  // each wakes its job when the rate changes
};

}  // namespace gradwire
