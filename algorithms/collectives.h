// Collective operations: free functions over isend, irecv and wait, the same schedule on every
// implementation of Communicator, results bit-equal on all workers.  N is the number of workers, S
// the encoded bytes of a buffer.  Each header below gives messages and bytes sent per worker.
//
// Receives of the next step are posted before the sends of this one, so that a transport with a
// rendezvous (Gloo) pays one latency a step.  Additions are charged as Phase::kReduction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/codec.h"
#include "algorithms/communicator.h"

namespace gradwire {

/// Sums `values` over the workers, in place; with a 16-bit wire every hop rounds, as DDP's
/// compression hooks do, and all replicas still end bit-equal.  Any N, any length, also shorter
/// than N and empty.
using AllReduce = void (*)(Communicator&, std::span<Scalar> values, Wire);

/// Ring (Patarasuk & Yuan 2009): reduce-scatter, then all-gather; 2(N-1) messages, 2(N-1)/N S
/// bytes.
void ring_all_reduce(Communicator&, std::span<Scalar> values, Wire);
/// Recursive halving, then doubling (Thakur et al. 2005, Rabenseifner); 2 log2 N messages, 2(N-1)/N
/// S bytes for N a power of two; else the first 2(N-2^k) workers pair up before and after.
void halving_doubling_all_reduce(Communicator&, std::span<Scalar> values, Wire);
/// Binomial reduce to worker 0, binomial broadcast from it.
void tree_all_reduce(Communicator&, std::span<Scalar> values, Wire);
/// Everyone sends to worker 0, which adds in rank order and sends the sum to everyone.
void star_all_reduce(Communicator&, std::span<Scalar> values, Wire);
/// Ring all-gather of all buffers, everyone adds them in rank order; N-1 messages, (N-1) S bytes.
void all_gather_all_reduce(Communicator&, std::span<Scalar> values, Wire);

/// Throws std::invalid_argument naming `ring`, `halving-doubling`, `tree`, `star`, `allgather`.
AllReduce find_all_reduce(const std::string& name);

/// Largest value over the workers (recursive doubling, 4 bytes a message).
std::int32_t all_reduce_max(Communicator&, std::int32_t value);

/// Everyone's block, in rank order, on everyone: `sizes[w]` bytes come from worker w, known to all.
/// Ring: N-1 messages, the sum of all blocks but the right neighbour's own in bytes.
std::vector<std::byte> ring_all_gather(Communicator&, std::span<const std::byte> mine,
                                       std::span<const std::size_t> sizes);

/// Everyone's block, in rank order, on `root` (empty elsewhere); one direct message each.
std::vector<std::byte> gather(Communicator&, int root, std::span<const std::byte> mine,
                              std::span<const std::size_t> sizes);

/// The root's bytes on everyone: binomial tree, or one direct message each from the root.
void tree_broadcast(Communicator&, int root, std::span<std::byte> buffer);
void star_broadcast(Communicator&, int root, std::span<std::byte> buffer);

/// A collective as the `collective` command runs it.
struct CollectiveRow {
  std::string name;     ///< e.g. "all-reduce:ring"
  std::string summary;  ///< one line
  /// Runs it once on `bytes` of total data (nccl-tests' size: the whole array of an all-gather).
  void (*run)(Communicator&, std::size_t bytes);
  double (*busbw_factor)(int workers);  ///< busbw = algbw * factor, as nccl-tests defines it
};
const std::vector<CollectiveRow>& collective_table();
const CollectiveRow& find_collective(const std::string& name);

}  // namespace gradwire
