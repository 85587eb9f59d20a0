// Flows over links of a RouteTable under the exact model: at every moment the rates are max-min
// fair, a link's bandwidth is shared by the flows that cross it, links have no latency (it is added
// at the receiver).  It is what SimGrid's CM02 computes in that configuration, for plain values.
//
// A flow that meets no other on its links costs a constant; when flows meet or part, only the flows
// connected to them through links are solved again (progressive filling; Bertsekas & Gallager,
// Data Networks, section 6.5.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/event_queue.h"
#include "sim/route_table.h"

namespace gradwire {

class FlowNetwork {
 public:
  explicit FlowNetwork(const RouteTable& routes);

  /// Where a flow goes, worked out once.
  struct Path {
    std::span<const std::uint32_t> links;
    double bound_byte_per_s = 0;      ///< of the slowest link
    double own_bound_byte_per_s = 0;  ///< of the slowest link that is not shared
  };
  Path path(std::span<const std::uint32_t> links) const;

  /// A flow starts; its number is then in `queue` at the date of its end.  If the end moves, it is
  /// there a second time: an event counts only if the flow is_due().  `path` must stay.
  void start(std::uint32_t flow, const Path& path, double bytes, double now_s, EventQueue& queue);
  bool is_due(std::uint32_t flow, double date_s) const {
    return flows_[flow].active && flows_[flow].end_s == date_s;
  }
  void end(std::uint32_t flow);

  /// Once all that happens at `now_s` has happened: new rates for the flows that met or parted.
  void share(double now_s, EventQueue& queue);

  /// Whether flows have met so far.
  bool contended() const { return contended_; }

 private:
  struct Flow {
    const Path* path = nullptr;
    double remaining_bytes = 0;  // at since_s
    double rate = 0;
    double since_s = 0;
    double end_s = 0;
    bool active = false;
    bool seen = false;  // while a component is gathered
  };
  struct Link {
    double bandwidth;
    bool shared;
    bool dirty = false;
    bool seen = false;
    std::vector<std::uint32_t> flows;
    double left = 0;            // while solving: bandwidth not given away
    std::uint32_t waiting = 0;  // and flows without a rate
  };

  void touch(std::uint32_t link);
  bool move(std::uint32_t flow, double now_s);
  void gather(std::uint32_t link);
  void solve();
  std::uint32_t tightest_link();
  void give(std::uint32_t flow, double rate);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> dirty_;
  bool contended_ = false;
  // Scratch of share():
  std::vector<std::uint32_t> component_links_, component_flows_;
  std::vector<std::uint32_t> open_;     // links with undecided flows
  std::vector<std::uint32_t> bounded_;  // flows with a bound of their own, the tightest last
  std::vector<double> new_rate_;        // by flow
};

}  // namespace gradwire
