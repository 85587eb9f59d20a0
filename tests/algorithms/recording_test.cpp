#include "algorithms/recording.h"

#include <catch2/catch.hpp>

namespace gradwire {
namespace {

TEST_CASE("an event log gives back what was put in, whatever the number of distinct events") {
  for (const std::uint64_t distinct : {1, 2, 255, 256, 257, 65536, 65537, 70000}) {
    EventLog log;
    const auto event = [&](std::uint64_t i) {
      return Event{.kind = Event::Kind::kSend,
                   .peer = static_cast<std::int32_t>(i % 3),
                   .value = i * i % distinct};
    };
    const std::uint64_t size = distinct + 100;
    for (std::uint64_t i = 0; i < size; ++i) log.push_back(event(i));
    REQUIRE(log.size() == size);
    bool same = true;
    std::uint64_t i = 0;
    for (const Event& e : log) same = same && e == event(i++);
    CHECK(same);
    CHECK(i == size);
    CHECK(log[size - 1] == event(size - 1));
  }
}

TEST_CASE("equal charges are stored once") {
  LaneRecording lane;
  lane.add_charge(Phase::kForward, {.work = {.flops = 1}});
  lane.add_charge(Phase::kBackward, {.work = {.flops = 2}});
  lane.add_charge(Phase::kBackward, {.work = {.flops = 1}});
  lane.add_charge(Phase::kForward, {.work = {.flops = 1}, .cpu_s = 0.5});
  CHECK(lane.charges.size() == 3);
  CHECK(lane.charges[lane.events[2].value].work.flops == 1);
  CHECK(lane.events[2].phase == Phase::kBackward);
  CHECK(lane.charges[lane.events[3].value].cpu_s == 0.5);
}

}  // namespace
}  // namespace gradwire
