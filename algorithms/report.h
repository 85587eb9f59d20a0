// What a run found, filled by sim/ and real/ alike; analysis/ turns it into JSON and tables.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/scenario.h"

namespace gradwire {

struct Summary {
  double mean = 0, median = 0, min = 0, max = 0;
  std::vector<double> samples;  ///< one per batch
};
Summary summarize(std::vector<double> samples);

/// What one worker needs for itself.
struct WorkerMemory {
  double total_bytes = 0;  ///< parameters, gradient, optimiser, activations, deltas; and:
  double state_bytes = 0;  ///< the algorithm's own (Algorithm::state_bytes)
};

struct EvaluationPoint {
  std::int64_t batch = 0;  ///< batches done
  double time_s = 0;       ///< since the first batch began
  double loss = 0, accuracy = 0, macro_auc = 0;
};

struct Result {
  Scenario scenario;

  Summary batch_time_s;  ///< from one batch's end on the last worker to the next one's
  // Per batch, on the worker that was busiest:
  Summary compute_time_s;                ///< forward, backward, optimiser
  Summary optimizer_time_s;              ///< the optimiser's part of these
  Summary compression_time_s;            ///< compressing, decompressing, rebuilding gradients
  Summary reduction_time_s;              ///< additions inside collectives, on the main lane
  Summary exposed_communication_time_s;  ///< batch time less the three above, on the main lane
  double setup_time_s = 0;               ///< broadcast of the initial parameters

  std::vector<double> bytes_sent_by_worker;     ///< per batch, mean over batches, by rank
  std::vector<double> messages_sent_by_worker;  ///< likewise

  /// Mean over the global batch, per batch; may be NaN; empty for a cost-only model.
  std::vector<double> loss;
  std::vector<double> gradient_relative_error;  ///< Frobenius, per batch; empty unless asked for
  /// Further per-batch figures of the algorithm, mean over workers: "effective_rank/fc1" -> per
  /// batch.
  std::map<std::string, std::vector<double>> metrics;
  std::vector<EvaluationPoint> evaluations;
  WorkerMemory memory;               ///< of the worker that needs most
  std::uint64_t parameter_hash = 0;  ///< of rank 0's final parameters
  bool replicas_equal = true;        ///< all workers end with the same bits

  /// Every constant of the network model and the platform as used: key (with unit) -> value.
  std::vector<std::pair<std::string, std::string>> network;
  std::vector<std::string> warnings;
};

}  // namespace gradwire
