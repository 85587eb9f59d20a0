// A timeline in Chrome's trace event format, which Perfetto opens: a process per worker, with lanes
// for compute, compression, communication, what overlaps them on the second lane, and batches.
#pragma once

#include <string>

#include "algorithms/communicator.h"

namespace gradwire {

std::string chrome_trace(const Timeline& timeline);

}  // namespace gradwire
