// What a worker calls in a collective whose schedule does not depend on the data: worker by worker,
// without messages, data or the memory for them.
#pragma once

#include <functional>
#include <span>

#include "algorithms/communicator.h"

namespace gradwire {

/// Records `worker(comm)` on a communicator whose sends and receives end at once and that
/// carries_data() not.
WorkerRecording record_dry(int rank, int size, const std::function<void(Communicator&)>& worker);

/// What `worker(comm)` sends and receives on such a communicator's main lane.
Traffic dry_traffic(int rank, int size, const std::function<void(Communicator&)>& worker);

/// A span of memory that is not there: it has a size, and nobody may look at its elements.
template <class T>
std::span<T> absent(std::size_t size) {
  return {reinterpret_cast<T*>(alignof(std::max_align_t)), size};  // NOLINT: never followed
}

}  // namespace gradwire
