// The switch's arithmetic against closed forms; its processes are tested in netlab_test.cpp.
#include "real/delay_switch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

using namespace gradwire;

namespace {

constexpr MacAddress kEveryone{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

Piece frame_to(const MacAddress& to, std::size_t bytes = 1250) {
  Piece piece(sizeof(VirtioHeader) + bytes);
  std::transform(to.begin(), to.end(), piece.begin() + sizeof(VirtioHeader),
                 [](auto b) { return std::byte{b}; });
  return piece;
}
Piece frame_to(std::size_t port, std::size_t bytes = 1250) {
  return frame_to(mac_of_port(port), bytes);
}

// Frames of 1250 bytes, 66 of them headers, but for the last.
constexpr std::uint16_t kHeader_bytes = 66;
Piece piece_to(std::size_t port, std::size_t frames, std::size_t last_bytes = 1250) {
  const std::size_t payload = (frames - 1) * (1250 - kHeader_bytes) + last_bytes - kHeader_bytes;
  Piece piece = frame_to(port, kHeader_bytes + payload);
  const VirtioHeader virtio{.flags = 1,
                            .gso_type = 1,
                            .header_bytes = 200,  // a hint; says nothing
                            .segment_bytes = 1250 - kHeader_bytes,
                            .checksum_start = 34,
                            .checksum_offset = 16};
  std::memcpy(piece.data(), &virtio, sizeof(virtio));
  piece[sizeof(virtio) + 34 + 12] = std::byte{(32 / 4) << 4};  // TCP's header: 32 bytes
  return piece;
}

struct Arrival {
  double time_s;
  std::size_t port;
};

// Takes everything out, each piece at its own time.
std::vector<Arrival> drain(DelaySwitch& network) {
  std::vector<Arrival> arrivals;
  while (std::isfinite(network.next_event_s())) {
    const double now_s = network.next_event_s();
    if (const auto piece = network.deliver(now_s)) arrivals.push_back({now_s, piece->first});
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
  network.accept(1, Piece(21), 1);
  CHECK(drain(network).empty());
}

TEST_CASE("Without rates only the delays count") {
  DelaySwitch network({{.delay_s = 0.1}, {.delay_s = 0.2}});
  network.accept(0, frame_to(1), 0);
  network.accept(0, frame_to(1), 0);
  for (const Arrival& arrival : drain(network)) CHECK(arrival.time_s == Approx(0.3));
}

TEST_CASE("A piece is as many frames as the kernel will cut it into") {
  const WireFrames single = wire_frames(frame_to(0, 77));
  CHECK((single.count == 1 && single.last_bytes == 77));
  const WireFrames whole = wire_frames(piece_to(0, 4));
  CHECK((whole.count == 4 && whole.bytes == 1250 && whole.last_bytes == 1250));
  const WireFrames ragged = wire_frames(piece_to(0, 3, 67));
  CHECK((ragged.count == 3 && ragged.bytes == 1250 && ragged.last_bytes == 67));
  const WireFrames short_one = wire_frames(piece_to(0, 1, 99));
  CHECK((short_one.count == 1 && short_one.bytes == 99 && short_one.last_bytes == 99));
  Piece cut = piece_to(0, 4);
  cut.resize(sizeof(VirtioHeader) + 40);  // ends before TCP says how long its header is
  CHECK(wire_frames(cut).last_bytes <= 40);
}

TEST_CASE("A piece arrives when the last of as many single frames would") {
  const auto [up, down] = GENERATE(table<double, double>(
      {{10e6, 10e6}, {10e6, 2e6}, {2e6, 10e6}, {9.9e6, 10e6}, {0., 10e6}, {10e6, 0.}, {0., 0.}}));
  const auto last_bytes = GENERATE(std::size_t{1250}, std::size_t{100});
  const SwitchPort sender{.up_bit_per_s = up, .delay_s = 0.005};
  const SwitchPort receiver{.down_bit_per_s = down, .delay_s = 0.002};
  CAPTURE(up, down, last_bytes);
  DelaySwitch singles({sender, receiver}), pieces({sender, receiver});
  for (int i = 0; i < 7; ++i) singles.accept(0, frame_to(1), 0);
  singles.accept(0, frame_to(1, last_bytes), 0);
  pieces.accept(0, piece_to(1, 8, last_bytes), 0);
  const auto arrivals = drain(pieces);
  REQUIRE(arrivals.size() == 1);
  CHECK(arrivals[0].time_s == Approx(drain(singles).back().time_s));
  CHECK(pieces.ready_s(0) == Approx(singles.ready_s(0)));
}

TEST_CASE("A piece passes two equal cables in the time of one and one frame") {
  DelaySwitch network({kPort, kPort});
  network.accept(0, piece_to(1, 8), 0);
  CHECK(drain(network).at(0).time_s == Approx(8 * 0.001 + 0.005 + 0.005 + 0.001));
}

TEST_CASE("Frames of two senders' pieces take turns on the receiver's cable") {
  DelaySwitch network({kPort, kPort, kPort});
  network.accept(0, piece_to(2, 4), 0);
  network.accept(1, piece_to(2, 4), 0);
  const auto arrivals = drain(network);
  REQUIRE(arrivals.size() == 2);
  CHECK(arrivals[0].time_s == Approx(0.011 + 0.007));
  CHECK(arrivals[1].time_s == Approx(0.011 + 0.008));
}

TEST_CASE("A piece of which a frame does not fit the queue is lost and counted by frames") {
  SwitchPort slow = kPort;
  slow.down_bit_per_s = 1e6;
  slow.queue_bytes = 2500;
  DelaySwitch network({{}, slow});
  network.accept(0, piece_to(1, 3), 0);
  CHECK(drain(network).empty());
  CHECK(network.dropped() == 3);
}

TEST_CASE("Pieces come out as they went in") {
  DelaySwitch network({kPort, kPort});
  network.accept(0, piece_to(1, 3, 99), 0);
  const auto piece = network.deliver(1);
  REQUIRE(piece);
  CHECK(piece->second == piece_to(1, 3, 99));
}
