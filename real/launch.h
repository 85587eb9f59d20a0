// A Scenario run by real processes: one command forks all workers on this machine, or is itself one
// of those that mpirun, srun or torchrun started on a cluster.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/report.h"
#include "algorithms/training.h"
#include "real/gloo_communicator.h"
#include "real/netlab.h"

namespace gradwire {

/// What a cluster's launcher said about this process.
struct ClusterRank {
  int rank = 0;
  int size = 1;
  int local_rank = 0;         ///< among the processes of this host
  std::string launcher = {};  ///< mpirun, srun or torchrun
  std::string job = {};  ///< names this run among others in one rendezvous folder; may be empty
};

/// Looks for the variables of torchrun, Open MPI's mpirun and srun, in this order, which is from
/// the innermost where one starts the other; nothing if none of them started this process.  Throws
/// std::invalid_argument naming a variable that is missing or makes no sense.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<ClusterRank> find_cluster_rank(const Environment& environment);
/// The same with this process' environment.
std::optional<ClusterRank> find_cluster_rank();

struct RealOptions {
  double timeout_s = 30;       ///< for the workers to come together, and for any single message
  std::string interface = {};  ///< empty: loopback here, the default route's on a cluster
  /// This process is one worker of a cluster that meets in `rendezvous`, a folder that all hosts
  /// see; without it all workers are forked here.
  std::optional<ClusterRank> cluster = {};
  std::string rendezvous = {};
  /// The forked workers' network, if it is not this machine's loopback; outlives the run.
  const NetLab* lab = nullptr;
  std::function<void(int rank)> prepare = {};  ///< called first in a forked worker (tests)
  Start start = Start::kBroadcast;
  Timeline* timeline = nullptr;  ///< filled with every worker's where the result is returned
  StepHook hook = {};            ///< called in the worker's process after every step
};

/// Runs `body` on every worker's end of a mesh; `agreement` as in MeshOptions.  Returns what it
/// returned, by rank; nothing on a cluster's ranks other than 0.
using WorkerBody = std::function<std::string(const Mesh& mesh)>;
std::vector<std::string> run_on_mesh(
    int workers, const std::vector<std::pair<std::string, std::string>>& agreement,
    const RealOptions& options, const WorkerBody& body);

/// Trains for real.  Times are the wall clock's, `network` says how the workers were connected.
/// Returns nothing on a cluster's ranks other than 0.  Throws std::runtime_error if a worker fails
/// or dies, or if workers are missing or differ in what they want; no forked worker outlives the
/// call or this process.
std::optional<Result> run_real(const Scenario& scenario, const Dataset& dataset,
                               const RealOptions& options);

}  // namespace gradwire
