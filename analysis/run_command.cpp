// `gradwire run`: every combination of workers, bandwidths, latencies and algorithms, as a table
// and as a JSON report.
#include <ostream>

#include "analysis/chrome_trace.h"
#include "analysis/command_line.h"
#include "analysis/named_files.h"
#include "analysis/output_file.h"
#include "analysis/progress.h"
#include "analysis/publish.h"
#include "analysis/replay_command.h"
#include "analysis/study.h"
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

int run(const Arguments& arguments, const std::string& command_line, const Streams& streams) {
  if (!arguments.positional().empty())
    throw UsageError("run: unexpected \"" + arguments.positional().front() + "\"");
  const Grid grid = read_grid(arguments);
  const std::vector<Scenario> scenarios = grid.points();
  check_publishable(arguments);
  const bool trace = check_trace(arguments, scenarios.size());
  const bool record = arguments.has("record");
  if (record) check_recordable(scenarios);
  if (record) check_writable(arguments.value("record"));
  check_files_differ(arguments, grid);
  const int jobs = arguments.has("jobs")
                       ? static_cast<int>(parse_integer("jobs", arguments.value("jobs"), 1, 1024))
                       : 0;

  Study study;
  Rehearsal rehearsal;
  {
    Progress progress(streams.err, streams.err_is_terminal && !arguments.has("quiet"));
    study = run_study(scenarios, {.jobs = jobs,
                                  .keep_timeline = trace,
                                  .progress = [&](const std::string& what,
                                                  double done) { progress.update(what, done); },
                                  .rehearsed =
                                      [&](const Rehearsal& r) {
                                        if (record) rehearsal = r;
                                      }});
  }
  publish(study, grid, arguments, command_line, streams);
  if (record)
    write_file(arguments.value("record"), encode_recording(recording_of(study, rehearsal)));
  if (trace) write_file(arguments.value("trace"), chrome_trace(study.timeline));
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
  for (Flag& flag : publishing_flags()) command.flags.push_back(std::move(flag));
  command.flags.insert(
      command.flags.end(),
      {trace_flag(),
       {"record", "FILE",
        "write the training for `gradwire replay` (one algorithm and worker count)"},
       {"wall-clock", "", "add what the run itself took to the report"},
       {"jobs", "N", "replays at the same time (default one per processor); changes no result"}});
  return command;
}

}  // namespace gradwire
