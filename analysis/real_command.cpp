// `gradwire real`: the scenarios of `run` as real processes, here or on a cluster, with the same
// table and report.
#include <optional>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "algorithms/memory.h"
#include "algorithms/training.h"
#include "analysis/chrome_trace.h"
#include "analysis/command_line.h"
#include "analysis/local_network.h"
#include "analysis/named_files.h"
#include "analysis/output_file.h"
#include "analysis/progress.h"
#include "analysis/publish.h"
#include "analysis/real_options.h"
#include "analysis/study.h"
#include "analysis/text.h"
#include "analysis/units.h"
#include "models/cost_only.h"
#ifdef GRADWIRE_WITH_GLOO
#include "real/launch.h"
#endif

namespace gradwire {

namespace {

#ifdef GRADWIRE_WITH_GLOO

// The scenario as it was really run: what of it is of the simulation only says so.
void describe_network(const RealOptions& options, const LocalNetwork& network, Result& result) {
  Scenario& s = result.scenario;
  s.compute.mode = ComputeSpec::Mode::kMeasured;
  if (options.lab != nullptr) {
    s.platform = "lab";
    network.describe(result);
    return;
  }
  s.platform = options.cluster ? "cluster" : "loopback";
  s.bandwidth_bit_per_s.reset();
  s.latency_s.reset();
}

// Null for loopback.  Rates that cannot be kept are refused.
const NetLab* lab_of(const Scenario& s, LocalNetwork& network) {
  const NetLab* lab = network.of(s);
  if (lab == nullptr && s.workers > 1 && (s.bandwidth_bit_per_s || s.latency_s))
    throw std::invalid_argument(std::string(s.bandwidth_bit_per_s ? "bandwidth" : "latency") +
                                ": no network lab that could keep it (" + network.obstacle() +
                                "); run as root, or over loopback without bandwidth and latency");
  return lab;
}

// Nothing on a cluster's ranks other than 0.
std::optional<Study> run_all(const std::vector<Scenario>& scenarios, RealOptions options,
                             Progress& progress) {
  Study study;
  LocalNetwork network;
  Datasets datasets;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& s = scenarios[i];
    progress.update(s.algorithm.text() + ", " + std::to_string(s.workers) + " workers",
                    static_cast<double>(i) / static_cast<double>(scenarios.size()));
    const Dataset& dataset = datasets.of(s);
    const auto model = make_model_for_checks(s.model, dataset.shape);
    check_model_use(s, *model);
    if (!s.model.values) throw std::invalid_argument("math: none has nothing to run for real");
    if (!options.cluster) check_memory(s, *model, dataset, available_memory_bytes());
    if (i == 0) describe_inputs(s, *model, dataset, study);
    if (!options.cluster) options.lab = lab_of(s, network);
    std::optional<Result> result = run_real(s, dataset, options);
    if (!result) continue;
    describe_network(options, network, *result);
    study.results.push_back(std::move(*result));
  }
  if (study.results.empty()) return std::nullopt;
  return study;
}

int run(const Arguments& arguments, const std::string& command_line, const Streams& streams) {
  if (!arguments.positional().empty())
    throw UsageError("real: unexpected \"" + arguments.positional().front() + "\"");
  Grid grid;
  arguments.apply_to(grid);
  if (arguments.has("scenario")) load_scenario_file(arguments.value("scenario"), grid);
  RealOptions options = read_real_options(arguments);
  const std::vector<Scenario> scenarios = grid.points();
  if (options.cluster && (grid.has("bandwidth") || grid.has("latency")))
    throw UsageError("--bandwidth and --latency shape a network on this machine, not a cluster's");
  const bool leads = !options.cluster || options.cluster->rank == 0;
  check_publishable(arguments, leads);
  check_files_differ(arguments, grid);
  Timeline timeline;
  if (check_trace(arguments, scenarios.size(), leads)) options.timeline = &timeline;
  std::optional<Study> study;
  {
    Progress progress(streams.err, leads && streams.err_is_terminal && !arguments.has("quiet"));
    study = run_all(scenarios, options, progress);
  }
  if (!study) return 0;
  publish(*study, grid, arguments, command_line, streams);
  if (options.timeline != nullptr) write_file(arguments.value("trace"), chrome_trace(timeline));
  return 0;
}

#else

int run(const Arguments& /*arguments*/, const std::string& /*command_line*/,
        const Streams& /*streams*/) {
  throw std::runtime_error("this gradwire was built without Gloo: real runs are not possible");
}

#endif

}  // namespace

Command real_command() {
  Command command{.name = "real",
                  .summary =
                      "Trains with real processes over TCP and reports measured times in place of "
                      "predicted ones.",
                  .usage = "[OPTION...]",
                  .examples =
                      R"(  gradwire real --workers 2,4 --algorithm rank-dad dsgd
  gradwire real --workers 4 --bandwidth 100Mbps --latency 5ms --json     # as root: a network lab
  mpirun -n 4 gradwire real --workers 4 --rendezvous /shared/folder --interface eth0
)",
                  .flags = {},
                  .run = run};
  command.flags.push_back({"scenario", "FILE",
                           "JSON object as for gradwire run; what only a simulation needs is "
                           "ignored, an option given here overrides it",
                           "Scenario"});
  for (const Field& field : scenario_fields())
    if (!field.timing_only) command.flags.push_back(field_flag(field));
  for (const char* key : {"bandwidth", "latency"}) {
    Flag flag = field_flag(find_field(key));
    flag.help = key == std::string("bandwidth")
                    ? "of every worker's cable in a network lab on this machine (root)"
                    : "of every worker's cable there; a message crosses two";
    flag.group = "Real network";
    command.flags.push_back(std::move(flag));
  }
  for (Flag& flag : real_network_flags()) command.flags.push_back(std::move(flag));
  for (Flag& flag : publishing_flags()) command.flags.push_back(std::move(flag));
  command.flags.push_back(trace_flag());
  return command;
}

}  // namespace gradwire
