#include "analysis/publish.h"

#include <algorithm>
#include <ostream>

#include "algorithms/algorithm.h"
#include "analysis/output_file.h"
#include "analysis/report.h"
#include "analysis/table.h"

namespace gradwire {

namespace {

void print_warnings(const Study& study, std::ostream& err) {
  std::vector<std::string> lines;
  const auto warn = [&](const std::string& line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  };
  for (const PlatformInfo& platform : study.platforms)
    for (const std::string& warning : platform.warnings) warn(warning);
  for (const Result& result : study.results) {
    const Scenario& s = result.scenario;
    const std::string who = s.algorithm.text() + ", " + std::to_string(s.workers) + " workers: ";
    for (const std::string& warning : result.warnings) warn(warning);
    if (diverged_at(result) >= 0)
      warn(who + "the loss is not finite in batch " + std::to_string(diverged_at(result)) +
           "; try a smaller --learning-rate");
    if (!result.replicas_equal && find_algorithm(s.algorithm.name).consensus)
      warn(who + "the replicas differ");
  }
  for (const std::string& line : lines) err << "gradwire: warning: " << line << "\n";
}

}  // namespace

std::vector<Flag> publishing_flags() {
  return {{"json", "", "print the JSON report instead of the table"},
          {"output", "FILE", "write the JSON report to FILE as well"},
          {"quiet", "", "no progress and no warnings"}};
}

void check_publishable(const Arguments& arguments, bool here) {
  if (arguments.value("output") == "-")
    throw UsageError("--output - is no file; --json prints the report to standard output");
  if (here && arguments.has("output")) check_writable(arguments.value("output"));
  if (arguments.has("wall-clock") && !arguments.has("json") && !arguments.has("output"))
    throw UsageError("--wall-clock adds to the JSON report; give --json or --output as well");
}

Flag trace_flag() {
  return {"trace", "FILE", "write the timeline for Perfetto or chrome://tracing (one combination)"};
}

bool check_trace(const Arguments& arguments, std::size_t scenarios, bool here) {
  if (!arguments.has("trace")) return false;
  if (scenarios > 1)
    throw UsageError("--trace draws one run, but the lists give " + std::to_string(scenarios) +
                     " combinations");
  if (here) check_writable(arguments.value("trace"));
  return true;
}

void publish(const Study& study, const Grid& grid, const Arguments& arguments,
             const std::string& command_line, const Streams& streams) {
  if (!arguments.has("quiet")) print_warnings(study, streams.err);
  const std::string report = dump(report_json(
      study, grid, {.command_line = command_line, .wall_clock = arguments.has("wall-clock")}));
  // To the terminal first: a full disk must not lose what was computed.
  streams.out << (arguments.has("json") ? report : results_table(study.results)) << std::flush;
  if (arguments.has("output")) write_file(arguments.value("output"), report);
}

}  // namespace gradwire
