#include "analysis/real_options.h"

#include <stdexcept>

#include "analysis/units.h"

namespace gradwire {

std::vector<Flag> real_network_flags() {
  return {{"timeout", "TIME", "for the workers to meet and for any message (default 30s)",
           "Real network"},
          {"interface", "NAME",
           "network interface between the workers (default: loopback here, "
           "the default route's on a cluster)",
           "Real network"},
          {"rendezvous", "FOLDER",
           "folder that all hosts see, for processes that mpirun, srun or torchrun started",
           "Real network"}};
}

#ifdef GRADWIRE_WITH_GLOO

RealOptions read_real_options(const Arguments& arguments) {
  RealOptions options;
  options.interface = arguments.value("interface");
  options.rendezvous = arguments.value("rendezvous");
  options.timeout_s = parse_time_s("timeout", arguments.value("timeout", "30s"));
  if (options.timeout_s < 0.1)
    throw std::invalid_argument("timeout: \"" + arguments.value("timeout") +
                                "\" is less than 100ms");
  options.cluster = find_cluster_rank();
  const bool alone = !options.cluster || options.cluster->size == 1;
  if (alone && options.rendezvous.empty()) {
    options.cluster = std::nullopt;
  } else if (!options.cluster) {
    throw UsageError("--rendezvous is for processes that mpirun, srun or torchrun started");
  } else if (options.rendezvous.empty()) {
    throw UsageError(options.cluster->launcher + " started " +
                     std::to_string(options.cluster->size) +
                     " processes: give --rendezvous FOLDER, which all hosts see, or unset its "
                     "variables to run all workers here");
  }
  return options;
}

#endif

}  // namespace gradwire
