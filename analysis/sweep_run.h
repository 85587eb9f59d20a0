// Computes what is missing in a sweep's file: the mathematics of each group once, its networks in
// parallel, and between the grid's bandwidths the crossovers of each pair of algorithms.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "analysis/sweep_file.h"
#include "analysis/sweep_plan.h"

namespace gradwire {

struct SweepOptions {
  int jobs = 0;   ///< replays at the same time; 0: one per processor
  int shard = 1;  ///< from 1 to shards: which part of the work is this process's
  int shards = 1;
  /// Told before each piece of work: what it is and the share of all work done so far.
  std::function<void(const std::string& what, double done)> progress = {};
};

struct SweepProgress {
  std::uint64_t points = 0;  ///< of this shard, references included
  std::uint64_t found = 0;   ///< of these, already in the file before
};

/// Throws std::invalid_argument for a bad scenario before anything is computed, and what
/// SweepFile throws.
SweepProgress run_sweep(const Sweep& sweep, const std::string& path, const SweepOptions& options);

/// What the whole sweep will take on this machine, from one timed point with the fewest workers;
/// costs are taken to grow as the number of workers.
struct SweepEstimate {
  std::uint64_t points = 0;
  double rehearsals = 0;
  double seconds = 0;
};
SweepEstimate estimate_sweep(const Sweep& sweep, int jobs);

}  // namespace gradwire
