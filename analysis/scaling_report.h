// What a sweep's results say: speed-ups, the best algorithm over bandwidth and workers, crossovers,
// time to accuracy.  Plain values; scaling_text.h and html_report.h write them down.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/sweep_plan.h"

namespace gradwire {

/// The lines of one or several files of one sweep.
struct SweepResults {
  SweepPlan plan;
  nlohmann::ordered_json identity;
  std::map<std::uint64_t, nlohmann::ordered_json> rows = {};  ///< by point
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<double>> crossovers =
      {};  ///< by pair
};

/// Throws std::invalid_argument naming the file for a corrupt one, one of another sweep, one that
/// contradicts another, and if no point is there.
SweepResults load_sweep_results(const std::vector<std::string>& paths);

/// A wish like `auc=0.9`, `accuracy=0.8` or `loss=0.5`.
struct Target {
  std::string metric;
  double value = 0;
  bool reached_by(double found) const { return metric == "loss" ? found <= value : found >= value; }
};
/// Throws std::invalid_argument.
Target parse_target(const std::string& text);

/// Undefined figures are NaN.
struct ScalingRow {
  std::uint64_t point = 0;
  Scenario scenario;
  const nlohmann::ordered_json* result = nullptr;  ///< the sweep's row
  double batch_time_s = 0;
  double batch_time_low_s = 0, batch_time_high_s = 0;  ///< of a calibrated network
  double compute_time_s = 0;
  double compression_time_s = 0;
  double reduction_time_s = 0;
  double exposed_communication_time_s = 0;
  double bytes_sent_per_worker = 0;
  double memory_bytes_per_worker = 0;
  double state_bytes_per_worker = 0;  ///< of it, the algorithm's own
  double throughput_example_per_s = 0;
  double speedup = 0;              ///< throughput over a single worker's
  double efficiency = 0;           ///< speed-up over the number of workers
  double speedup_vs_baseline = 0;  ///< the baseline's batch time over this one's
};

/// Rows that differ in algorithm, workers and bandwidth alone, and so share a picture.
struct ScalingSetting {
  std::string text;  ///< the fields that tell it from other settings; may be empty
  std::vector<std::size_t> rows;
};

/// The fastest algorithm of one setting, number of workers and bandwidth.
struct BestChoice {
  std::size_t row = 0;
  /// Plain dSGD's batch time over the best one's; NaN if the sweep has no plain dSGD.
  double gain_over_no_compression = 0;
  /// Plain dSGD is the fastest, or nothing beats it by more than 1 %.
  bool no_compression = false;
};

struct Crossover {
  std::size_t first_row = 0, second_row = 0;  ///< of the two algorithms, on the slowest network
  double lowest_bit_per_s = 0, highest_bit_per_s = 0;
  std::vector<double> bandwidths_bit_per_s;
  int faster_below = 0;  ///< 0: the first, 1: the second; -1: equal all over the grid
};

struct TargetTime {
  std::size_t row = 0;
  Target target;
  double time_s = 0;         ///< simulated; NaN: not reached
  std::int64_t batches = 0;  ///< -1: not reached
};

struct ScalingReport {
  std::string baseline;  ///< an algorithm
  bool strong = false;
  std::vector<ScalingRow> rows = {};  ///< in the grid's order
  std::vector<ScalingSetting> settings = {};
  std::vector<BestChoice> best = {};
  std::vector<Crossover> crossovers = {};
  std::vector<TargetTime> target_times = {};
  std::uint64_t missing_points = 0;
};

/// `baseline`: an algorithm of the sweep; "": its first plain dSGD, else its first algorithm.
/// Throws std::invalid_argument for a baseline that the sweep has not.
ScalingReport analyse_sweep(const SweepResults& results, const std::string& baseline,
                            const std::vector<Target>& targets);

/// Sends full gradients in full precision.
bool is_plain_dsgd(const AlgorithmSpec& spec);

}  // namespace gradwire
