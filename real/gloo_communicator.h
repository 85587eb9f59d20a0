// The Communicator of a worker that is a real process (or thread): messages are Gloo's
// point-to-point sends and receives over TCP, time is the wall clock.  Our collectives run over
// them as everywhere else; Gloo's own serve those of algorithms/gloo_collectives.h.  Either way
// results are bit-equal to the simulation's.
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
/// time, std::logic_error if the two sides of a message mean different sizes (also after the
/// timeout: such messages do not meet); after that every call on it fails.
Mesh connect(const MeshOptions& options);

}  // namespace gradwire
