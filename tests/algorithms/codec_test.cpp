// Wire formats against the bit patterns of IEEE binary16 and bfloat16.
#include "algorithms/codec.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

using namespace gradwire;

namespace {

constexpr std::array kWires{Wire::kFp32, Wire::kFp16, Wire::kBf16};
constexpr std::array kShortWires{Wire::kFp16, Wire::kBf16};

std::vector<std::byte> encoded(Wire wire, const std::vector<Scalar>& values) {
  std::vector<std::byte> bytes(wire_bytes(wire, values.size()));
  encode(wire, values, bytes);
  return bytes;
}

std::vector<Scalar> decoded(Wire wire, std::span<const std::byte> bytes) {
  std::vector<Scalar> values(bytes.size() / wire_bytes(wire, 1));
  decode(wire, bytes, values);
  return values;
}

std::uint16_t pattern(Wire wire, Scalar value) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, encoded(wire, {value}).data(), 2);
  return bits;
}

Scalar number(Wire wire, unsigned bits) {
  std::vector<std::byte> bytes{std::byte(bits & 0xFFU), std::byte(bits >> 8U)};
  return decoded(wire, bytes)[0];
}

std::vector<Scalar> random_values(std::size_t n) {
  std::mt19937 engine(1);
  std::normal_distribution<Scalar> normal;
  std::vector<Scalar> values(n);
  for (Scalar& x : values) x = normal(engine);
  return values;
}

}  // namespace

TEST_CASE("fp32 is the memory of the numbers") {
  const auto values = random_values(37);
  const auto bytes = encoded(Wire::kFp32, values);
  REQUIRE(bytes.size() == 37 * sizeof(Scalar));
  CHECK(std::memcmp(bytes.data(), values.data(), bytes.size()) == 0);
  CHECK(decoded(Wire::kFp32, bytes) == values);
}

TEST_CASE("fp16 is IEEE binary16, rounded to nearest even") {
  const auto fp16 = [](double x) { return pattern(Wire::kFp16, static_cast<Scalar>(x)); };
  CHECK(fp16(1) == 0x3C00);
  CHECK(fp16(-2) == 0xC000);
  CHECK(fp16(-0.0) == 0x8000);
  CHECK(fp16(65504) == 0x7BFF);                   // the largest
  CHECK(fp16(65519) == 0x7BFF);                   // rounds down to it
  CHECK(fp16(65520) == 0x7C00);                   // a tie goes to even: infinity
  CHECK(fp16(std::ldexp(1, -24)) == 0x0001);      // the smallest subnormal
  CHECK(fp16(std::ldexp(1, -25)) == 0x0000);      // a tie goes to even
  CHECK(fp16(1 + std::ldexp(1, -11)) == 0x3C00);  // a tie goes to even
  CHECK(fp16(1 + 3 * std::ldexp(1, -11)) == 0x3C02);
  CHECK(fp16(-std::numeric_limits<double>::infinity()) == 0xFC00);
  CHECK(std::isnan(number(Wire::kFp16, fp16(std::numeric_limits<double>::quiet_NaN()))));
}

TEST_CASE("bf16 is the upper half of a float, rounded to nearest even") {
  const auto bf16 = [](double x) { return pattern(Wire::kBf16, static_cast<Scalar>(x)); };
  CHECK(bf16(1) == 0x3F80);
  CHECK(bf16(-2) == 0xC000);
  CHECK(bf16(-0.0) == 0x8000);
  CHECK(bf16(1 + std::ldexp(1, -8)) == 0x3F80);  // a tie goes to even
  CHECK(bf16(1 + 3 * std::ldexp(1, -8)) == 0x3F82);
  CHECK(bf16(std::numeric_limits<float>::max()) == 0x7F80);  // rounds to infinity
  CHECK(bf16(-std::numeric_limits<double>::infinity()) == 0xFF80);
  CHECK(std::isnan(number(Wire::kBf16, bf16(std::numeric_limits<double>::quiet_NaN()))));
}

TEST_CASE("every 16-bit number survives decoding and encoding") {
  for (const Wire wire : kShortWires)
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
      const Scalar value = number(wire, bits);
      if (!std::isnan(value) && pattern(wire, value) != bits) FAIL("pattern " << bits);
    }
}

TEST_CASE("a 16-bit wire rounds to the nearest number of its format") {
  for (const Wire wire : kShortWires)
    for (const Scalar x : random_values(2000)) {
      const unsigned bits = pattern(wire, x);
      const Scalar error = std::abs(number(wire, bits) - x);
      if (error > std::abs(number(wire, bits + 1) - x) ||
          error > std::abs(number(wire, bits - 1) - x))
        FAIL(x << " becomes " << number(wire, bits));
    }
}

TEST_CASE("a number's code depends neither on its place nor on alignment") {
  const auto values = random_values(1100);
  for (const Wire wire : kWires) {
    const auto all = encoded(wire, values);
    const std::size_t width = wire_bytes(wire, 1);
    std::vector<std::byte> shifted(all.size() + 1);
    encode(wire, values, std::span(shifted).subspan(1));
    CHECK(std::memcmp(shifted.data() + 1, all.data(), all.size()) == 0);
    CHECK(decoded(wire, std::span<const std::byte>(shifted).subspan(1)) == decoded(wire, all));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto one = encoded(wire, {values[i]});
      if (std::memcmp(one.data(), all.data() + i * width, width) != 0) FAIL("number " << i);
    }
  }
}

TEST_CASE("decode_add adds what decode yields") {
  const auto values = random_values(1100);
  for (const Wire wire : kWires) {
    const auto bytes = encoded(wire, values);
    std::vector<Scalar> sum(values.size(), Scalar(0.25));
    decode_add(wire, bytes, sum);
    auto expected = decoded(wire, bytes);
    for (Scalar& x : expected) x += Scalar(0.25);
    CHECK(sum == expected);
  }
}

TEST_CASE("no numbers take no bytes") {
  for (const Wire wire : kWires) {
    CHECK(wire_bytes(wire, 0) == 0);
    std::vector<Scalar> none;
    CHECK(encoded(wire, none).empty());
    CHECK_NOTHROW(decode(wire, {}, none));
    CHECK_NOTHROW(decode_add(wire, {}, none));
  }
}

TEST_CASE("buffers of the wrong size are refused") {
  for (const Wire wire : kWires) {
    std::vector<Scalar> values(2);
    std::vector<std::byte> bytes(wire_bytes(wire, 3));
    CHECK_THROWS_AS(encode(wire, values, bytes), std::logic_error);
    CHECK_THROWS_AS(decode(wire, bytes, values), std::logic_error);
    CHECK_THROWS_AS(decode_add(wire, bytes, values), std::logic_error);
  }
}

TEST_CASE("wires have names") {
  CHECK(parse_wire("fp32") == Wire::kFp32);
  CHECK(parse_wire("fp16") == Wire::kFp16);
  CHECK(parse_wire("bf16") == Wire::kBf16);
  CHECK_THROWS_WITH(parse_wire("fp8"), "wire=fp8; allowed: fp32, fp16, bf16");
}
