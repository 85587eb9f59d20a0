// The network labs of one scenario after another on this machine.
#pragma once
#ifdef GRADWIRE_WITH_GLOO

#include <memory>
#include <string>
#include <tuple>

#include "algorithms/report.h"
#include "real/netlab.h"

namespace gradwire {

/// One made for the last scenario is used again.
class LocalNetwork {
 public:
  /// Of the scenario's workers, bandwidth and cable delay (its latency).  Null for loopback, also
  /// where a lab is wanted but cannot be made: see obstacle().
  const NetLab* of(const Scenario& s);
  const std::string& obstacle() const { return obstacle_; }

  /// What the lab's own check found: into the report, and a warning if it is not as it should be.
  void describe(Result& result) const;
  /// Empty if the lab is as it should be.
  std::string complaint() const;

 private:
  using Key = std::tuple<int, double, double>;
  Key key_{0, 0, 0};
  std::unique_ptr<NetLab> lab_;
  LabCheck check_;
  std::string obstacle_;
};

}  // namespace gradwire

#endif
