// `gradwire run`: every combination of workers, bandwidths, latencies and algorithms, as a table
// and as a JSON report.
#include <ostream>

#include "analysis/chrome_trace.h"
#include "analysis/command_line.h"
#include "analysis/output_file.h"
#include "analysis/progress.h"
#include "analysis/report.h"
#include "analysis/study.h"
#include "analysis/table.h"
#include "analysis/text.h"

namespace gradwire {

namespace {

Grid read_grid(const Arguments& arguments) {
  Grid grid;
  arguments.apply_to(grid);
  if (arguments.has("scenario")) load_scenario_file(arguments.value("scenario"), grid);
  if (!grid.has("platform"))
    throw UsageError("run needs --platform FILE; see gradwire list platforms");
  return grid;
}

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
      warn(who + "the loss is not finite from batch " + std::to_string(diverged_at(result)) +
           " on; try a smaller --learning-rate");
    if (!result.replicas_equal && find_algorithm(s.algorithm.name).consensus)
      warn(who + "the replicas differ");
  }
  for (const std::string& line : lines) err << "gradwire: warning: " << line << "\n";
}

int run(const Arguments& arguments, const std::string& command_line, const Streams& streams) {
  if (!arguments.positional().empty())
    throw UsageError("run: unexpected \"" + arguments.positional().front() + "\"");
  const Grid grid = read_grid(arguments);
  const std::vector<Scenario> scenarios = grid.points();
  const bool trace = arguments.has("trace");
  if (trace && scenarios.size() > 1)
    throw UsageError("--trace draws one run, but the lists give " +
                     std::to_string(scenarios.size()) + " combinations");
  for (const char* file : {"output", "trace"})
    if (arguments.has(file)) check_writable(arguments.value(file));
  const int jobs = static_cast<int>(parse_integer("jobs", arguments.value("jobs", "0"), 0, 1024));

  const bool quiet = arguments.has("quiet");
  Study study;
  {
    Progress progress(streams.err, streams.err_is_terminal && !quiet);
    study = run_study(scenarios, {.jobs = jobs,
                                  .keep_timeline = trace,
                                  .progress = [&](const std::string& what, double done) {
                                    progress.update(what, done);
                                  }});
  }
  if (!quiet) print_warnings(study, streams.err);
  const std::string report = dump(report_json(
      study, grid, {.command_line = command_line, .wall_clock = arguments.has("wall-clock")}));
  if (arguments.has("output")) write_file(arguments.value("output"), report);
  if (trace) write_file(arguments.value("trace"), chrome_trace(study.timeline));
  streams.out << (arguments.has("json") ? report : results_table(study.results));
  return 0;
}

}  // namespace

Command run_command() {
  Command command{
      .name = "run",
      .summary =
          "Predicts the time of a training batch, and trains, for every combination of the "
          "lists.",
      .usage = "--platform FILE [OPTION...]",
      .examples =
          R"(  gradwire run --platform star-1g --workers 2,4,8 --algorithm rank-dad dsgd powersgd
  gradwire run --platform star-1g --workers 8 --bandwidth 100Mbps,1Gbps,10Gbps --json
  gradwire run --platform my.xml --hosts 'node-*' --compute 10ms,20ms --trace trace.json
  gradwire run --scenario scenario.json --batches 10 --output report.json
)",
      .flags = {},
      .run = run};
  command.flags.push_back({"scenario", "FILE",
                           "JSON object whose keys are the names of the options below; an option "
                           "given here overrides it",
                           "Scenario"});
  for (const Field& field : scenario_fields()) command.flags.push_back(field_flag(field));
  command.flags.insert(
      command.flags.end(),
      {{"json", "", "print the JSON report instead of the table"},
       {"output", "FILE", "write the JSON report to FILE as well"},
       {"trace", "FILE", "write the timeline for Perfetto or chrome://tracing (one combination)"},
       {"wall-clock", "", "add what the run itself took to the report"},
       {"jobs", "N", "replays at the same time (default one per processor); changes no result"},
       {"quiet", "", "no progress and no warnings"}});
  return command;
}

}  // namespace gradwire
