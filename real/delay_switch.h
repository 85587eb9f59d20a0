// A small Ethernet switch in user space, for networks whose delay the kernel cannot imitate here
// (no netem).  Every port is one worker's cable: frames leave at its rate, travel for its delay and
// that of the receiving port, queue there and arrive at that port's rate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace gradwire {

struct SwitchPort {
  double up_bit_per_s = 0;    ///< 0: unlimited
  double down_bit_per_s = 0;  ///< 0: unlimited
  double delay_s = 0;
  std::size_t queue_bytes = 1 << 20;  ///< towards the worker; what does not fit is dropped
};

using Frame = std::vector<std::byte>;
using MacAddress = std::array<std::uint8_t, 6>;

/// The address of the worker's device at a port; frames to other addresses go nowhere, except
/// broadcasts.
MacAddress mac_of_port(std::size_t port);

/// The arithmetic of the switch, with the clock given by the caller, never going back.  A frame of
/// b bytes counts b: no preamble, no gap, as in Linux' tbf.
class DelaySwitch {
 public:
  explicit DelaySwitch(std::vector<SwitchPort> ports);

  /// When the port takes its next frame: kLead_s before its uplink is idle, so that a late caller
  /// costs no bandwidth.  Until then frames wait with the worker, as with a busy network card.
  double ready_s(std::size_t port) const;
  void accept(std::size_t port, const Frame& frame, double now_s);

  /// The next frame whose last bit has arrived by `now_s`, and where.
  std::optional<std::pair<std::size_t, Frame>> deliver(double now_s);
  /// When something happens without further frames; infinity if nothing does.
  double next_event_s() const;
  std::int64_t dropped() const { return dropped_; }

  static constexpr double kLead_s = 1e-3;

 private:
  struct Event {
    bool arrived = false;  // at the worker; else at the receiving port's queue
    std::size_t port = 0;
    Frame frame;
  };
  struct Clocks {
    double up_free_s = 0;
    double down_free_s = 0;
  };
  void schedule(double time_s, Event event);
  void enqueue(double time_s, Event event);

  std::vector<SwitchPort> ports_;
  std::vector<Clocks> clocks_;
  std::map<std::pair<double, std::int64_t>, Event> events_;  // by time, then age
  std::int64_t scheduled_ = 0;
  std::int64_t dropped_ = 0;
};

/// Switches between TAP devices (IFF_NO_PI, non-blocking), one per port, until the process is
/// killed.
[[noreturn]] void run_delay_switch(const std::vector<SwitchPort>& ports,
                                   const std::vector<int>& taps);

}  // namespace gradwire
