// The loop that every implementation of Communicator runs: build a worker, broadcast rank 0's
// initial parameters, step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/report.h"
#include "algorithms/scenario.h"

namespace gradwire {

/// What one worker found.
struct WorkerOutcome {
  /// Of its own batch (mean), per batch; empty where the model has none.
  std::vector<double> loss;
  std::map<std::string, std::vector<double>> metrics;  ///< per batch
  std::vector<EvaluationPoint> evaluations;            ///< rank 0 only; time_s unset
  std::uint64_t parameter_hash = 0;                    ///< 0 without values
  WorkerMemory memory;
};

/// Called after every step, on the worker's thread (tests and diagnostics); may be empty.
using StepHook = std::function<void(Worker&)>;

/// Where a worker's initial parameters come from; they are rank 0's either way.
enum class Start : std::uint8_t { kBroadcast, kSameSeed };

/// Trains one worker.  comm.steps() has scenario.batches + 1 accounts afterwards: the first when
/// the initial parameters are there, then one per batch.  `replicas` may be null.
WorkerOutcome train(Communicator& comm, const Scenario& scenario, const Dataset& dataset,
                    const StepHook& hook = {}, Replicas* replicas = nullptr,
                    Start start = Start::kBroadcast);

/// Everything that a network needs to time a run without its mathematics.
struct Recording {
  std::vector<WorkerRecording> workers;
  BatchWork batch_work;
};

/// The mathematics of all workers in this process, with what is needed to time it.  Where replicas
/// differ, every worker's metrics have consensus_distance: the root mean square over the workers of
/// the distance from the mean model.
struct Rehearsal {
  std::vector<WorkerOutcome> workers;
  Recording recording;
  std::vector<double> gradient_relative_error;  ///< per batch, if the scenario asks for it
};
Rehearsal rehearse(const Scenario& scenario, const Dataset& dataset);

/// Throws std::invalid_argument where the scenario asks a cost-only model for what it has not got,
/// or an algorithm to do without values that needs them.
void check_model_use(const Scenario& scenario, const Model& model);

/// Fills the parts of a Result that do not depend on time.
void describe(const Rehearsal& rehearsal, Result& result);

/// Fills the parts of a Result that come from the workers' accounts (see WorkerOutcome).
void describe_times(const std::vector<std::vector<Account>>& steps_by_worker, Result& result);

std::uint64_t parameter_hash(const Model& model);

}  // namespace gradwire
