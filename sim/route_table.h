// Links, and routes between pairs of the workers' hosts, as plain values: what is left of a
// platform outside SimGrid.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/scenario.h"

namespace gradwire {

class RouteTable {
 public:
  struct Link {
    double bandwidth_byte_per_s = 0;
    double latency_s = 0;
    bool shared = true;    ///< its flows share the bandwidth; else each has all of it (FATPIPE)
    bool at_port = false;  ///< first or last link between two hosts: what the scenario overrides
  };
  struct Extremes {
    double min_latency_s = 0, max_latency_s = 0;
    double min_bandwidth_bit_per_s = 0, max_bandwidth_bit_per_s = 0;  ///< of the slowest link
  };

  RouteTable() = default;
  explicit RouteTable(std::vector<Link> links) : links_(std::move(links)) {}

  std::size_t add_link(const Link& link) {
    links_.push_back(link);
    return links_.size() - 1;
  }
  /// Pairs come in ascending order.
  void add_route(std::size_t from, std::size_t to, std::span<const std::uint32_t> links);
  /// Replaces bandwidth and latency of the links at the ports where the scenario has its own.
  void override_ports(const Scenario& scenario);

  const std::vector<Link>& links() const { return links_; }
  bool has_route(std::size_t from, std::size_t to) const;
  /// Throws std::logic_error if there is none.
  std::span<const std::uint32_t> route(std::size_t from, std::size_t to) const;
  double latency_s(std::span<const std::uint32_t> route) const;
  bool crosses_a_link_twice() const;
  Extremes extremes() const;  ///< over the routes between two hosts
  /// All links, and of the routes between two hosts that look alike (rates, latencies and what is
  /// at a port, in their order) the first: the same extremes whatever the scenario overrides.
  RouteTable one_of_each_kind() const;

  std::string bytes() const;
  static RouteTable from_bytes(const std::string& bytes);

 private:
  struct Route {
    std::uint32_t from, to;
    std::uint32_t begin;  // in path_; it ends where the next one begins
  };
  std::size_t find(std::size_t from, std::size_t to) const;
  std::span<const std::uint32_t> route(std::size_t index) const;

  std::vector<Link> links_;
  std::vector<std::uint32_t> first_;  // by `from`: where its routes begin in routes_
  std::vector<Route> routes_;
  std::vector<std::uint32_t> path_;
};

}  // namespace gradwire
