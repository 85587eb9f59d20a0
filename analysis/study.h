// Many scenarios at once: everything cheap is checked first, the mathematics runs once for all the
// scenarios that share it, and each scenario's network times the recording.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/report.h"
#include "algorithms/scenario.h"
#include "algorithms/training.h"
#include "sim/platform.h"
#include "sim/simulate.h"

namespace gradwire {

struct DatasetInfo {
  std::string name;
  bool synthetic = false;
  bool none = false;  ///< of a cost-only model
  DataShape shape;
  Index train_examples = 0;
  Index test_examples = 0;
};

struct ModelInfo {
  std::string name;
  bool has_loss = true;
  Index parameters = 0;
  std::vector<LinearMap> maps;
};

/// Processor-independent results but for `wall_*`.
struct Study {
  std::vector<Result> results;          ///< in the order of the scenarios
  std::vector<PlatformInfo> platforms;  ///< one per distinct use of a platform, in order
  DatasetInfo dataset;                  ///< of the first scenario
  ModelInfo model;                      ///< of the first scenario
  Timeline timeline;                    ///< of the first scenario, if asked for
  double wall_mathematics_s = 0;
  double wall_network_s = 0;
};

/// The scenarios' data sets, each loaded once.
class Datasets {
 public:
  const Dataset& of(const Scenario& scenario);

 private:
  std::map<std::tuple<std::string, std::uint64_t, int, int>, Dataset> loaded_;
};

/// Checks everything that the scenarios need to start, from the cheapest to the dearest; fills the
/// study's platforms, data set and model.  Throws std::invalid_argument.
void check_scenarios(const std::vector<Scenario>& scenarios, Datasets& datasets, Study& study);

/// rehearse(); a failure in the middle of training says whose it is.
Rehearsal rehearse_named(const Scenario& scenario, const Dataset& dataset);

/// Results of the scenarios that share one rehearsal, which must outlive the object.
class Timing {
 public:
  explicit Timing(const Rehearsal& rehearsal);
  /// Threads may call it at the same time.
  Result of(const Scenario& scenario, Timeline* timeline = nullptr);

 private:
  Result described_;
  Replayer replayer_;
};

/// Fills the study's data set and model.
void describe_inputs(const Scenario& scenario, const Model& model, const Dataset& dataset,
                     Study& study);

struct StudyOptions {
  int jobs = 0;  ///< replays at the same time; 0: one per processor
  bool keep_timeline = false;
  /// Told before each piece of work: what it is and the share of all work done so far.
  std::function<void(const std::string& what, double done)> progress = {};
  /// Given the mathematics of each synchronous algorithm and number of workers (for recordings).
  std::function<void(const Rehearsal& rehearsal)> rehearsed = {};
};

/// Throws std::invalid_argument if a scenario is bad, before any long computation.
Study run_study(const std::vector<Scenario>& scenarios, const StudyOptions& options);

/// Times a rehearsal in every scenario; the study has no data set and no model.
Study replay_study(const std::vector<Scenario>& scenarios, const Rehearsal& rehearsal, int jobs);

}  // namespace gradwire
