// A platform inside the child process that simulates on it: loaded, checked, overridden, with the
// network model of the scenario (NETWORK_MODEL: "the recipe").
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/child.h"
#include "sim/platform.h"
#include "sim/platform_facts.h"
#include "sim/platform_text.h"
#include "sim/route_table.h"

namespace gradwire {

/// (from, to), indices of the workers' hosts in the order of their ranks.
using HostPairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class LoadedPlatform {
 public:
  /// Throws PlatformError; may also abort the process (see run_on_platform).
  LoadedPlatform(const Scenario& scenario, std::string path, const PlatformText& text,
                 Child& child);

  simgrid::s4u::Engine& engine() { return *engine_; }
  simgrid::s4u::Host& host_of(int rank) const { return *hosts_[host_index(rank)]; }

  /// Time from a transfer's end to its arrival: the route's latency under the exact model, in which
  /// the links themselves have none; 0 under SimGrid's own models.
  double injected_latency_s(int from, int to) const;

  /// The rate of the slowest link between two workers.
  double route_byte_per_s(int from, int to) const;

  std::size_t host_index(int rank) const {
    return static_cast<std::size_t>(rank / scenario_.workers_per_host);
  }

  /// With the routes between these pairs of hosts (by index, ascending); of a platform that was
  /// loaded for a scenario without rates and latencies of its own.
  PlatformFacts facts(const HostPairs& pairs) const;
  const PlatformInfo& info() const { return info_; }
  NetworkConstants constants() const;

 private:
  using Link = simgrid::s4u::Link;
  using HostLink = std::pair<std::size_t, Link*>;  // an index into hosts_, a link at its port
  struct Ports {
    std::set<HostLink> out, in;
    std::vector<HostLink> loopbacks;
  };

  std::size_t workers_on(std::size_t host) const;
  void load(Child& child);
  void check_settings() const;
  void choose_hosts(const std::vector<simgrid::s4u::Host*>& all);
  std::vector<Link*> route(std::size_t from, std::size_t to) const;
  bool is_one_star() const;
  std::vector<std::uint32_t> path(std::size_t from, std::size_t to) const;
  Ports survey_routes(Child& child);
  void survey(std::size_t from, std::size_t to, Ports& ports);
  void set_links();
  std::string beyond_routes() const;
  bool is_ours(const PlatformText::Setting& setting) const;
  NetworkConstants fixed_constants() const;
  void warn(const std::string& what);
  void find_poor_loopback(const std::vector<HostLink>& loopbacks);
  void warn_of_half_duplex(const Ports& ports);
  void warn_of_host_speeds();
  void warn_of_settings();

  Scenario scenario_;
  std::string path_;
  const PlatformText& text_;
  bool exact_;
  std::vector<std::pair<std::string, std::string>> settings_;  // of SimGrid
  std::unique_ptr<simgrid::s4u::Engine> engine_;
  std::vector<simgrid::s4u::Host*> hosts_;  // of the workers
  RouteTable routes_;                       // of the pairs surveyed
  std::vector<Link*> links_;                // of routes_
  std::unordered_map<const Link*, std::uint32_t> link_index_;
  PlatformInfo info_;
  std::optional<PoorLoopback> loopback_;
};

/// Throws PlatformError for what no platform could bear: numbers out of range, an unknown model.
void check_scenario(const Scenario& scenario);

/// Finds, checks and loads the scenario's platform in a forked child and returns what `body`
/// returns there.  A crash of SimGrid becomes one PlatformError naming file and cause (or a
/// std::runtime_error if the simulation had begun).
std::string run_on_platform(const Scenario& scenario,
                            const std::function<std::string(LoadedPlatform&, Child&)>& body);

/// The activity of a child from the moment that a crash is no longer the platform's fault.
inline constexpr const char* kSimulating = "simulating";

}  // namespace gradwire
