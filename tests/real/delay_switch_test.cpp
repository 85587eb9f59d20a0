// The switch's arithmetic against closed forms; its processes are tested in netlab_test.cpp.
#include "real/delay_switch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

using namespace gradwire;

namespace {

constexpr MacAddress kEveryone{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

Frame frame_to(const MacAddress& to, std::size_t bytes = 1250) {
  Frame frame(bytes);
  std::transform(to.begin(), to.end(), frame.begin(), [](auto b) { return std::byte{b}; });
  return frame;
}
Frame frame_to(std::size_t port, std::size_t bytes = 1250) {
  return frame_to(mac_of_port(port), bytes);
}

struct Arrival {
  double time_s;
  std::size_t port;
};

// Takes everything out, each frame at its own time.
std::vector<Arrival> drain(DelaySwitch& network) {
  std::vector<Arrival> arrivals;
  while (std::isfinite(network.next_event_s())) {
    const double now_s = network.next_event_s();
    if (const auto frame = network.deliver(now_s)) arrivals.push_back({now_s, frame->first});
  }
  return arrivals;
}

// 1250 bytes are 1 ms on a port of this kind.
const SwitchPort kPort{.up_bit_per_s = 10e6, .down_bit_per_s = 10e6, .delay_s = 0.005};

}  // namespace

TEST_CASE("A frame takes its time on both cables and both delays") {
  DelaySwitch network({kPort, {.up_bit_per_s = 10e6, .down_bit_per_s = 2e6, .delay_s = 0.02}});
  network.accept(0, frame_to(1), 1.0);
  const auto arrivals = drain(network);
  REQUIRE(arrivals.size() == 1);
  CHECK(arrivals[0].port == 1);
  CHECK(arrivals[0].time_s == Approx(1.0 + 0.001 + 0.005 + 0.02 + 0.005));
}

TEST_CASE("A stream leaves at the uplink's rate, whenever it is taken within the lead") {
  DelaySwitch network({kPort, kPort});
  for (int i = 0; i < 5; ++i) network.accept(0, frame_to(1), std::max(0.0, network.ready_s(0)));
  const auto arrivals = drain(network);
  REQUIRE(arrivals.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(arrivals[i].time_s == Approx(0.012 + 0.001 * static_cast<double>(i)));
}

TEST_CASE("Two senders share the receiver's cable and one waits for the other") {
  DelaySwitch network({kPort, kPort, kPort});
  network.accept(0, frame_to(2), 0);
  network.accept(1, frame_to(2), 0);
  const auto arrivals = drain(network);
  REQUIRE(arrivals.size() == 2);
  CHECK(arrivals[0].time_s == Approx(0.012));
  CHECK(arrivals[1].time_s == Approx(0.013));
}

TEST_CASE("A late caller gets frames in the order of their times, and lateness does not add up") {
  DelaySwitch network({kPort, kPort, {.down_bit_per_s = 10e6}});
  network.accept(0, frame_to(2), 0.0000);
  network.accept(1, frame_to(2), 0.0002);
  CHECK_FALSE(network.deliver(0.0069));
  CHECK(network.deliver(1.0));  // both long overdue
  CHECK(network.next_event_s() == Approx(0.008));
}

TEST_CASE("A full queue drops what does not fit and counts it") {
  SwitchPort slow = kPort;
  slow.down_bit_per_s = 1e6;
  slow.queue_bytes = 2500;
  DelaySwitch network({{}, slow});
  for (int i = 0; i < 5; ++i) network.accept(0, frame_to(1), 0);
  CHECK(drain(network).size() == 2);
  CHECK(network.dropped() == 3);
}

TEST_CASE("A broadcast reaches all others, an unknown address nobody, a stump is ignored") {
  DelaySwitch network({kPort, kPort, kPort});
  network.accept(1, frame_to(kEveryone), 0);
  const auto arrivals = drain(network);
  REQUIRE(arrivals.size() == 2);
  CHECK(arrivals[0].port + arrivals[1].port == 2);
  network.accept(1, frame_to(9), 1);
  network.accept(1, Frame(11), 1);
  CHECK(drain(network).empty());
}

TEST_CASE("Without rates only the delays count") {
  DelaySwitch network({{.delay_s = 0.1}, {.delay_s = 0.2}});
  network.accept(0, frame_to(1), 0);
  network.accept(0, frame_to(1), 0);
  for (const Arrival& arrival : drain(network)) CHECK(arrival.time_s == Approx(0.3));
}
