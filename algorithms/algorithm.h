// A training algorithm: one virtual step(Worker&), one object per worker, state in members.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "algorithms/communicator.h"
#include "algorithms/options.h"
#include "models/model.h"
#include "models/optimizer.h"

namespace gradwire {

class Replicas;  // algorithms/replicas.h

/// What a worker has to work with, and what it reports of a step.
struct Worker {
  Communicator& comm;
  Model& model;
  Optimizer& optimizer;
  BatchSource& batches;
  std::uint64_t seed = 0;  ///< of the scenario: the same on every worker
  Index batch_size = 0;    ///< rows of this worker's batch
  Index global_batch = 0;  ///< rows of all workers' batches
  std::int64_t step = 0;
  Replicas* replicas = nullptr;  ///< shares what equal replicas in this process have; may be null

  // Filled during the step.
  double loss_sum = 0;                         ///< over this worker's batch
  std::map<std::string, double> metrics = {};  ///< e.g. "effective_rank/fc1"

  // Diagnostics, free of charge: with `diagnose`, backpropagate() and apply() leave here this
  // worker's exact gradient (sum of losses) and the mean gradient that the algorithm applied.
  bool diagnose = false;
  Gradients local_gradient = {};
  Gradients applied_gradient = {};
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual void step(Worker& worker) = 0;
  /// What it keeps from step to step beside the model and the optimiser's memory: residuals,
  /// velocities, factors to start from.  Without values, too, those of the shapes.
  virtual double state_bytes() const { return 0; }
};

/// Takes the step's batch forward and back, charging what it costs; `sink` sees the traces.
void backpropagate(Worker& worker, const BackwardSink& sink);

/// Lets the optimiser step with the mean gradient and charges it.
void apply(Worker& worker, const Gradients& mean_gradient);

/// An algorithm as users see it.  A new algorithm is one file that defines its row, and the row's
/// name in registry.cpp.
struct AlgorithmRow {
  std::string name;
  std::string summary;  ///< one line
  std::vector<OptionSpec> options;
  bool exact = false;       ///< applies the exact mean gradient, up to rounding
  bool synchronous = true;  ///< numbers do not depend on timing
  bool consensus = true;    ///< replicas stay bit-equal; false for gossip
  bool sizes_only = false;  ///< can run without values (`--math none`)
  std::unique_ptr<Algorithm> (*make)(const Options& options) = nullptr;
};

const std::vector<AlgorithmRow>& algorithm_registry();

/// Throws std::invalid_argument naming the known algorithms.
const AlgorithmRow& find_algorithm(const std::string& name);

/// One worker's algorithm object.  Throws std::invalid_argument for bad options.
std::unique_ptr<Algorithm> make_algorithm(const AlgorithmSpec& spec);

}  // namespace gradwire
