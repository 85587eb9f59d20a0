#include "algorithms/devices.h"

#include <catch2/catch.hpp>

namespace gradwire {
namespace {

TEST_CASE("Device presets are achieved rates, below the devices' peaks") {
  CHECK(find_device("v100-fp32").flop_per_s == Approx(9.0e12).epsilon(0.01));
  CHECK(find_device("v100-fp32").flop_per_s < 0.6 * 15.7e12);
  CHECK(find_device("a100-tf32").flop_per_s == Approx(23.0e12).epsilon(0.01));
  CHECK(find_device("a100-amp").flop_per_s < 0.25 * 312e12);
}

TEST_CASE("An unknown device is refused with the known ones") {
  CHECK_THROWS_WITH(find_device("tpu"), Catch::Contains("cpu-core, v100-fp32"));
}

}  // namespace
}  // namespace gradwire
