#include "sim/route_table.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "algorithms/serial.h"

namespace gradwire {

namespace {
constexpr double kBitsPerByte = 8;
}  // namespace

void RouteTable::add_route(std::size_t from, std::size_t to, std::span<const std::uint32_t> links) {
  while (first_.size() <= from) first_.push_back(static_cast<std::uint32_t>(routes_.size()));
  routes_.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to),
                     static_cast<std::uint32_t>(path_.size())});
  path_.insert(path_.end(), links.begin(), links.end());
  if (from == to) return;
  links_[links.front()].at_port = true;
  links_[links.back()].at_port = true;
}

void RouteTable::override_ports(const Scenario& scenario) {
  for (Link& link : links_) {
    if (!link.at_port) continue;
    if (scenario.bandwidth_bit_per_s)
      link.bandwidth_byte_per_s = *scenario.bandwidth_bit_per_s / kBitsPerByte;
    if (scenario.latency_s) link.latency_s = *scenario.latency_s;
  }
}

// The index of the pair's route, or routes_.size().
std::size_t RouteTable::find(std::size_t from, std::size_t to) const {
  if (from >= first_.size()) return routes_.size();
  const auto end = from + 1 < first_.size() ? routes_.begin() + first_[from + 1] : routes_.end();
  const auto found =
      std::lower_bound(routes_.begin() + first_[from], end, to,
                       [](const Route& route, std::size_t t) { return route.to < t; });
  return found != end && found->to == to ? static_cast<std::size_t>(found - routes_.begin())
                                         : routes_.size();
}

bool RouteTable::has_route(std::size_t from, std::size_t to) const {
  return find(from, to) < routes_.size();
}

std::span<const std::uint32_t> RouteTable::route(std::size_t from, std::size_t to) const {
  const std::size_t index = find(from, to);
  if (index == routes_.size())
    throw std::logic_error("no route from host " + std::to_string(from) + " to host " +
                           std::to_string(to));
  return route(index);
}

std::span<const std::uint32_t> RouteTable::route(std::size_t index) const {
  const std::size_t begin = routes_[index].begin;
  const std::size_t end = index + 1 < routes_.size() ? routes_[index + 1].begin : path_.size();
  return std::span(path_).subspan(begin, end - begin);
}

double RouteTable::latency_s(std::span<const std::uint32_t> route) const {
  double sum_s = 0;
  for (const std::uint32_t link : route) sum_s += links_[link].latency_s;
  return sum_s;
}

bool RouteTable::crosses_a_link_twice() const {
  std::vector<std::size_t> last_route(links_.size(), SIZE_MAX);
  for (std::size_t i = 0; i < routes_.size(); ++i)
    for (const std::uint32_t link : route(i))
      if (std::exchange(last_route[link], i) == i) return true;
  return false;
}

RouteTable::Extremes RouteTable::extremes() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Extremes found{kInfinity, 0, kInfinity, 0};
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].from == routes_[i].to) continue;
    const double latency = latency_s(route(i));
    double bandwidth = kInfinity;
    for (const std::uint32_t link : route(i))
      bandwidth = std::min(bandwidth, links_[link].bandwidth_byte_per_s * kBitsPerByte);
    found.min_latency_s = std::min(found.min_latency_s, latency);
    found.max_latency_s = std::max(found.max_latency_s, latency);
    found.min_bandwidth_bit_per_s = std::min(found.min_bandwidth_bit_per_s, bandwidth);
    found.max_bandwidth_bit_per_s = std::max(found.max_bandwidth_bit_per_s, bandwidth);
  }
  return found.max_bandwidth_bit_per_s > 0 ? found : Extremes{};
}

RouteTable RouteTable::one_of_each_kind() const {
  RouteTable table(links_);
  std::set<std::vector<std::tuple<double, double, bool>>> seen;
  std::vector<std::tuple<double, double, bool>> kind;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].from == routes_[i].to) continue;
    kind.clear();
    for (const std::uint32_t index : route(i)) {
      const Link& link = links_[index];
      kind.emplace_back(link.bandwidth_byte_per_s, link.latency_s, link.at_port);
    }
    if (seen.insert(kind).second) table.add_route(routes_[i].from, routes_[i].to, route(i));
  }
  return table;
}

std::string RouteTable::bytes() const {
  ByteWriter out;
  out.put_array(links_);
  out.put_array(first_);
  out.put_array(routes_);
  out.put_array(path_);
  return out.take();
}

RouteTable RouteTable::from_bytes(const std::string& bytes) {
  ByteReader in(bytes);
  RouteTable table(in.get_array<Link>());
  table.first_ = in.get_array<std::uint32_t>();
  table.routes_ = in.get_array<Route>();
  table.path_ = in.get_array<std::uint32_t>();
  return table;
}

}  // namespace gradwire
