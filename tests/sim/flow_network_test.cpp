// Flows whose rates are worked out by hand; bandwidths in bytes/s.
#include "sim/flow_network.h"

#include <catch2/catch.hpp>

namespace gradwire {
namespace {

struct Transfer {
  std::vector<std::uint32_t> links;
  double bytes;
  double start_s = 0;
};

/// When each transfer ends.
std::vector<double> end_times_s(const std::vector<RouteTable::Link>& links,
                                const std::vector<Transfer>& transfers) {
  FlowNetwork network{RouteTable(links)};
  EventQueue queue;
  const auto count = static_cast<std::uint32_t>(transfers.size());
  std::vector<FlowNetwork::Path> paths;
  for (const Transfer& t : transfers) paths.push_back(network.path(t.links));
  for (std::uint32_t i = 0; i < count; ++i) queue.push(transfers[i].start_s, count + i);
  std::vector<double> ends_s(transfers.size(), -1);
  std::vector<std::uint32_t> items;
  while (!queue.empty()) {
    const double now_s = queue.next_date_s();
    queue.pop(items);
    for (const std::uint32_t item : items) {
      if (item >= count) {
        const std::uint32_t i = item - count;
        network.start(i, paths[i], transfers[i].bytes, now_s, queue);
      } else if (network.is_due(item, now_s)) {
        network.end(item);
        ends_s[item] = now_s;
      }
    }
    network.share(now_s, queue);
  }
  return ends_s;
}

RouteTable::Link shared(double bandwidth) { return {.bandwidth_byte_per_s = bandwidth}; }
RouteTable::Link fatpipe(double bandwidth) {
  return {.bandwidth_byte_per_s = bandwidth, .shared = false};
}
Approx about(double x) { return Approx(x).epsilon(1e-12).margin(0); }

TEST_CASE("a flow alone takes its bytes over its slowest link, one of no bytes no time") {
  const auto ends_s = end_times_s({shared(8), shared(2), fatpipe(4)},
                                  {{{0, 1}, 6, 1}, {{0, 2}, 8, 10}, {{0}, 0, 20}});
  CHECK(ends_s[0] == about(4));
  CHECK(ends_s[1] == about(12));
  CHECK(ends_s[2] == about(20));
}

TEST_CASE("a flow held back elsewhere leaves the rest of a link to the others") {
  // SimGrid's Lazy mode with latencies gives 0.5 s for both.
  const auto ends_s = end_times_s({shared(1e9), shared(0.25e9)}, {{{0}, 250e6}, {{0, 1}, 250e6}});
  CHECK(ends_s[0] == about(250e6 / 0.75e9));
  CHECK(ends_s[1] == about(1));
}

TEST_CASE("a flow that comes later takes its share from then on") {
  // Alone until 1 (10 bytes of 40 done), half until the second's 20 bytes end at 5, then alone.
  const auto ends_s = end_times_s({shared(10)}, {{{0}, 40}, {{0}, 20, 1}});
  CHECK(ends_s[1] == about(5));
  CHECK(ends_s[0] == about(6));
}

TEST_CASE("a link that is not shared gives all of itself to each flow") {
  const auto ends_s =
      end_times_s({fatpipe(10), shared(30)}, {{{0, 1}, 10}, {{0, 1}, 10}, {{1}, 10}});
  for (const double end_s : ends_s) CHECK(end_s == about(1));
  // Two are held to 10 by it; of the 60 of the shared link the third gets 40.
  const auto uneven =
      end_times_s({fatpipe(10), shared(60)}, {{{0, 1}, 10}, {{0, 1}, 10}, {{1}, 40}});
  CHECK(uneven[0] == about(1));
  CHECK(uneven[2] == about(1));
}

TEST_CASE("max-min filling goes link by link from the tightest") {
  // Link 0 (10) has flows a, b; link 1 (100) has b, c, d: a = b = 5, c = d = 47.5.
  const auto ends_s =
      end_times_s({shared(10), shared(100)}, {{{0}, 5}, {{0, 1}, 5}, {{1}, 47.5}, {{1}, 47.5}});
  for (const double end_s : ends_s) CHECK(end_s == about(1));
}

}  // namespace
}  // namespace gradwire
