// The cores of one machine, shared in simulated time by all that computes there: n jobs on C cores
// each run at min(1, C/n), as threads under a fair scheduler do.  Messages come before mathematics,
// as in a network lab (real/scheduling.h).
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <simgrid/s4u.hpp>

namespace gradwire {

enum class Urgency : std::uint8_t { kMessages, kMathematics };

class Cores {
 public:
  explicit Cores(int count) : count_(count) {}

  /// Blocks the calling actor until it has had `seconds` of a core.
  void run(double seconds, Urgency urgency);

  /// What all cores together have spent on mathematics so far.
  double mathematics_s();

 private:
  // Jobs of one urgency, which all run at the same rate.
  struct Queue {
    double each_s = 0;  // of a core that every job running since the start would have had
    std::list<simgrid::s4u::SemaphorePtr> jobs;  // each wakes its job when rates change
  };
  double rate(Urgency urgency) const;
  Queue& queue(Urgency urgency) { return queues_[static_cast<std::size_t>(urgency)]; }
  void advance();
  void wake_all();

  int count_;
  double since_s_ = 0;  // when the queues' each_s were true
  double mathematics_s_ = 0;
  std::array<Queue, 2> queues_;
};

}  // namespace gradwire
