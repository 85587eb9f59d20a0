#include "analysis/units.h"

#include <catch2/catch.hpp>
#include <stdexcept>

namespace gradwire {

TEST_CASE("bits and bytes differ by eight, k and Ki by 1.024") {
  CHECK(parse_bandwidth_bit_per_s("bandwidth", "10Gbps") == 10e9);
  CHECK(parse_bandwidth_bit_per_s("bandwidth", "1.25GBps") == 10e9);
  CHECK(parse_bandwidth_bit_per_s("bandwidth", "100 Mbps") == 100e6);
  CHECK(parse_bytes("sizes", "64k") == 64000);
  CHECK(parse_bytes("sizes", "64KiB") == 65536);
  CHECK(parse_bytes("sizes", "25MiB") == 25 * 1048576.0);
  CHECK(parse_bytes("sizes", "0") == 0);
  CHECK(parse_flop_per_s("device-rate", "50Gf") == 50e9);
  CHECK(parse_time_s("latency", "50us") == 50e-6);
  CHECK(parse_time_s("latency", "2m") == 120);
  CHECK(parse_time_s("latency", "0") == 0);
}

TEST_CASE("a bandwidth without unit, of zero, negative or not finite is refused") {
  for (const char* text : {"", "10", "0bps", "0Gbps", "-1Gbps", "nanbps", "nan", "inf", "infGbps",
                           "1Gb", "10Gbits", "1 furlong", "1GbpsX", "1e400Gbps"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_bandwidth_bit_per_s("bandwidth", text), std::invalid_argument);
  }
  CHECK_THROWS_WITH(parse_bandwidth_bit_per_s("bandwidth", "10"),
                    Catch::StartsWith("bandwidth: \"10\" is not") && Catch::Contains("10Gbps"));
}

TEST_CASE("a negative or unitless time is refused") {
  for (const char* text : {"", "5", "-1us", "nans", "us", "1 parsec"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_time_s("latency", text), std::invalid_argument);
  }
}

TEST_CASE("a quantity beyond all sense is refused with the user's own text and the range") {
  CHECK_THROWS_WITH(parse_time_s("latency", "1e300s"),
                    Catch::StartsWith("latency: \"1e300s\" is not a time") &&
                        Catch::Contains("up to 1000000000s"));
  CHECK_THROWS_WITH(parse_bandwidth_bit_per_s("bandwidth", "1e-308bps"),
                    Catch::Contains("from 1bps to"));
  CHECK_THROWS_WITH(parse_flop_per_s("device-rate", "1e-305f"), Catch::Contains("from 1f to"));
  CHECK_THROWS_WITH(parse_bytes("sizes", "99999999999999999999"), Catch::Contains("up to 100TB"));
  CHECK_THROWS_AS(parse_bytes("sizes", "9223372036854775808"), std::invalid_argument);
}

TEST_CASE("written quantities are short and read back exactly") {
  CHECK(write_bandwidth(1e9) == "1Gbps");
  CHECK(write_bandwidth(100e6) == "100Mbps");
  CHECK(write_time(50e-6) == "50us");
  CHECK(write_time(0) == "0s");
  CHECK(write_flop_rate(50e9) == "50Gf");
  for (const double x : {4.0 / 3, 1e9 / 7, 123456789.0, 1.0, 3e12, 1e18}) {
    CAPTURE(x);
    CHECK(parse_bandwidth_bit_per_s("", write_bandwidth(x)) == x);
    CHECK(parse_flop_per_s("", write_flop_rate(x)) == x);
  }
  for (const double x : {1.0 / 3, 1e8 / 7, 123456789.0, 1e-9, 1e-300, 1e9}) {
    CAPTURE(x);
    CHECK(parse_time_s("", write_time(x)) == x);
  }
}

TEST_CASE("formatted quantities show three digits in a fitting unit") {
  CHECK(format_bandwidth(1e9) == "1 Gbit/s");
  CHECK(format_time(0.0123) == "12.3 ms");
  CHECK(format_time(0) == "0 s");
  CHECK(format_time(0.9999e-3) == "1.00 ms");
  CHECK(format_bytes(123456) == "123 kB");
}

}  // namespace gradwire
