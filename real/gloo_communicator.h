// The Communicator of a worker that is a real process (or thread): messages are Gloo's
// point-to-point sends and receives over TCP, time is the wall clock.  Gloo's collectives are not
// used: ours run over send and receive as everywhere else, so that results are bit-equal to the
// simulation's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/communicator.h"

namespace gradwire {

struct MeshOptions {
  int rank = 0;
  int size = 1;
  std::string rendezvous;  ///< folder that every worker sees, empty at first
  std::string interface;   ///< empty: loopback if all workers share a host, else find_interface("")
  double timeout_s = 30;   ///< for the others to come, and for any single message
  bool messages_first = false;  ///< before mathematics (real/scheduling.h); needs root
  /// What all workers must have in common: key and value, same keys everywhere.
  std::vector<std::pair<std::string, std::string>> agreement;
};

struct Mesh {
  std::unique_ptr<Communicator> comm;
  std::string interface;  ///< in use; empty for a lone worker
};

/// Meets the other workers, checks that all want the same, connects to each, and sets the clock to
/// zero: the same instant on workers of one host, else equal to within a message's latency.
/// Throws std::runtime_error naming the workers that are missing, want something else or cannot be
/// reached, and std::invalid_argument for a bad interface.
///
/// The communicator throws std::runtime_error naming the peer if one is lost or does not answer in
/// time; after that every call on it fails.  Both sides of a message must mean the same size: Gloo
/// ends the process if more arrives than expected and does not notice if less does.
Mesh connect(const MeshOptions& options);

}  // namespace gradwire
