#include "analysis/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace gradwire {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

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
std::optional<std::pair<double, std::string_view>> split(std::string_view text) {
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
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  for (const Unit& base : bases)
    for (const Unit& prefix : kPrefixes)
      if (parts->second == std::string(prefix.name) + std::string(base.name))
        return parts->first * prefix.factor * base.factor;
  return std::nullopt;
}

double checked(std::string_view key, std::string_view text, std::optional<double> value,
               bool positive, const char* what) {
  if (value && (*value > 0 || (!positive && *value == 0)) && std::isfinite(*value)) return *value;
  throw std::invalid_argument(std::string(key) + ": \"" + std::string(text) + "\" is not " + what);
}

std::string scaled(double value, const std::vector<Unit>& units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (std::abs(value) >= unit.factor * 0.9995) best = &unit;
  std::array<char, 64> text{};
  const double x = value / best->factor;
  const int decimals = std::abs(x) >= 99.95 ? 0 : std::abs(x) >= 9.995 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, x, std::string(best->name).c_str());
  return text.data();
}

}  // namespace

double parse_bandwidth_bit_per_s(std::string_view key, std::string_view text) {
  return checked(key, text, prefixed(text, {{"bps", 1}, {"Bps", 8}}), true,
                 "a positive bandwidth with its unit; write e.g. 100Mbps, 10Gbps or 1.25GBps");
}

double parse_time_s(std::string_view key, std::string_view text) {
  static const std::vector<Unit> kUnits{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                        {"s", 1},     {"m", 60},    {"h", 3600}};
  std::optional<double> value;
  if (const auto parts = split(text)) {
    for (const Unit& unit : kUnits)
      if (parts->second == unit.name) value = parts->first * unit.factor;
    if (parts->first == 0 && parts->second.empty()) value = 0;
  }
  return checked(key, text, value, false, "a time with its unit; write e.g. 50us, 20ms or 0");
}

double parse_bytes(std::string_view key, std::string_view text) {
  return checked(key, text, prefixed(text, {{"", 1}, {"B", 1}}), false,
                 "a number of bytes; write e.g. 4096, 64k or 25MiB");
}

double parse_flop_per_s(std::string_view key, std::string_view text) {
  return checked(key, text, prefixed(text, {{"f", 1}}), true,
                 "a positive rate with its unit; write e.g. 50Gf for 50e9 flop/s");
}

std::string format_bandwidth(double bit_per_s) {
  return scaled(
      bit_per_s,
      {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}});
}

std::string format_time(double seconds) {
  return scaled(seconds, {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}});
}

std::string format_bytes(double bytes) {
  return scaled(bytes, {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}});
}

}  // namespace gradwire
