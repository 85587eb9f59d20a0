#include "sim/platform_elements.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace gradwire {

namespace {

struct Element {
  std::string_view name;
  std::string_view attributes;  // those that SimGrid insists on end in '!'
};

constexpr std::string_view kRouteOfZones = "src! dst! gw_src! gw_dst! symmetrical";
constexpr std::array<Element, 22> kElements{
    {{"platform", "version"},
     {"config", "id"},
     {"prop", "id! value!"},
     {"zone", "id! routing!"},
     {"AS", "id! routing!"},
     {"host", "id! speed! core speed_file availability_file state_file coordinates pstate"},
     {"disk", "id read_bw! write_bw!"},
     {"host_link", "id! up! down!"},
     {"cluster",
      "id! prefix! suffix! radical! speed! core bw! lat! sharing_policy topology topo_parameters "
      "bb_bw bb_lat bb_sharing_policy router_id limiter_link loopback_bw loopback_lat"},
     {"cabinet", "id! prefix! suffix! radical! speed! bw! lat!"},
     {"router", "id! coordinates"},
     {"backbone", "id! bandwidth! latency!"},
     {"link", "id! bandwidth! latency! bandwidth_file latency_file state_file sharing_policy"},
     {"link_ctn", "id! direction"},
     {"route", "src! dst! symmetrical"},
     {"zoneRoute", kRouteOfZones},
     {"ASroute", kRouteOfZones},
     {"bypassRoute", "src! dst!"},
     {"bypassZoneRoute", "src! dst! gw_src! gw_dst!"},
     {"bypassASroute", "src! dst! gw_src! gw_dst!"},
     {"trace", "id! file periodicity!"},
     {"trace_connect", "kind trace! element!"}}};

struct Choice {
  std::string_view attribute;
  std::string_view allowed;
};
constexpr std::array<Choice, 6> kChoices{
    {{"sharing_policy", "SHARED SPLITDUPLEX FATPIPE FULLDUPLEX"},
     {"bb_sharing_policy", "SHARED FATPIPE"},
     {"topology", "FLAT TORUS FAT_TREE DRAGONFLY"},
     {"direction", "UP DOWN NONE"},
     {"symmetrical", "YES NO yes no"},
     {"routing", "Full Floyd Dijkstra DijkstraCache Cluster None"}}};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

[[noreturn]] void refuse(std::string what, std::string_view why) {
  throw std::invalid_argument(what.append(why));
}

void check_attributes(const Tag& tag) {
  const auto* const element = std::find_if(kElements.begin(), kElements.end(),
                                           [&](const Element& e) { return e.name == tag.name; });
  if (element == kElements.end()) {
    std::vector<std::string> names;
    for (const Element& e : kElements) names.emplace_back(e.name);
    refuse("<" + tag.name + "> is no element that gradwire knows; allowed are ", listed(names));
  }
  std::vector<std::string> allowed = split(element->attributes, ' ');
  for (std::string& attribute : allowed) {
    if (attribute.back() != '!') continue;
    attribute.pop_back();
    if (!tag.attributes.contains(attribute))
      refuse(tag.label(), " lacks the attribute " + attribute);
  }
  for (const auto& [key, value] : tag.attributes)
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end())
      refuse(tag.label(key), ": the element has no such attribute, only " + listed(allowed));
}

void check_choice(const Tag& tag, const std::string& key) {
  const auto* const choice = std::find_if(kChoices.begin(), kChoices.end(),
                                          [&](const Choice& c) { return c.attribute == key; });
  if (choice == kChoices.end()) return;
  const std::string value = tag.get(key);
  if (value == "WIFI" || value == "Wifi")
    refuse(tag.label(key), ": Wi-Fi is not supported; model it with links of another kind");
  if (value == "Vivaldi")
    refuse(tag.label(key),
           ": in Vivaldi zones bandwidth is infinite; use another routing, with links");
  const std::vector<std::string> allowed = split(choice->allowed, ' ');
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
    refuse(tag.label(key), " is not one of " + listed(allowed));
}

// A kind of quantity: SimGrid's units of it, and what to say of a bad one.
struct Quantity {
  std::string_view keys;
  std::vector<std::string_view> units;
  bool prefixed;
  const char* allowed;
};

const std::array<Quantity, 3>& quantities() {
  static const std::array<Quantity, 3> kQuantities{
      {{"bandwidth bw bb_bw loopback_bw limiter_link read_bw write_bw",
        {"bps", "Bps"},
        true,
        "a bandwidth above 0 with its unit, e.g. 10Gbps or 1.25GBps"},
       {"latency lat bb_lat loopback_lat",
        {"ps", "ns", "us", "ms", "s", "m", "h", "d", "w"},
        false,
        "a time of 0 or more with its unit, e.g. 50us"},
       {"speed", {"f"}, true, "a speed above 0, e.g. 10Gf"}}};
  return kQuantities;
}

// 1000^i for the letters that SimGrid knows, 1024^i for those with an `i`.
std::optional<double> prefix_factor(std::string_view prefix) {
  constexpr std::string_view kLetters = "kMGTPEZY";
  if (prefix.empty()) return 1;
  if (prefix == "Ki") return 1024;
  const std::size_t at = kLetters.find(prefix.front());
  if (at == std::string_view::npos) return std::nullopt;
  if (prefix.size() == 1) return std::pow(1000, at + 1);
  if (at > 0 && prefix.substr(1) == "i") return std::pow(1024, at + 1);
  return std::nullopt;
}

std::optional<double> unit_factor(std::string_view unit, const Quantity& quantity) {
  for (const std::string_view base : quantity.units) {
    if (unit == base) return 1;
    if (!quantity.prefixed || !unit.ends_with(base)) continue;
    if (const auto factor = prefix_factor(unit.substr(0, unit.size() - base.size()))) return factor;
  }
  return std::nullopt;
}

// `text` without blanks at its end.
std::string trimmed(const std::string& text) {
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

void check_number(const Tag& tag, const std::string& key, const std::string& item,
                  const Quantity& quantity) {
  const bool is_time = !quantity.prefixed;
  const bool is_speed = quantity.units.front() == "f";
  const std::string number_text = trimmed(item);
  char* end = nullptr;
  const double number = std::strtod(item.c_str(), &end);
  const std::string_view unit = end;
  const std::string what = tag.label(key) + " is not " + quantity.allowed;
  const double factor = unit_factor(unit, quantity).value_or(1);
  if (end == item.c_str() || !std::isfinite(number * factor) || number < 0 ||
      (number == 0 && !is_time))
    refuse(what, "");
  if (trimmed(std::string(unit)).empty()) {
    if (is_speed || number == 0) return;
    refuse(tag.label(key), is_time
                               ? " has no unit (SimGrid would take seconds); write e.g. " +
                                     number_text + "us, or " + number_text + "s if that is meant"
                               : " has no unit (SimGrid would take bytes per second); write " +
                                     number_text + "bps (" + with_prefix(number) + "bps), or " +
                                     number_text + "Bps if bytes are meant");
  }
  if (!unit_factor(unit, quantity) && !(is_speed && unit.ends_with("flops")))
    refuse(what, (unit.find(' ') != std::string_view::npos ? " and without blanks" : "") +
                     std::string("; units are ") +
                     listed({quantity.units.begin(), quantity.units.end()}) +
                     (is_time ? "" : ", prefixes k, M, G, T, P, E, Ki, Mi, Gi, Ti"));
}

// One number; of speeds also a list with commas (pstates).
void check_quantity(const Tag& tag, const std::string& key, const Quantity& quantity) {
  const std::string value = tag.get(key);
  const bool is_list = key == "speed" && !value.empty();
  for (const std::string& item : is_list ? split(value, ',') : std::vector<std::string>{value})
    check_number(tag, key, item, quantity);
}

void check_quantities(const Tag& tag) {
  for (const Quantity& quantity : quantities())
    for (const std::string& key : split(quantity.keys, ' ')) {
      const auto given = tag.attributes.find(key);
      if (given == tag.attributes.end()) continue;
      const bool optional =
          key.starts_with("bb_") || key.starts_with("loopback_") || key == "limiter_link";
      if (!(optional && given->second.empty())) check_quantity(tag, key, quantity);
    }
  // With a latency alone SimGrid makes a link of no bandwidth.
  for (const std::string part : {"bb", "loopback"})
    if (std::strtod(tag.get(part + "_lat").c_str(), nullptr) > 0 && tag.get(part + "_bw").empty())
      refuse(tag.label(part + "_lat"), " needs a " + part + "_bw, e.g. 10Gbps");
}

std::optional<long> whole_number(std::string_view text) {
  long number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || text.front() == '-' || stop != end || error != std::errc())
    return std::nullopt;
  return number;
}

void check_topology(const Tag& tag) {
  if (tag.get("topology", "FLAT") != "FLAT" && tag.get("topo_parameters").empty())
    refuse(tag.label("topology"), " needs topo_parameters, e.g. \"4,4,4\" for a TORUS");
}

void check_cores_and_pstate(const Tag& tag) {
  if (tag.attributes.contains("core") && whole_number(tag.get("core")).value_or(0) < 1)
    refuse(tag.label("core"), " is not a whole number of cores, 1 or more");
  if (tag.name != "host") return;
  const auto speeds = static_cast<long>(split(tag.get("speed"), ',').size());
  if (tag.attributes.contains("pstate") &&
      whole_number(tag.get("pstate")).value_or(speeds) >= speeds)
    refuse(tag.label("pstate"), " is not one of 0 to " + std::to_string(speeds - 1) +
                                    ", the places in speed=\"" + tag.get("speed") + "\"");
}

void refuse_profiles(const Tag& tag) {
  for (const char* key : {"latency_file", "state_file"})
    if (!tag.get(key).empty())
      refuse(tag.label(key), std::string(key).starts_with("latency")
                                 ? ": a latency that changes over time is not supported; give a "
                                   "constant latency"
                                 : ": hosts and links that fail are not supported; leave it out");
  // SimGrid 3.32 aborts on the links' kinds: they are sealed by then.
  if (tag.name == "trace_connect")
    refuse(tag.label("kind"),
           ": traces are not supported; give a link that changes over time a bandwidth_file");
}

}  // namespace

void check_element(const Tag& tag) {
  check_attributes(tag);
  for (const auto& [key, value] : tag.attributes) check_choice(tag, key);
  check_quantities(tag);
  check_topology(tag);
  check_cores_and_pstate(tag);
  refuse_profiles(tag);
}

long count_hosts(const Tag& cluster, long most) {
  const std::string radical = cluster.get("radical");
  long hosts = 0;
  for (const std::string& range : split(radical, ',')) {
    const std::size_t dash = range.find('-');
    const auto first = whole_number(range.substr(0, dash));
    const auto last = dash == std::string::npos ? first : whole_number(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last > 1'000'000'000)
      refuse(cluster.label("radical"), " is not a list of numbers and rising ranges, e.g. 0-63,70");
    hosts += *last - *first + 1;
    if (hosts > most)
      refuse(cluster.label("radical"), " makes " + std::to_string(hosts) +
                                           " hosts or more; allowed are " + std::to_string(most) +
                                           " in a file");
  }
  if (hosts == 0) refuse(cluster.label("radical"), " names no host; write e.g. 0-63");
  return hosts;
}

std::string with_prefix(double number) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kPrefixes{{{"n", 1e-9},
                                                                          {"u", 1e-6},
                                                                          {"m", 1e-3},
                                                                          {"", 1},
                                                                          {"k", 1e3},
                                                                          {"M", 1e6},
                                                                          {"G", 1e9},
                                                                          {"T", 1e12}}};
  if (number == 0) return "0";
  auto best = kPrefixes.front();
  for (const auto& prefix : kPrefixes)
    if (std::abs(number) >= 0.99995 * prefix.second) best = prefix;
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.4g", number / best.second);
  return digits.data() + std::string(best.first);
}

}  // namespace gradwire
