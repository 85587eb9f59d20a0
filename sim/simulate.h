// A Scenario timed on its platform by SimGrid.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "algorithms/report.h"
#include "algorithms/training.h"

namespace gradwire {

/// The constant of a calibrated network that says how far off, relatively, its times may be.
inline constexpr const char* kPredictionUncertainty = "prediction_uncertainty";

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

/// Times a recording under a scenario's platform, bandwidth, latency and compute model.  Scenarios
/// on one platform share one loading of it, which holds what its file said at the first.
///
/// With `scenario.exact_replay` it makes the same calls on the same communicator without the
/// mathematics, hence the same times to the last bit as run_simulated().  Otherwise SimGrid only
/// loads the platform, and the calls are repeated over a model of the same sharing
/// (sim/flow_replay.h), many times faster: times within 1e-9 of the exact ones, mostly the same
/// bits.  Where that model does not say all (SimGrid's own network models, profiles, Wi-Fi,
/// settings in the file, a timeline to keep), and where rounding decides about the times of flows
/// that meet, the replay is exact by itself.  `network` says which it was: its `replay` is `folded`
/// or `exact`.
class Replayer {
 public:
  /// The recording must outlive the object.
  explicit Replayer(const Recording& recording);
  ~Replayer();
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  /// Threads may call it at the same time.
  SimulatedRun replay(const Scenario& scenario, bool keep_timeline = false);

 private:
  struct Platforms;
  const Recording& recording_;
  std::unique_ptr<Platforms> platforms_;
};

/// Of one scenario.
SimulatedRun replay(const Scenario& scenario, const Recording& recording,
                    bool keep_timeline = false);

/// Mathematics once in this process (rehearse), then replay: the Result of one scenario.
Result simulate(const Scenario& scenario, const Dataset& dataset);

}  // namespace gradwire
