// A small Ethernet switch in user space, for networks whose delay the kernel cannot imitate here
// (no netem).  Every port is one worker's cable: frames leave at its rate, travel for its delay and
// that of the receiving port, queue there and arrive at that port's rate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace gradwire {

struct SwitchPort {
  double up_bit_per_s = 0;    ///< 0: unlimited
  double down_bit_per_s = 0;  ///< 0: unlimited
  double delay_s = 0;
  std::size_t queue_bytes = 1 << 20;  ///< towards the worker; what does not fit is dropped
};

/// Linux' virtio_net_hdr, whose header file is no C++ (a field is named class).
struct VirtioHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;  ///< 0: a single frame
  std::uint16_t header_bytes = 0;
  std::uint16_t segment_bytes = 0;
  std::uint16_t checksum_start = 0;  ///< of TCP's header, from the frame's start
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(VirtioHeader) == 10);

/// What a TAP device with IFF_VNET_HDR gives and takes at once: VirtioHeader, then an Ethernet
/// frame, or the payloads of several TCP frames behind the headers of one (TSO).
using Piece = std::vector<std::byte>;
using MacAddress = std::array<std::uint8_t, 6>;

/// The address of the worker's device at a port; frames to other addresses go nowhere, except
/// broadcasts.
MacAddress mac_of_port(std::size_t port);

/// A piece as it goes over a wire: frames of `bytes` each but for the last.
struct WireFrames {
  std::size_t count = 1;
  std::size_t bytes = 0;
  std::size_t last_bytes = 0;
};

/// Of a piece that holds at least a virtio header.
WireFrames wire_frames(std::span<const std::byte> piece);

/// The arithmetic of the switch, with the clock given by the caller, never going back.  A frame of
/// b bytes counts b: no preamble, no gap, as in Linux' tbf.  The frames of a piece travel and queue
/// one by one; the piece arrives with the last of them, or is lost with any of them.
class DelaySwitch {
 public:
  explicit DelaySwitch(std::vector<SwitchPort> ports);

  /// When the port takes its next piece: kLead_s before its uplink is idle, so that a late caller
  /// costs no bandwidth.  Until then pieces wait with the worker, as with a busy network card.
  double ready_s(std::size_t port) const;
  void accept(std::size_t port, std::span<const std::byte> piece, double now_s);

  /// The next piece whose last bit has arrived by `now_s`, and where.
  std::optional<std::pair<std::size_t, Piece>> deliver(double now_s);
  /// When to call deliver() next if nothing is accepted before; infinity if never.
  double next_event_s() const;
  std::int64_t dropped() const { return dropped_; }  ///< frames

  static constexpr double kLead_s = 1e-3;

 private:
  struct Transit {
    std::size_t from = 0;
    std::size_t to = 0;
    Piece piece;
    WireFrames frames;
    std::size_t queued = 0;  // frames that have reached the receiving port's queue
  };
  using Transits = std::map<std::pair<double, std::int64_t>, Transit>;  // by time, then age
  struct Clocks {
    double up_free_s = 0;
    double down_free_s = 0;
  };
  void enqueue_frame(Transits::node_type next);

  std::vector<SwitchPort> ports_;
  std::vector<Clocks> clocks_;
  double shortest_way_s_ = 0;  // of a frame to another port's queue
  Transits travelling_;        // until the next frame reaches the queue
  Transits arriving_;          // until the last frame reaches the worker
  std::int64_t accepted_ = 0;
  std::int64_t dropped_ = 0;
};

/// Switches between TAP devices (IFF_NO_PI, IFF_VNET_HDR, non-blocking), one per port, until the
/// process is killed.
[[noreturn]] void run_delay_switch(const std::vector<SwitchPort>& ports,
                                   const std::vector<int>& taps);

}  // namespace gradwire
