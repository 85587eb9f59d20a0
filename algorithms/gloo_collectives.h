// Gloo's collectives, those that PyTorch's DDP over Gloo runs: message by message what Gloo of May
// 2022 does (gloo/allreduce.cc, allgather.cc, allgatherv.cc, broadcast.cc at 5b14351), as schedules
// over send and receive; where workers are real, Gloo itself does it and the same traffic counts.
// Sums are added in Gloo's order, so that both give the same bits; Gloo's own additions are not
// charged but part of the wait.  Gloo's gather is gather().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/codec.h"
#include "algorithms/communicator.h"

namespace gradwire {

/// S bytes in M = ceil(S / segment) segments, p = n / N for each worker's chunk: n = max(2N,
/// ceil(S / 1 MiB)) rounded up to a multiple of N, segment = ceil(S / n) rounded up to whole
/// numbers.  Reduce-scatter and all-gather around the ring to rank - 1, two segments under way,
/// segments beyond the end left out.  Worker r sends 2M - M_r - M_(r-1) messages and
/// 2S - S_r - S_(r-1) bytes, where chunk c has the M_c segments, S_c bytes, that exist of
/// [c p, (c + 1) p).  Only fp32: throws std::invalid_argument for another wire.
void gloo_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire);

/// As ring_all_gather(), around the ring to rank + 1: every block in two halves, two under way, if
/// all have the same size (2(N-1) messages), else whole and one at a time (N-1 messages); nothing
/// if all are empty.  The sum of all blocks but that of worker w+1 (modulo N).
std::vector<std::byte> gloo_all_gather(Communicator& comm, std::span<const std::byte> mine,
                                       std::span<const std::size_t> sizes);

/// Binomial tree over v = (w - root) mod N: v sends to v + 2^i for every 2^i above v below N, the
/// nearest first and all at once.  That many messages of S bytes.
void gloo_broadcast(Communicator& comm, int root, std::span<std::byte> buffer);

}  // namespace gradwire
