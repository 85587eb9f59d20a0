#include "analysis/parallel.h"

#include <catch2/catch.hpp>
#include <stdexcept>

namespace gradwire {

TEST_CASE("every index is visited once, for any number of jobs") {
  for (const int jobs : {0, 1, 3, 100}) {
    std::vector<std::atomic<int>> visits(17);
    parallel_for(visits.size(), jobs, [&](std::size_t i) { ++visits[i]; });
    for (const auto& count : visits) CHECK(count == 1);
  }
  parallel_for(0, 2, [](std::size_t) { FAIL("no index to visit"); });
}

TEST_CASE("an exception ends the loop and reaches the caller") {
  CHECK_THROWS_WITH(parallel_for(100, 2,
                                 [](std::size_t i) {
                                   if (i == 0) throw std::runtime_error("number 0");
                                 }),
                    "number 0");
}

}  // namespace gradwire
