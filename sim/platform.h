// Platform files: finding, loading and checking them.  Everything runs in a forked child, because
// SimGrid aborts on many bad files (NETWORK_MODEL: "errors"); the caller gets a PlatformError
// instead.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/scenario.h"

namespace gradwire {

/// Bad platform: one line naming file, place, value and what is allowed.
struct PlatformError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

struct PlatformInfo {
  std::string path;
  std::vector<std::string> hosts;  ///< matching the scenario's pattern, in the file's order
  int links = 0;
  /// Of a single host there are no routes and the figures of routes mean nothing.
  bool has_routes() const { return max_route_bandwidth_bit_per_s > 0; }
  double min_route_latency_s = 0;  ///< over the ordered pairs of chosen worker hosts
  double max_route_latency_s = 0;
  double min_route_bandwidth_bit_per_s = 0;  ///< of the slowest link of a route
  double max_route_bandwidth_bit_per_s = 0;
  std::vector<std::string>
      warnings;  ///< SHARED (half-duplex) links, speeds below 1 Gf, config props
};

/// `name_or_path`: a file, or the name of a platform in the platforms folder (without .xml).
std::string find_platform(const std::string& name_or_path);
std::vector<std::string> list_platforms();

/// Loads and checks the platform as `scenario` uses it (hosts, workers, overrides).
PlatformInfo check_platform(const Scenario& scenario);

}  // namespace gradwire
