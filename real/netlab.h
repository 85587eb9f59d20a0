// A network on this machine with rates and delays of our choice: one network namespace per worker
// around a switch, for checking predictions against real TCP.  Rates alone are shaped by the
// kernel (tbf at both ends of each cable, a bridge between); with a delay a switch of our own does
// both (delay_switch.h).  Nothing has a name and the switch dies with its parent, so that nothing
// is left over however the process ends.  Needs root, ip and tc.
#pragma once

#include <sys/types.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "real/delay_switch.h"
#include "real/descriptor.h"

namespace gradwire {

/// Networks cannot be made here: no permission, a tool is missing.
struct LabUnavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What one worker sent to another, measured with plain TCP.
struct LabCheck {
  double round_trip_s = 0;           ///< of one byte, median
  double goodput_bit_per_s = 0;      ///< of a stream, after its slow start
  double expected_round_trip_s = 0;  ///< of the delays alone
  /// The slower port's rate less 66 bytes of headers a frame; 0: unlimited.
  double expected_goodput_bit_per_s = 0;
};

class NetLab {
 public:
  /// One port per worker, at least two.  A port's delay_s is that of its cable: a message crosses
  /// two.  queue_bytes counts only where there is a delay.  Throws LabUnavailable, and
  /// std::invalid_argument for rates or delays that make no sense.
  explicit NetLab(const std::vector<SwitchPort>& ports);
  ~NetLab();
  NetLab(const NetLab&) = delete;
  NetLab& operator=(const NetLab&) = delete;

  /// Moves the calling thread into the worker's network, where its interface is kInterface.
  void enter(int worker) const;
  static constexpr const char* kInterface = "eth0";

  /// Of a worker's interface, as text.
  static std::string address(int worker);

  /// Measures from worker `from` to worker `to` for about a second.
  LabCheck check(int from = 0, int to = 1) const;

  /// Ports up to a rate (bit/s) pass so many bytes at once after a pause; by rising rate.
  static std::vector<std::pair<double, double>> bursts();

  /// What it is made of: key (with unit) -> value.
  std::vector<std::pair<std::string, std::string>> constants() const;

 private:
  bool delayed() const;
  void make_bridge();
  void make_switch();

  std::vector<SwitchPort> ports_;
  Descriptor switch_network_;         // the bridge's namespace
  std::vector<Descriptor> networks_;  // by worker
  pid_t switch_ = -1;                 // the delaying one's process
};

}  // namespace gradwire
