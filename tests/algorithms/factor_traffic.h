// What the max-rank all-reduce of the factor exchanges sends (collectives.h: all_reduce_max).
#pragma once

#include <bit>

#include "algorithms/communicator.h"

namespace gradwire {

inline Traffic max_traffic(int workers, int rank) {
  const int group = static_cast<int>(std::bit_floor(static_cast<unsigned>(workers)));
  const int outside = workers - group;  // the even ones of the first 2 outside workers
  std::int64_t messages = std::countr_zero(static_cast<unsigned>(group));
  if (rank < 2 * outside) messages = rank % 2 == 0 ? 1 : messages + 1;
  return {.bytes_sent = 4 * messages, .messages_sent = messages};
}

}  // namespace gradwire
