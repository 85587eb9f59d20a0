#include "sim/event_queue.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace gradwire {
namespace {

TEST_CASE("events come back by date, those of one date in the order of their pushes") {
  // Few distinct dates, pushed and popped in turns; the model is a list sorted stably.
  EventQueue queue;
  std::vector<std::pair<double, std::uint32_t>> expected;
  std::uint64_t state = 1;
  double now_s = 0;
  std::vector<std::uint32_t> items;
  for (std::uint32_t item = 0; item < 20'000; ++item) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double date_s = now_s + static_cast<double>((state >> 33U) % 1500) / 7;
    queue.push(date_s, item);
    expected.emplace_back(date_s, item);
    if (item % 3 != 0) continue;
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    REQUIRE_FALSE(queue.empty());
    now_s = queue.next_date_s();
    queue.pop(items);
    REQUIRE_FALSE(items.empty());
    bool same = true;
    for (std::size_t i = 0; i < items.size(); ++i)
      same = same && expected[i] == std::pair(now_s, items[i]);
    REQUIRE(same);
    expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(items.size()));
  }
}

TEST_CASE("an event at the date just popped is an event of its own") {
  EventQueue queue;
  std::vector<std::uint32_t> items;
  queue.push(1, 7);
  queue.pop(items);
  CHECK(queue.empty());
  queue.push(1, 8);
  CHECK(queue.next_date_s() == 1);
  queue.pop(items);
  CHECK(items == std::vector<std::uint32_t>{8});
  CHECK(queue.empty());
}

}  // namespace
}  // namespace gradwire
