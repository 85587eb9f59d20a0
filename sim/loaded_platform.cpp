#include "sim/loaded_platform.h"

#include <fnmatch.h>
#include <simgrid/version.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <simgrid/kernel/routing/StarZone.hpp>
#include <unordered_set>
#include <xbt/config.hpp>

#include "models/options.h"
#include "sim/calibration.h"
#include "sim/platform_elements.h"

// The line at which SimGrid's reader is: exported, in no header.
extern int surf_parse_lineno;

namespace gradwire {

namespace {

namespace s4u = simgrid::s4u;

constexpr const char* kExact = "exact";
const std::string kLookingUp = "looking up the route from ";

// "a, b, c, ..., z (64)"
std::string summary_of(const std::vector<s4u::Host*>& hosts) {
  constexpr std::size_t kAllNamed = 8;
  std::string names = hosts.front()->get_name();
  for (std::size_t i = 1; i < hosts.size(); ++i) {
    if (hosts.size() > kAllNamed && i == 3) {
      names += ", ...";
      i = hosts.size() - 1;
    }
    names.append(", ").append(hosts[i]->get_name());
  }
  return names.append(" (").append(std::to_string(hosts.size())).append(")");
}

// SimGrid's models that SimGrid 3.32 can run on any platform file.
bool is_simgrid_model(const std::string& name) {
  static constexpr std::array<std::string_view, 4> kNames{"CM02", "LV08", "SMPI", "IB"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// A calibrated transport runs over exact links.
bool is_exact(const Scenario& scenario) {
  return scenario.network_model == kExact || !calibration_file(scenario.network_model).empty();
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// SimGrid's configuration for a scenario, key -> value.
Settings settings_for(const Scenario& scenario) {
  Settings settings{{"contexts/stack-size", "8192"}};  // KiB; a file may ask for too little
  if (const char* factory = std::getenv("GRADWIRE_SIMGRID_CONTEXTS"))
    settings.emplace_back("contexts/factory", factory);
  if (is_exact(scenario)) {
    settings.insert(settings.end(), {{"host/model", "compound"},
                                     {"network/model", "CM02"},
                                     {"network/optim", "Lazy"},
                                     {"network/solver", "maxmin"},
                                     {"network/TCP-gamma", "0"},
                                     {"network/crosstraffic", "0"},
                                     {"network/latency-factor", "1"},
                                     {"network/bandwidth-factor", "1"},
                                     {"network/weight-S", "0"},
                                     // At its default of 1 ns, shorter times are stretched to it.
                                     {"surf/precision", "1e-12"}});
  } else {
    settings.emplace_back("network/model",
                          scenario.network_model.substr(std::string("simgrid:").size()));
  }
  return settings;
}

// As command-line arguments, since some settings count only while the engine is being made.
std::unique_ptr<s4u::Engine> make_engine(const Settings& settings) {
  std::vector<std::string> arguments{"gradwire"};
  for (const auto& [key, value] : settings)
    arguments.push_back(std::string("--cfg=").append(key).append(":").append(value));
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  return std::make_unique<s4u::Engine>(&count, pointers.data());
}

// "LINE: what" from SimGrid's "Parse error at FILE:LINE: what", or from a bare complaint.
std::string tidied(std::string what, const std::string& path) {
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (const std::size_t at = what.find(path + ":"); at != std::string::npos)
    what.erase(0, at + path.size() + 1);
  else
    what.insert(0, std::to_string(surf_parse_lineno) + ": ");
  const std::string typo = "does name a node.";
  if (const std::size_t at = what.find(typo); at != std::string::npos)
    what.replace(at, typo.size(), "names no node.");
  if (what.ends_with(" stoi") || what.ends_with(" stod"))
    what += ": a number is missing or too large";
  constexpr std::size_t kMost = 300;  // lists of all nodes
  return what.size() > kMost ? what.substr(0, kMost) + "..." : what;
}

}  // namespace

LoadedPlatform::LoadedPlatform(const Scenario& scenario, std::string path, const PlatformText& text,
                               Child& child)
    : scenario_(scenario),
      path_(std::move(path)),
      text_(text),
      exact_(is_exact(scenario)),
      settings_(settings_for(scenario)),
      engine_(make_engine(settings_)) {
  // SimGrid's own handlers would print the state of all actors, or hide the signal's name.
  signal(SIGINT, SIG_DFL);
  signal(SIGSEGV, SIG_DFL);
  load(child);
  const Ports ports = survey_routes(child);
  set_links();
  find_poor_loopback(ports.loopbacks);
  if (loopback_) info_.warnings.push_back(loopback_->warning(path_, routes_));
  warn_of_half_duplex(ports);
  if (exact_)
    for (Link* link : engine_->get_all_links()) link->set_latency(0);
  warn_of_host_speeds();
  warn_of_settings();
  for (const std::string& warning : text_.warnings) warn(warning);
}

void LoadedPlatform::load(Child& child) {
  std::vector<s4u::Host*> all;                // in the file's order, which get_all_hosts() loses
  std::unordered_set<const s4u::Host*> seen;  // SimGrid announces each twice
  s4u::Host::on_creation_cb([&all, &seen](s4u::Host& host) {
    if (seen.insert(&host).second) all.push_back(&host);
  });
  const std::string doing = "loading, after line ";
  const auto note = [&](const auto&) { child.doing(doing + std::to_string(surf_parse_lineno)); };
  s4u::Host::on_creation_cb(note);
  s4u::Link::on_creation_cb(note);
  child.doing("loading");
  check_settings();
  try {
    engine_->load_platform(path_);
    engine_->seal_platform();
  } catch (const std::exception& error) {
    throw PlatformError(path_ + ":" + tidied(error.what(), path_));
  }
  choose_hosts(all);
  info_.links = static_cast<int>(engine_->get_link_count()) - 1;  // less __loopback__
}

// SimGrid would list all that it knows.
void LoadedPlatform::check_settings() const {
  for (const PlatformText::Setting& setting : text_.settings) try {
      simgrid::config::is_default(setting.key.c_str());
    } catch (const std::out_of_range&) {
      throw PlatformError(path_ + ":" + std::to_string(setting.line) + ": <config>: <prop id=\"" +
                          setting.key + "\"> is no setting of SimGrid; leave it out");
    }
}

void LoadedPlatform::choose_hosts(const std::vector<s4u::Host*>& all) {
  if (all.empty()) throw PlatformError(path_ + ": has no hosts");
  std::vector<s4u::Host*> matching;
  for (s4u::Host* host : all) {
    if (fnmatch(scenario_.hosts.c_str(), host->get_cname(), 0) != 0) continue;
    matching.push_back(host);
    info_.hosts.push_back(host->get_name());
  }
  if (matching.empty())
    throw PlatformError(path_ + ": hosts '" + scenario_.hosts + "' match none of " +
                        summary_of(all));
  const std::size_t most = matching.size() * static_cast<std::size_t>(scenario_.workers_per_host);
  if (static_cast<std::size_t>(scenario_.workers) > most)
    throw PlatformError(path_ + ": workers: " + std::to_string(scenario_.workers) +
                        " are too many; hosts '" + scenario_.hosts + "' match " +
                        std::to_string(matching.size()) + " with at most " +
                        std::to_string(scenario_.workers_per_host) + " each (workers-per-host)");
  matching.resize(host_index(scenario_.workers - 1) + 1);
  hosts_ = std::move(matching);
}

std::size_t LoadedPlatform::workers_on(std::size_t host) const {
  const auto per_host = static_cast<std::size_t>(scenario_.workers_per_host);
  return std::min(per_host, static_cast<std::size_t>(scenario_.workers) - host * per_host);
}

std::vector<LoadedPlatform::Link*> LoadedPlatform::route(std::size_t from, std::size_t to) const {
  std::vector<Link*> links;
  double latency_s = 0;
  std::string reason;
  try {
    hosts_[from]->route_to(hosts_[to], links, &latency_s);
  } catch (const std::exception& error) {
    links.clear();
    reason = std::string(": ") + error.what();
  }
  if (!links.empty()) return links;
  const std::string& here = hosts_[from]->get_name();
  if (from == to)
    throw PlatformError(path_ + ": host '" + here +
                        "' has no loopback for its workers; give its cluster loopback_bw and "
                        "loopback_lat");
  throw PlatformError(
      path_ + ": no route from '" + here + "' to '" + hosts_[to]->get_name() + "'" + reason +
      (text_.cluster_zone ? " (a Cluster zone needs a <host_link> for each host)" : "") +
      "; choose other hosts or add it");
}

// In a star a route is what goes up from one host and what comes down to the other, so that every
// port is seen in the routes from each host to the next.
bool LoadedPlatform::is_one_star() const {
  const s4u::NetZone* zone = hosts_.front()->get_englobing_zone();
  return dynamic_cast<const simgrid::kernel::routing::StarZone*>(zone->get_impl()) != nullptr &&
         std::all_of(hosts_.begin(), hosts_.end(),
                     [&](const s4u::Host* host) { return host->get_englobing_zone() == zone; });
}

// Looks up the routes of all ordered pairs of the workers' hosts, in a large star those from each
// to the next; of a host with itself if several workers share it.  A million of them take half a
// second, so each step here counts.
LoadedPlatform::Ports LoadedPlatform::survey_routes(Child& child) {
  constexpr std::size_t kLarge = 256;
  const bool next_only = hosts_.size() > kLarge && is_one_star();
  Ports ports;
  for (std::size_t from = 0; from < hosts_.size(); ++from) {
    std::string doing = kLookingUp + "'" + hosts_[from]->get_name() + "' to '";
    const std::size_t prefix = doing.size();
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      if (from == to ? workers_on(from) == 1 : next_only && to != (from + 1) % hosts_.size())
        continue;
      doing.resize(prefix);
      doing.append(hosts_[to]->get_name()).append("'");
      child.doing(doing);
      survey(from, to, ports);
    }
  }
  return ports;
}

void LoadedPlatform::survey(std::size_t from, std::size_t to, Ports& ports) {
  const std::vector<Link*> links = route(from, to);
  if (from == to) {
    ports.loopbacks.emplace_back(from, links.front());
  } else {
    ports.out.emplace(from, links.front());
    ports.in.emplace(to, links.back());
  }
  std::vector<std::uint32_t> path;
  for (Link* link : links) {
    const auto [found, is_new] =
        link_index_.try_emplace(link, static_cast<std::uint32_t>(links_.size()));
    path.push_back(found->second);
    if (!is_new) continue;
    links_.push_back(link);
    routes_.add_link({.bandwidth_byte_per_s = link->get_bandwidth(),
                      .latency_s = link->get_latency(),
                      .shared = link->get_sharing_policy() != Link::SharingPolicy::FATPIPE});
  }
  routes_.add_route(from, to, path);
}

std::vector<std::uint32_t> LoadedPlatform::path(std::size_t from, std::size_t to) const {
  if (routes_.has_route(from, to)) {
    const auto known = routes_.route(from, to);
    return {known.begin(), known.end()};
  }
  std::vector<std::uint32_t> links;
  for (const Link* link : route(from, to)) links.push_back(link_index_.at(link));
  return links;
}

PlatformFacts LoadedPlatform::facts(const HostPairs& pairs) const {
  PlatformFacts facts;
  facts.path = path_;
  facts.beyond_routes = beyond_routes();
  if (!facts.beyond_routes.empty()) return facts;
  facts.constants = fixed_constants();
  facts.warnings.assign(info_.warnings.begin() + (loopback_ ? 1 : 0), info_.warnings.end());
  facts.loopback = loopback_;
  facts.routes = RouteTable(routes_.links());
  for (const auto& [from, to] : pairs) facts.routes.add_route(from, to, path(from, to));
  facts.kinds = routes_.one_of_each_kind();
  return facts;
}

// What the scenario says of the links at the ports.
void LoadedPlatform::set_links() {
  routes_.override_ports(scenario_);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const RouteTable::Link& link = routes_.links()[i];
    if (link.at_port && scenario_.bandwidth_bit_per_s)
      links_[i]->set_bandwidth(link.bandwidth_byte_per_s);
    if (link.at_port && scenario_.latency_s) links_[i]->set_latency(link.latency_s);
  }
  const RouteTable::Extremes extremes = routes_.extremes();  // of a large star: of neighbours
  info_.min_route_latency_s = extremes.min_latency_s;
  info_.max_route_latency_s = extremes.max_latency_s;
  info_.min_route_bandwidth_bit_per_s = extremes.min_bandwidth_bit_per_s;
  info_.max_route_bandwidth_bit_per_s = extremes.max_bandwidth_bit_per_s;
}

std::string LoadedPlatform::beyond_routes() const {
  if (scenario_.network_model != kExact) return "network model " + scenario_.network_model;
  if (text_.varies) return "rates or states that change over time";
  for (const PlatformText::Setting& setting : text_.settings)
    if (!is_ours(setting)) return "<config> sets " + setting.key;
  for (const Link* link : links_) {
    const Link::SharingPolicy policy = link->get_sharing_policy();
    if (policy != Link::SharingPolicy::SHARED && policy != Link::SharingPolicy::FATPIPE &&
        policy != Link::SharingPolicy::SPLITDUPLEX)
      return "link '" + link->get_name() + "' is neither SHARED nor FATPIPE";
  }
  return routes_.crosses_a_link_twice() ? "a route that crosses a link twice" : "";
}

// A FATPIPE is what a loopback should be; a shared link is the host's own network port.
void LoadedPlatform::find_poor_loopback(const std::vector<HostLink>& loopbacks) {
  for (const auto& [host, link] : loopbacks) {
    const bool is_default = link->get_name() == "__loopback__";
    if (!is_default && link->get_sharing_policy() == Link::SharingPolicy::FATPIPE) continue;
    loopback_ = {hosts_[host]->get_name(), is_default ? "" : link->get_name(),
                 link_index_.at(link)};
    return;
  }
}

void LoadedPlatform::warn_of_half_duplex(const Ports& ports) {
  // Of several the first by name: the order in the sets is that of addresses.
  std::optional<std::pair<std::size_t, std::string>> first;
  for (const auto& [host, link] : ports.out)
    if (ports.in.contains({host, link}) &&
        link->get_sharing_policy() == Link::SharingPolicy::SHARED &&
        (!first || std::pair{host, link->get_name()} < *first))
      first = {host, link->get_name()};
  if (first)
    warn("link '" + first->second + "' at host '" + hosts_[first->first]->get_name() +
         "' is half-duplex (SHARED): what the host sends and receives share one bandwidth; a "
         "switched port is sharing_policy=\"SPLITDUPLEX\"");
}

double LoadedPlatform::injected_latency_s(int from, int to) const {
  return exact_ ? routes_.latency_s(path(host_index(from), host_index(to))) : 0;
}

double LoadedPlatform::route_byte_per_s(int from, int to) const {
  double slowest = std::numeric_limits<double>::infinity();
  for (const Link* link : route(host_index(from), host_index(to)))
    slowest = std::min(slowest, link->get_bandwidth());
  return slowest;
}

void LoadedPlatform::warn(const std::string& what) {
  info_.warnings.push_back(path_ + ": " + what);
}

void LoadedPlatform::warn_of_host_speeds() {
  for (const s4u::Host* host : hosts_) {
    if (host->get_speed() >= 1e9) continue;
    warn("host '" + host->get_name() + "' computes at " + shortest(host->get_speed()) +
         " flop/s, below 1 Gf; compute times never come from the platform");
    return;
  }
}

bool LoadedPlatform::is_ours(const PlatformText::Setting& setting) const {
  return std::any_of(settings_.begin(), settings_.end(),
                     [&](const auto& own) { return own.first == setting.key; });
}

void LoadedPlatform::warn_of_settings() {
  for (const PlatformText::Setting& setting : text_.settings)
    warn("line " + std::to_string(setting.line) + ": <config> sets " + setting.key + " to " +
         setting.value + (is_ours(setting) ? "; ignored, gradwire sets it" : "; in effect"));
}

NetworkConstants LoadedPlatform::constants() const {
  NetworkConstants all = fixed_constants();
  add_extremes({info_.min_route_latency_s, info_.max_route_latency_s,
                info_.min_route_bandwidth_bit_per_s, info_.max_route_bandwidth_bit_per_s},
               all);
  return all;
}

NetworkConstants LoadedPlatform::fixed_constants() const {
  NetworkConstants all{{"network_model", scenario_.network_model},
                       {"latency_is_injected_at_receiver", exact_ ? "yes" : "no"},
                       {"simgrid_version", std::to_string(SIMGRID_VERSION_MAJOR) + "." +
                                               std::to_string(SIMGRID_VERSION_MINOR)},
                       {"simgrid_model", simgrid::config::get_value<std::string>("network/model")}};
  const auto number = [&](const char* key, const char* name) {
    all.emplace_back(key, shortest(simgrid::config::get_value<double>(name)));
  };
  const auto text = [&](const char* key, const char* name) {
    all.emplace_back(key, simgrid::config::get_value<std::string>(name));
  };
  if (const std::string model = all.back().second; model == "SMPI" || model == "IB") {
    text("latency_factor", "smpi/lat-factor");  // by message size
    text("bandwidth_factor", "smpi/bw-factor");
  } else {
    number("latency_factor", "network/latency-factor");
    number("bandwidth_factor", "network/bandwidth-factor");
  }
  number("weight_s_byte", "network/weight-S");
  number("tcp_gamma_byte", "network/TCP-gamma");
  all.emplace_back("crosstraffic",
                   simgrid::config::get_value<bool>("network/crosstraffic") ? "yes" : "no");
  all.emplace_back("platform", scenario_.platform);
  all.emplace_back("platform_hash", text_.hash);
  all.emplace_back("hosts_used", summary_of(hosts_));
  return all;
}

void check_scenario(const Scenario& scenario) {
  if (scenario.workers < 1)
    throw PlatformError("workers: " + std::to_string(scenario.workers) + " is not 1 or more");
  if (scenario.workers_per_host < 1)
    throw PlatformError("workers-per-host: " + std::to_string(scenario.workers_per_host) +
                        " is not 1 or more");
  if (scenario.bandwidth_bit_per_s && !(*scenario.bandwidth_bit_per_s > 0))
    throw PlatformError("bandwidth: " + shortest(*scenario.bandwidth_bit_per_s) +
                        " bit/s is not above 0");
  if (scenario.latency_s && !(*scenario.latency_s >= 0))
    throw PlatformError("latency: " + shortest(*scenario.latency_s) + " s is not 0 or more");
  const std::string& model = scenario.network_model;
  if (const std::string file = calibration_file(model); !file.empty()) {
    read_calibration(file);
    return;
  }
  if (model != "exact" && !(model.starts_with("simgrid:") &&
                            is_simgrid_model(model.substr(std::string("simgrid:").size()))))
    throw PlatformError(
        "network-model: '" + model +
        "' is not one of exact, calibrated:FILE, simgrid:CM02, simgrid:LV08, simgrid:SMPI, "
        "simgrid:IB");
}

std::string run_on_platform(const Scenario& scenario,
                            const std::function<std::string(LoadedPlatform&, Child&)>& body) {
  check_scenario(scenario);
  const std::string path = find_platform(scenario.platform);
  const PlatformText text = check_platform_text(path);
  try {
    return run_in_child([&](Child& child) {
      child.doing("starting SimGrid");
      LoadedPlatform platform(scenario, path, text, child);
      return body(platform, child);
    });
  } catch (const ChildDied& death) {
    const std::string what = std::string(death.what()) + " (while " + death.doing + ")";
    if (death.doing == kSimulating) throw std::runtime_error("SimGrid failed: " + what);
    if (death.doing.starts_with(kLookingUp))  // some kinds of zone crash where there is none
      throw PlatformError(path + ": no route from " + death.doing.substr(kLookingUp.size()) +
                          "; SimGrid failed: " + death.what());
    throw PlatformError(path + ": SimGrid failed: " + what);
  }
}

}  // namespace gradwire
