// How much memory a run's mathematics needs, and what the machine has left; what freed memory
// becomes.
#pragma once

#include <filesystem>

#include "algorithms/scenario.h"

namespace gradwire {

/// While it lives, freed matrices keep their pages: every step makes and drops megabytes.  Not for
/// sizes alone, whose matrices have no pages: address space beyond the machine's memory, if kept,
/// would forbid to fork.
class KeptPages {
 public:
  KeptPages();
  ~KeptPages();
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;
};

/// Bytes of all workers in one process, within about a factor of two: per worker its gradient, one
/// working copy, activations and deltas, with gradient_error four times the parameters more; the
/// parameters and the optimiser's memory, per worker, or twice where replicas share them; and the
/// data set.  Without values: 0.
double estimate_memory_bytes(const Scenario& scenario, const Model& model, const Dataset& dataset);

/// Bytes of one worker by itself: parameters, their gradient, the optimiser's memory, activations
/// and deltas of its batch; without the algorithm's state.
double worker_memory_bytes(const Scenario& scenario, const Model& model);

/// What can still be had: the system's MemAvailable, or less where a control group (v2 or v1)
/// limits this process.  Infinite where neither can be read.
double available_memory_bytes(const std::filesystem::path& proc = "/proc",
                              const std::filesystem::path& cgroup = "/sys/fs/cgroup");

/// Throws std::invalid_argument naming both figures where the estimate exceeds `available_bytes`.
void check_memory(const Scenario& scenario, const Model& model, const Dataset& dataset,
                  double available_bytes);

}  // namespace gradwire
