#include "sim/platform_facts.h"

#include "algorithms/serial.h"
#include "models/options.h"
#include "sim/platform_elements.h"

namespace gradwire {

void add_extremes(const RouteTable::Extremes& extremes, NetworkConstants& constants) {
  if (!(extremes.max_bandwidth_bit_per_s > 0)) return;
  const auto add = [&](const char* key, double value) {
    constants.emplace_back(key, shortest(value));
  };
  add("min_route_latency_s", extremes.min_latency_s);
  add("max_route_latency_s", extremes.max_latency_s);
  add("min_route_bandwidth_bit_per_s", extremes.min_bandwidth_bit_per_s);
  add("max_route_bandwidth_bit_per_s", extremes.max_bandwidth_bit_per_s);
}

std::string PoorLoopback::warning(const std::string& path, const RouteTable& routes) const {
  constexpr double kBitsPerByte = 8;
  const RouteTable::Link& used = routes.links()[link];
  return path + ": workers on host '" + host + "' talk to each other over " +
         (link_name.empty() ? "SimGrid's default loopback"
                            : "its network link '" + link_name + "'") +
         " (" + with_prefix(used.bandwidth_byte_per_s * kBitsPerByte) + "bit/s, " +
         with_prefix(used.latency_s) + "s); give it a loopback of its own";
}

NetworkConstants PlatformFacts::constants_for(const Scenario& scenario) const {
  RouteTable used = kinds;
  used.override_ports(scenario);
  NetworkConstants all = constants;
  add_extremes(used.extremes(), all);
  return all;
}

std::vector<std::string> PlatformFacts::warnings_for(const Scenario& scenario) const {
  std::vector<std::string> all;
  if (loopback) all.push_back(loopback->warning(path, routes_for(scenario)));
  all.insert(all.end(), warnings.begin(), warnings.end());
  return all;
}

RouteTable PlatformFacts::routes_for(const Scenario& scenario) const {
  RouteTable used = routes;
  used.override_ports(scenario);
  return used;
}

std::string PlatformFacts::bytes() const {
  ByteWriter out;
  out.put_string(path);
  out.put_string(beyond_routes);
  out.put(constants.size());
  for (const auto& [key, value] : constants) out.put_strings({key, value});
  out.put_strings(warnings);
  out.put(loopback.has_value());
  if (loopback) {
    out.put_strings({loopback->host, loopback->link_name});
    out.put(loopback->link);
  }
  out.put_string(routes.bytes());
  out.put_string(kinds.bytes());
  return out.take();
}

PlatformFacts PlatformFacts::from_bytes(const std::string& bytes) {
  ByteReader in(bytes);
  PlatformFacts facts;
  facts.path = in.get_string();
  facts.beyond_routes = in.get_string();
  for (auto count = in.get<std::size_t>(); count > 0; --count) {
    const std::vector<std::string> pair = in.get_strings();
    facts.constants.emplace_back(pair.at(0), pair.at(1));
  }
  facts.warnings = in.get_strings();
  if (in.get<bool>()) {
    const std::vector<std::string> names = in.get_strings();
    facts.loopback = {names.at(0), names.at(1), in.get<std::uint32_t>()};
  }
  facts.routes = RouteTable::from_bytes(in.get_string());
  facts.kinds = RouteTable::from_bytes(in.get_string());
  return facts;
}

}  // namespace gradwire
