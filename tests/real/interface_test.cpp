#include "real/interface.h"

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace gradwire;

TEST_CASE("Loopback is found by its name with its numeric IPv4 address") {
  CHECK(find_interface("lo").address == "127.0.0.1");
  CHECK(loopback().address == "127.0.0.1");
}

TEST_CASE("An unknown interface is refused with the names of those that are up") {
  CHECK_THROWS_AS(find_interface("gradwire9"), std::invalid_argument);
  CHECK_THROWS_WITH(find_interface("gradwire9"),
                    Catch::Contains("gradwire9") && Catch::Contains("lo"));
}
