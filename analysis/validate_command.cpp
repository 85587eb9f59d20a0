// `gradwire validate`: every case for real in the network lab and predicted, in turns, and how far
// the two are apart.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <ostream>
#include <set>

#include "analysis/command_line.h"
#include "analysis/named_files.h"
#include "analysis/output_file.h"
#include "analysis/progress.h"
#include "analysis/report.h"
#include "analysis/study.h"
#include "analysis/text.h"
#include "analysis/units.h"
#include "analysis/validate.h"
#include "models/input_file.h"
#ifdef GRADWIRE_WITH_GLOO
#include "analysis/local_network.h"
#include "real/foreign_load.h"
#include "real/launch.h"
#include "sim/calibration.h"
#include "sim/simulate.h"
#endif

namespace gradwire {

namespace {

#ifdef GRADWIRE_WITH_GLOO

constexpr int kBatches = 6;         // the first is not counted
constexpr double kRun_s = 2.5;      // what the batches of one run may take
constexpr double kSlowBatch_s = 3;  // run once, and one batch only
constexpr double kTimeout_s = 60;   // of a message, and ten times a batch

// The results so far; each run is added as a line.
class Results {
 public:
  Results(std::string path, const std::string& header) : path_(std::move(path)) {
    try {
      std::error_code ignored;
      if (std::filesystem::exists(path_, ignored))
        runs_ = parse_lines(read_input("", path_), header);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(path_ + ": " + error.what());
    }
    std::string text = header;
    for (const ValidationRun& run : runs_) text += to_line(run);
    write_file(path_, text);
  }

  void add(const ValidationRun& run) {
    append_to_file(path_, to_line(run));
    runs_.push_back(run);
  }

  bool has(const std::string& key, int round) const {
    return std::any_of(runs_.begin(), runs_.end(), [&](const ValidationRun& run) {
      return run.key == key && run.round == round;
    });
  }

  ValidationCase of(const Scenario& scenario) const {
    ValidationCase one{.scenario = scenario, .measured_s = {}, .predicted_s = {}};
    const std::string key = case_key(scenario);
    for (const ValidationRun& run : runs_) {
      if (run.key != key) continue;
      one.measured_s.insert(one.measured_s.end(), run.measured_s.begin(), run.measured_s.end());
      one.predicted_s.insert(one.predicted_s.end(), run.predicted_s.begin(), run.predicted_s.end());
    }
    return one;
  }

 private:
  std::string path_;
  std::vector<ValidationRun> runs_;
};

std::vector<double> counted(const Result& result) {
  const std::vector<double>& all = result.batch_time_s.samples;
  return {all.begin() + (all.size() > 1 ? 1 : 0), all.end()};
}

std::vector<double> predict(Scenario s, const std::string& calibration, const Dataset& dataset) {
  s.platform = "star-1g";
  s.network_model = "calibrated:" + calibration;
  s.batches = kBatches;
  return counted(simulate(s, dataset));
}

std::vector<double> measure(Scenario s, double expected_s, const Dataset& dataset,
                            const NetLab& lab) {
  s.batches = expected_s > kSlowBatch_s
                  ? 1
                  : std::clamp(1 + static_cast<int>(kRun_s / expected_s), 2, kBatches);
  RealOptions options;
  options.timeout_s = kTimeout_s + 10 * expected_s;
  options.lab = &lab;
  options.start = Start::kSameSeed;  // a broadcast at 10 Mbit/s takes longer than the batches
  return counted(*run_real(s, dataset, options));
}

// What the fits of a calibration left over, and the cases that it has seen.
struct Known {
  double uncertainty = 0;
  std::set<double> rates;
  std::string text;
};

Known study_calibration(const std::string& path) {
  Known known;
  known.uncertainty = read_calibration(path).uncertainty;
  known.text = read_input(path + ":", path);
  const auto file = parse_input(path + ":", known.text);
  if (file.contains("samples") && file["samples"].contains("shaped_streams"))
    for (const auto& shaped : file["samples"]["shaped_streams"])
      known.rates.insert(shaped.value("port_bit_per_s", 0.0));
  return known;
}

void refuse_known_cases(const std::vector<Scenario>& scenarios, const Known& known) {
  for (const Scenario& s : scenarios)
    if (known.rates.contains(s.bandwidth_bit_per_s.value_or(0)))
      throw std::invalid_argument("bandwidth: the calibration has seen ports of " +
                                  format_bandwidth(*s.bandwidth_bit_per_s) +
                                  "; such cases do not count");
}

std::vector<Scenario> read_cases(const Arguments& arguments) {
  Grid grid;
  arguments.apply_to(grid);
  std::vector<Scenario> cases = validation_matrix();
  if (grid.has("algorithm") || grid.has("workers") || grid.has("bandwidth") ||
      grid.has("latency") || grid.has("model")) {
    if (!grid.has("bandwidth"))
      throw UsageError("validate: cases of your own need --bandwidth, e.g. 100Mbps");
    cases = grid.points();
  }
  for (Scenario& s : cases) {
    if (s.workers < 2) throw std::invalid_argument("workers: validate needs at least 2");
    s.compute.mode = ComputeSpec::Mode::kMeasured;
    if (!s.latency_s) s.latency_s = 0;
  }
  return cases;
}

class Validation {
 public:
  Validation(std::vector<Scenario> cases, std::string calibration, Results& results)
      : cases_(std::move(cases)), calibration_(std::move(calibration)), results_(results) {}

  /// One turn of all cases that have no result of this round, until the time is over.
  void run(int round, double limit_s, Progress& progress, std::set<std::string>& warnings) {
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const Scenario& s = cases_[i];
      const std::string key = case_key(s);
      if (results_.has(key, round) || (round > 0 && is_slow(s))) continue;
      if (elapsed_s() > limit_s) {
        warnings.insert("the time limit is reached; the same command goes on from here");
        return;
      }
      progress.update("round " + std::to_string(round + 1) + ", " + key,
                      static_cast<double>(i) / static_cast<double>(cases_.size()));
      const NetLab* lab = network_.of(s);
      if (lab == nullptr)
        throw std::runtime_error("no network lab, nothing to validate in: " + network_.obstacle());
      if (const std::string complaint = network_.complaint(); !complaint.empty())
        warnings.insert(complaint);
      const auto done = run_undisturbed(s, round, *lab);
      if (done)
        results_.add(*done);
      else
        warnings.insert(
            "other processes compute here: cases are left out, of which the same "
            "command measures again");
    }
  }

  std::vector<ValidationCase> finished() const {
    std::vector<ValidationCase> all;
    for (const Scenario& s : cases_)
      if (ValidationCase one = results_.of(s); !one.measured_s.empty())
        all.push_back(std::move(one));
    return all;
  }

 private:
  // Nothing if whatever else runs on the machine does not leave it alone.
  std::optional<ValidationRun> run_undisturbed(const Scenario& s, int round, const NetLab& lab) {
    const Dataset& dataset = datasets_.of(s);
    bool disturbed = false;
    ValidationRun done = measure_undisturbed(2, disturbed, [&] {
      ValidationRun run{.key = case_key(s), .round = round, .measured_s = {}, .predicted_s = {}};
      run.predicted_s = predict(s, calibration_, dataset);
      run.measured_s = measure(s, gradwire::summarize(run.predicted_s).median, dataset, lab);
      return run;
    });
    if (!disturbed) return done;
    return std::nullopt;
  }

  bool is_slow(const Scenario& s) const {
    return gradwire::summarize(results_.of(s).measured_s).median > kSlowBatch_s;
  }
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  std::vector<Scenario> cases_;
  std::string calibration_;
  Results& results_;
  LocalNetwork network_;
  Datasets datasets_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string calibrated_on(const Known& known) {
  std::string rates = "unlimited";
  for (const double rate : known.rates) rates += ", " + format_bandwidth(rate);
  return "messages and streams between 2 and 4 workers over ports of these rates: " + rates +
         "; no training, none of the cases";
}

int run(const Arguments& arguments, const std::string& command_line, const Streams& streams) {
  if (!arguments.positional().empty())
    throw UsageError("validate: unexpected \"" + arguments.positional().front() + "\"");
  for (const char* key : {"calibration", "results"})
    if (!arguments.has(key)) throw UsageError("validate needs --" + std::string(key) + " FILE");
  for (const char* key : {"results", "output", "plot"})
    if (arguments.has(key)) check_writable(arguments.value(key));
  check_files_differ(arguments);
  const std::string calibration = arguments.value("calibration");
  const Known known = study_calibration(calibration);
  const std::vector<Scenario> cases = read_cases(arguments);
  refuse_known_cases(cases, known);
  const auto rounds = parse_integer("rounds", arguments.value("rounds", "3"), 0, 1000);
  const double limit_s = parse_time_s("time-limit", arguments.value("time-limit", "20m"));
  Results results(arguments.value("results"), results_header(known.text));
  Validation validation(cases, calibration, results);
  std::set<std::string> warnings;
  {
    Progress progress(streams.err, streams.err_is_terminal && !arguments.has("quiet"));
    for (int round = 0; round < rounds; ++round) validation.run(round, limit_s, progress, warnings);
  }
  if (!arguments.has("quiet"))
    for (const std::string& warning : warnings)
      streams.err << "gradwire: warning: " << warning << "\n";
  const std::vector<ValidationCase> finished = validation.finished();
  if (finished.empty()) throw std::runtime_error("no case has a result yet");
  if (arguments.has("output")) {
    nlohmann::ordered_json report{{"command_line", command_line},
                                  {"calibrated_on", calibrated_on(known)},
                                  {"prediction_uncertainty", known.uncertainty}};
    report.update(validation_json(finished, known.uncertainty));
    report["warnings"] = warnings;
    report["versions"] = versions();
    write_file(arguments.value("output"), dump(report));
  }
  if (arguments.has("plot"))
    write_file(arguments.value("plot"), validation_svg(finished, known.uncertainty));
  streams.out << validation_table(finished, known.uncertainty) << "Calibrated on "
              << calibrated_on(known) << "\n";
  return 0;
}

#else

int run(const Arguments& /*arguments*/, const std::string& /*command_line*/,
        const Streams& /*streams*/) {
  throw std::runtime_error("this gradwire was built without Gloo: it cannot validate");
}

#endif

}  // namespace

Command validate_command() {
  Command command{
      .name = "validate",
      .summary = "Runs cases for real in a network lab and says how wrong their predictions are.",
      .usage = "--calibration FILE --results FILE [OPTION...]",
      .examples =
          R"(  gradwire validate --calibration calibration.json --results results.jsonl   # as root
  gradwire validate --calibration calibration.json --results few.jsonl --plot few.svg \
    --workers 2,4 --bandwidth 100Mbps --algorithm dsgd rank-dad
)",
      .flags = {{"calibration", "FILE", "of gradwire calibrate, on this machine"},
                {"results", "FILE",
                 "grows by a line with every run; the same command goes on where it stopped"},
                {"rounds", "N", "runs of each case, in turns (default 3); 0: only report"},
                {"time-limit", "TIME", "starts no further run after it (default 20m)"},
                {"output", "FILE", "write the JSON report"},
                {"plot", "FILE", "write predicted against measured as SVG"},
                {"quiet", "", "no progress and no warnings"}},
      .run = run};
  for (const char* key :
       {"workers", "bandwidth", "latency", "model", "batch-size", "algorithm", "dataset", "seed"}) {
    Flag flag = field_flag(find_field(key));
    flag.group = "Cases (default: the whole matrix)";
    if (key == std::string("latency")) flag.help = "of every worker's cable; a message crosses two";
    command.flags.push_back(std::move(flag));
  }
  return command;
}

}  // namespace gradwire
