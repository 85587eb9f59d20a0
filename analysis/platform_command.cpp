// `gradwire platform check`: says whether a SimGrid platform file can be used, and what is in it.
#include <algorithm>
#include <ostream>

#include "analysis/command_line.h"
#include "analysis/report.h"
#include "analysis/text.h"
#include "analysis/units.h"
#include "sim/platform.h"

namespace gradwire {

namespace {

constexpr int kMostWorkers = 128;  // every ordered pair's route is looked up

PlatformInfo check(Scenario scenario, bool all_hosts) {
  if (!all_hosts) return check_platform(scenario);
  scenario.workers = 1;
  const PlatformInfo info = check_platform(scenario);
  const auto hosts = static_cast<int>(std::min<std::size_t>(info.hosts.size(), kMostWorkers));
  scenario.workers = hosts * scenario.workers_per_host;
  return check_platform(scenario);
}

nlohmann::ordered_json as_json(const PlatformInfo& info) {
  nlohmann::ordered_json json{{"file", info.path}, {"hosts", info.hosts}};
  json.update(routes_json(info));
  return json;
}

std::string range(double low, double high, std::string (*format)(double)) {
  return low < high ? format(low) + " to " + format(high) : format(low);
}

std::string as_text(const PlatformInfo& info) {
  std::vector<std::string> shown(
      info.hosts.begin(), info.hosts.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min<std::size_t>(4, info.hosts.size())));
  if (info.hosts.size() > shown.size()) shown.emplace_back("...");
  std::string text = info.path + ": ok\n";
  text += "  hosts            " + std::to_string(info.hosts.size()) + " (" + join(shown) + ")\n";
  text += "  links            " + std::to_string(info.links) + "\n";
  const auto routes = [&](double low, double high, std::string (*format)(double)) {
    return info.has_routes() ? range(low, high, format) : "-";
  };
  text += "  route latency    " +
          routes(info.min_route_latency_s, info.max_route_latency_s, format_time) + "\n";
  text += "  route bandwidth  " +
          routes(info.min_route_bandwidth_bit_per_s, info.max_route_bandwidth_bit_per_s,
                 format_bandwidth) +
          "\n";
  for (const std::string& warning : info.warnings) text += "  warning: " + warning + "\n";
  return text;
}

int platform(const Arguments& arguments, const std::string& /*command_line*/,
             const Streams& streams) {
  const auto& words = arguments.positional();
  if (words.size() != 2 || words[0] != "check")
    throw UsageError("write gradwire platform check FILE [OPTION...]");
  Grid grid;
  arguments.apply_to(grid);
  grid.set(find_field("platform"), {words[1]});
  const std::vector<Scenario> points = grid.points();
  if (points.size() > 1) throw UsageError("platform check takes no lists");
  const PlatformInfo info = check(points.front(), !arguments.has("workers"));
  streams.out << (arguments.has("json") ? dump(as_json(info)) : as_text(info));
  return 0;
}

}  // namespace

Command platform_command() {
  Command command{
      .name = "platform",
      .summary = "Checks a SimGrid platform file: hosts, links, routes between workers.",
      .usage = "check FILE [OPTION...]",
      .examples = R"(  gradwire platform check star-1g
  gradwire platform check my.xml --hosts 'node-*' --workers 16 --workers-per-host 2
)",
      .flags = {},
      .run = platform};
  for (const char* key :
       {"hosts", "workers", "workers-per-host", "network-model", "bandwidth", "latency"})
    command.flags.push_back(field_flag(find_field(key)));
  command.flags.push_back({"json", "", "print JSON"});
  return command;
}

}  // namespace gradwire
