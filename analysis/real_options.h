// What the commands that start real processes have in common on the command line.
#pragma once

#include <vector>

#include "analysis/command_line.h"
#ifdef GRADWIRE_WITH_GLOO
#include "real/launch.h"
#endif

namespace gradwire {

std::vector<Flag> real_network_flags();

#ifdef GRADWIRE_WITH_GLOO
/// Of these flags and of the environment that a cluster's launcher sets.
RealOptions read_real_options(const Arguments& arguments);
#endif

}  // namespace gradwire
