// A platform outside SimGrid, as plain values: what a replay over flows needs of it.  Taken from
// SimGrid once, it serves every scenario that changes no more than rates and latencies at the
// ports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/scenario.h"
#include "sim/route_table.h"

namespace gradwire {

/// Every constant of a network as used, key (with unit) -> value.
using NetworkConstants = std::vector<std::pair<std::string, std::string>>;

/// Appends the figures of the routes; nothing if there are none.
void add_extremes(const RouteTable::Extremes& extremes, NetworkConstants& constants);

/// Workers of one host that talk to each other over what is no loopback of its own.
struct PoorLoopback {
  std::string host;
  std::string link_name;   ///< empty: SimGrid's default loopback
  std::uint32_t link = 0;  ///< in the routes

  std::string warning(const std::string& path, const RouteTable& routes) const;
};

struct PlatformFacts {
  std::string path;
  std::string beyond_routes;          ///< why the routes do not say all; empty if they do
  NetworkConstants constants;         ///< less the extremes
  std::vector<std::string> warnings;  ///< less the loopback's, which comes first
  std::optional<PoorLoopback> loopback;
  RouteTable routes;  ///< of a recording's pairs, at the file's rates and latencies
  RouteTable kinds;   ///< one of each kind of route between the workers' hosts, likewise

  NetworkConstants constants_for(const Scenario& scenario) const;
  std::vector<std::string> warnings_for(const Scenario& scenario) const;
  RouteTable routes_for(const Scenario& scenario) const;

  std::string bytes() const;
  static PlatformFacts from_bytes(const std::string& bytes);
};

}  // namespace gradwire
