// `gradwire sweep`: a scenario file of lists and ranges, computed point by point into a file that
// an interrupted sweep continues and that shards share out.
#include <cmath>
#include <filesystem>
#include <ostream>

#include "analysis/command_line.h"
#include "analysis/named_files.h"
#include "analysis/output_file.h"
#include "analysis/progress.h"
#include "analysis/sweep_run.h"
#include "analysis/text.h"

namespace gradwire {

namespace {

constexpr std::uint64_t kMaxPoints = 10'000;

std::pair<int, int> parse_shard(const std::string& text) {
  const std::vector<std::string> parts = split(text, '/');
  if (parts.size() != 2)
    throw std::invalid_argument("shard: \"" + text + "\" is not I/N; write e.g. 3/8");
  const auto shards = parse_integer("shard", parts[1], 1, 1'000'000);
  return {static_cast<int>(parse_integer("shard", parts[0], 1, shards)), static_cast<int>(shards)};
}

std::string duration(double seconds) {
  if (seconds < 120) return std::to_string(std::lround(seconds)) + " s";
  if (seconds < 7200) return std::to_string(std::lround(seconds / 60)) + " min";
  return std::to_string(std::lround(seconds / 3600)) + " h";
}

// What the sweep takes here, if it has more points than are allowed.
std::string excess(const Sweep& sweep, std::uint64_t allowed, int jobs) {
  if (sweep.size() <= allowed) return "";
  const SweepEstimate estimate = estimate_sweep(sweep, jobs);
  return "the sweep has " + std::to_string(estimate.points) + " points and " +
         shortest(estimate.rehearsals) + " trainings, and takes about " +
         duration(estimate.seconds) + " here (from one small point, timed); give --max-points " +
         std::to_string(estimate.points) + " to go on";
}

int sweep(const Arguments& arguments, const std::string& /*command_line*/, const Streams& streams) {
  if (arguments.positional().size() != 1)
    throw UsageError("sweep needs one scenario file; see gradwire sweep --help");
  const std::string scenario = arguments.positional().front();
  Grid fields(Grid::Lists::kEverywhere);
  arguments.apply_to(fields);
  const Sweep sweep = load_sweep(scenario, fields);
  const std::string output =
      arguments.value("output", std::filesystem::path(scenario).stem().string() + ".jsonl");
  check_writable(output);
  check_files_differ(arguments, sweep.grid, output);
  const auto [shard, shards] = parse_shard(arguments.value("shard", "1/1"));
  const int jobs = static_cast<int>(parse_integer("jobs", arguments.value("jobs", "0"), 0, 1024));
  const auto allowed = static_cast<std::uint64_t>(
      parse_integer("max-points", arguments.value("max-points", std::to_string(kMaxPoints)), 0));
  if (const std::string message = excess(sweep, allowed, jobs); !message.empty()) {
    if (allowed > 0) throw UsageError(message);
    streams.out << message << "\n";
    return 0;
  }

  SweepProgress done;
  {
    Progress progress(streams.err, streams.err_is_terminal && !arguments.has("quiet"));
    done = run_sweep(
        sweep, output,
        {.jobs = jobs,
         .shard = shard,
         .shards = shards,
         .progress = [&](const std::string& what, double share) { progress.update(what, share); }});
  }
  streams.out << output << ": " << done.points << " points";
  if (shards > 1) streams.out << " of shard " << shard << "/" << shards;
  if (done.found > 0) streams.out << ", " << done.found << " of them found there";
  streams.out << "\n";
  return 0;
}

}  // namespace

Command sweep_command() {
  Command command{
      .name = "sweep",
      .summary = "Predicts every combination of a scenario file's lists and ranges.",
      .usage = "SCENARIO.json [OPTION...]",
      .examples =
          R"(  gradwire sweep scenario.json
  gradwire sweep scenario.json --output results.jsonl && gradwire report results.jsonl
  # spread over a SLURM array of 8 jobs (in the script that sbatch --array=1-8 starts)
  gradwire sweep scenario.json --shard $SLURM_ARRAY_TASK_ID/8 --output part-$SLURM_ARRAY_TASK_ID.jsonl
  # or over this machine's or several machines' processors with GNU parallel
  parallel gradwire sweep scenario.json --jobs 1 --shard {}/8 --output part-{}.jsonl ::: $(seq 8)
  gradwire report --merge part-*.jsonl --output report.json

The scenario file is a JSON object of the options' names.  Each takes a value, a list, or a range:
  {"platform": "star-10g", "workers": {"from": 2, "to": 64, "factor": 2},
   "bandwidth": {"from": "10Mbps", "to": "100Gbps", "points": 9, "spacing": "log"},
   "algorithm": ["dsgd", "powersgd:rank=4", {"name": "rank-dad", "rank": [2, 4, 8]}],
   "batch-size": 64}
With batch-size, per worker, it scales weakly; with global-batch-size instead, strongly.
"crossovers": false leaves the search for them between the grid's bandwidths out.

Results are appended to the output file as they come.  The same command continues an interrupted
sweep; every point is computed once.
)",
      .flags = {{"output", "FILE", "where results are gathered (default SCENARIO.jsonl here)"},
                {"shard", "I/N", "compute the I-th of N parts of the work (default 1/1)"},
                {"jobs", "N", "replays at the same time (default one per processor)"},
                {"max-points", "N",
                 "go on if there are no more points than this (default " +
                     std::to_string(kMaxPoints) + "); 0: only say how many and how long"},
                {"quiet", "", "no progress"}},
      .run = sweep};
  for (const Field& field : scenario_fields()) command.flags.push_back(field_flag(field));
  return command;
}

}  // namespace gradwire
