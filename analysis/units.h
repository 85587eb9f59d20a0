// Quantities as users write them: `10Gbps`, `1.25GBps`, `50us`, `25MiB`, `64k`.
#pragma once

#include <string>
#include <string_view>

namespace gradwire {

/// Each throws std::invalid_argument "KEY: VALUE is not ...; write e.g. ..." for anything else: a
/// bare number where the unit decides (bandwidth, time), a sign, NaN, what is out of
/// range.
double parse_bandwidth_bit_per_s(std::string_view key,
                                 std::string_view text);           ///< 1 to 1e18; bps, Bps
double parse_time_s(std::string_view key, std::string_view text);  ///< to 1e9; ns us ms s m h
double parse_bytes(std::string_view key, std::string_view text);   ///< to 1e14; B optional, k or Ki
double parse_flop_per_s(std::string_view key, std::string_view text);  ///< 1 to 1e24; e.g. 50Gf

/// Text that the functions above read back as the same number: `1Gbps`, `50us`, `50Gf`.
std::string write_bandwidth(double bit_per_s);
std::string write_time(double seconds);
std::string write_flop_rate(double flop_per_s);

std::string format_bandwidth(double bit_per_s);  ///< "10 Gbit/s"
std::string format_time(double seconds);         ///< "12.3 ms", three significant digits
std::string format_bytes(double bytes);          ///< "12.3 MB", powers of 1000

}  // namespace gradwire
