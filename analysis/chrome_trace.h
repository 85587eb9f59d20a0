// A timeline in Chrome's trace event format, which Perfetto opens: a process per worker, with lanes
// for compute, compression, communication and what overlaps them on the second lane.
#pragma once

#include <string>

#include "sim/simulate.h"

namespace gradwire {

std::string chrome_trace(const Timeline& timeline);

}  // namespace gradwire
