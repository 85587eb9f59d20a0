// All workers in one process, a thread each, messages through memory.  Time stands still: it
// computes the numbers and records the traffic that sim/ then times.  Results do not depend on
// scheduling, since every receive names its sender.
#pragma once

#include <functional>
#include <memory>

#include "algorithms/communicator.h"

namespace gradwire {

struct InProcessOptions {
  int workers = 1;
  int concurrency = 0;  ///< workers computing at the same time; 0: one per processor
  bool measure_cpu = false;
  std::vector<WorkerRecording>* recordings = nullptr;  ///< resized to `workers` and filled
};

/// Runs `worker(comm)` once per rank and returns when all have ended.  The first exception of a
/// worker stops the others and is rethrown; if all wait for messages that nobody will send, throws
/// std::runtime_error naming the waiting workers.
void run_in_process(const InProcessOptions& options,
                    const std::function<void(Communicator&)>& worker);

}  // namespace gradwire
