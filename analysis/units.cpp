#include "analysis/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/text.h"
#include "models/options.h"

namespace gradwire {

namespace {

struct Unit {
  std::string_view name;
  double factor;
  double divisor = 1;  // a factor below 1 is no exact number; dividing rounds 50us to 50e-6
};

constexpr std::array<Unit, 6> kTimes{
    {{"s", 1}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9}, {"m", 60}, {"h", 3600}}};

constexpr std::array<Unit, 9> kPrefixes{{{"", 1},
                                         {"k", 1e3},
                                         {"M", 1e6},
                                         {"G", 1e9},
                                         {"T", 1e12},
                                         {"Ki", 0x1p10},
                                         {"Mi", 0x1p20},
                                         {"Gi", 0x1p30},
                                         {"Ti", 0x1p40}}};

// The non-negative finite number at the front of `text`; the rest is the unit.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value) || value < 0 || text.front() == '-')
    return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(result.ptr - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return std::pair{value, unit};
}

// `text` in units of `bases`, each with every prefix.
std::optional<double> prefixed(std::string_view text, const std::vector<Unit>& bases) {
  const auto parts = number_and_unit(text);
  if (!parts) return std::nullopt;
  for (const Unit& base : bases)
    for (const Unit& prefix : kPrefixes)
      if (parts->second == std::string(prefix.name) + std::string(base.name))
        return parts->first * prefix.factor * base.factor;
  return std::nullopt;
}

double checked(std::string_view key, std::string_view text, std::optional<double> value, double min,
               double max, const char* what) {
  if (value && *value >= min && *value <= max) return *value;
  throw std::invalid_argument(std::string(key) + ": \"" + std::string(text) + "\" is not " + what);
}

std::optional<double> read_bandwidth(std::string_view text) {
  return prefixed(text, {{"bps", 1}, {"Bps", 8}});
}

std::optional<double> read_time(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts) return std::nullopt;
  for (const Unit& unit : kTimes)
    if (parts->second == unit.name) return parts->first * unit.factor / unit.divisor;
  if (parts->first == 0 && parts->second.empty()) return 0;
  return std::nullopt;
}

std::optional<double> read_flop_rate(std::string_view text) { return prefixed(text, {{"f", 1}}); }

// The largest of `units`, in ascending order, that keeps the number at 1 or above.
std::pair<double, std::string> scaled(double value, const std::vector<Unit>& units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (std::abs(value) >= unit.factor * 0.9995) best = &unit;
  return {value / best->factor, std::string(best->name)};
}

// Three significant digits, zeros kept so that columns line up.
std::string three_digits(const std::pair<double, std::string>& quantity) {
  const double x = quantity.first;
  const std::string& unit = quantity.second;
  if (x == 0) return std::string("0 ").append(unit);
  std::array<char, 64> text{};
  const int decimals = std::abs(x) >= 99.95 ? 0 : std::abs(x) >= 9.995 ? 1 : 2;
  if (std::abs(x) < 1e6)
    std::snprintf(text.data(), text.size(), "%.*f", decimals, x);
  else
    std::snprintf(text.data(), text.size(), "%.2e", x);
  return std::string(text.data()).append(" ").append(unit);
}

// `value` in the unit that gives the shortest text which `parse` reads back exactly; the first unit
// is the base.
std::string written(double value, const std::vector<Unit>& units,
                    std::optional<double> (*parse)(std::string_view)) {
  std::string text = shortest(value) + std::string(units.front().name);
  for (const Unit& unit : units) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.15g", value / unit.factor * unit.divisor);
    std::string candidate = digits.data() + std::string(unit.name);
    if (candidate.size() < text.size() && parse(candidate) == value) text = std::move(candidate);
  }
  return text;
}

}  // namespace

double parse_bandwidth_bit_per_s(std::string_view key, std::string_view text) {
  return checked(key, text, read_bandwidth(text), 1, 1e18,
                 "a bandwidth with its unit from 1bps to 1000000Tbps; write e.g. 100Mbps, 10Gbps "
                 "or 1.25GBps");
}

double parse_time_s(std::string_view key, std::string_view text) {
  return checked(key, text, read_time(text), 0, 1e9,
                 "a time with its unit up to 1000000000s; write e.g. 50us, 20ms or 0");
}

double parse_bytes(std::string_view key, std::string_view text) {
  return checked(key, text, prefixed(text, {{"", 1}, {"B", 1}}), 0, 1e14,
                 "a number of bytes up to 100TB; write e.g. 4096, 64k or 25MiB");
}

double parse_flop_per_s(std::string_view key, std::string_view text) {
  return checked(key, text, read_flop_rate(text), 1, 1e24,
                 "a rate with its unit from 1f to 1e12Tf; write e.g. 50Gf for 50e9 flop/s");
}

std::string write_bandwidth(double bit_per_s) {
  return written(bit_per_s, {{"bps", 1}, {"kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}},
                 read_bandwidth);
}

std::string write_time(double seconds) {
  return written(seconds, {kTimes.begin(), kTimes.begin() + 4}, read_time);
}

std::string write_flop_rate(double flop_per_s) {
  return written(flop_per_s, {{"f", 1}, {"kf", 1e3}, {"Mf", 1e6}, {"Gf", 1e9}, {"Tf", 1e12}},
                 read_flop_rate);
}

std::string format_bandwidth(double bit_per_s) {
  const auto [number, unit] =
      scaled(bit_per_s,
             {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}});
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.3g", number);
  return std::string(text.data()).append(" ").append(unit);
}

std::string format_time(double seconds) {
  if (seconds == 0) return "0 s";
  return three_digits(scaled(seconds, {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}));
}

std::string format_bytes(double bytes) {
  return three_digits(
      scaled(bytes, {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}));
}

}  // namespace gradwire
