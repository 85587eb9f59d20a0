// A Scenario timed on its platform by SimGrid.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/report.h"
#include "algorithms/training.h"

namespace gradwire {

/// Timelines by worker, for traces.
using Timeline = std::vector<std::vector<Span>>;

/// Runs `worker(comm)` for every rank as SimGrid actors in a forked child: mathematics and network
/// together.  Returns each worker's accounts.  Throws PlatformError for a bad platform and
/// std::runtime_error for a worker's failure or a deadlock, naming the waiting workers.
struct SimulatedRun {
  std::vector<std::vector<Account>> steps_by_worker;
  Timeline timeline;                                         ///< if asked for
  std::vector<std::pair<std::string, std::string>> network;  ///< constants used
  std::vector<std::string> warnings;
};
SimulatedRun run_simulated(const Scenario& scenario, const BatchWork& batch_work,
                           const std::function<void(Communicator&)>& worker,
                           bool keep_timeline = false);

/// Times a recording under the scenario's platform, bandwidth, latency and compute model: the same
/// calls on the same communicator without the mathematics, hence the same times to the last bit.
SimulatedRun replay(const Scenario& scenario, const Recording& recording,
                    bool keep_timeline = false);

/// Mathematics once in this process (rehearse), then replay: the Result of one scenario.
Result simulate(const Scenario& scenario, const Dataset& dataset);

}  // namespace gradwire
