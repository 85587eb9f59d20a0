// A recording timed on a route table without SimGrid: the workers' calls repeated over a
// FlowNetwork, with the meaning that SimGridCommunicator gives them.  Costs 0.1 to 0.3 us a message
// where flows do not meet, against 3 to 8 us for SimGrid's actors.
#pragma once

#include <optional>
#include <vector>

#include "algorithms/training.h"
#include "sim/compute_model.h"
#include "sim/route_table.h"

namespace gradwire {

/// The accounts of every worker's steps, or nothing if some wait for ever or if rounding decides:
/// workers that share a link at changing offsets can amplify a picosecond to any size (a skewed
/// ring over a slow backbone does), so that where flows meet, a second replay with coarser rounding
/// must agree within 1e-10.  Worker w is on host w / workers_per_host of `routes`.  Throws
/// std::logic_error for a recording that no communicator can have made.
std::optional<std::vector<std::vector<Account>>> replay_flows(const Recording& recording,
                                                              const RouteTable& routes,
                                                              int workers_per_host,
                                                              const ComputeModel& compute);

}  // namespace gradwire
