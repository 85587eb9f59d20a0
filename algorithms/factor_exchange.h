// How low-rank factors of one layer's gradient travel: rank-dAD's protocols, also used by the
// top-columns baseline.  A worker's factors are (rank, in) and (rank, out); ranks may differ
// between workers.
#pragma once

#include <functional>

#include "algorithms/collectives.h"
#include "algorithms/communicator.h"
#include "algorithms/spi.h"

namespace gradwire {

/// Everyone's factors on everyone, in rank order, components stacked: all-reduce (max) of the local
/// rank, zero rows up to that rank r, ring all-gathers of both factors (dad-torch `rankdad`).
/// Per worker, with s bytes a number: all_reduce_max's messages, then 2(N-1) messages and
/// (N-1) r (in + out) s bytes; two all-gathers of nothing if r is 0.
/// With `gather` gloo_all_gather twice as many messages.
Factors all_gather_factors(Communicator& comm, const Factors& mine,
                           AllGather gather = ring_all_gather);

/// Everyone's factors to worker 0, which turns them (stacked in rank order, without padding) into
/// those that everyone gets.  Each transfer is a rank (4 bytes), then one message with both
/// factors, omitted where the rank is 0.  Sent by a worker of rank r_w > 0: 2 messages,
/// 4 + r_w (in + out) s bytes; by worker 0: 2(N-1) messages, (N-1)(4 + r' (in + out) s) bytes.
Factors star_factors(Communicator& comm, const Factors& mine,
                     const std::function<Factors(Factors stacked)>& reduce);

}  // namespace gradwire
