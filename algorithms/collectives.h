// Collective operations: free functions over isend, irecv and wait, the same schedule on every
// implementation of Communicator, results bit-equal on all workers.
//
// Each function below says what worker w of N SENDS, as "messages; bytes".  S is the encoded bytes
// of the whole buffer.  Chunk i of P is scalars floor(i n / P) up to floor((i + 1) n / P) of n, and
// c_i its encoded bytes.  Chunks of zero length are sent too, so that the message counts hold at
// every length, also 0; a lone worker sends nothing.
//
// The receive of the next step is posted before the send of this one (and all receives at once
// where a worker has several senders), so that a transport with a rendezvous (Gloo) pays one
// latency a step.  Additions are charged as Phase::kReduction, one flop and three accesses a
// scalar; the conversion of a 16-bit wire is part of that pass and not charged apart.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/codec.h"
#include "algorithms/communicator.h"

namespace gradwire {

/// Sums `values` over the workers, in place.  With a 16-bit wire every hop rounds, as in DDP's
/// compression hooks, and whoever sums last rounds its own copy too, so that all replicas end
/// bit-equal.  Any N, any length.
using AllReduce = void (*)(Communicator& comm, std::span<Scalar> values, Wire wire);

/// Ring (Patarasuk & Yuan 2009): reduce-scatter, then all-gather.
/// 2(N-1); 2S - c_w - c_{w+1} with chunks of N (w+1 modulo N), which is 2(N-1)/N S where N divides.
void ring_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire);
/// Recursive halving, then doubling (Thakur, Rabenseifner & Gropp 2005), among P = 2^k <= N
/// workers. The even ones of the first 2(N-P) workers stay outside: each hands its buffer to its
/// right neighbour before, and gets the sum after. Outside: 1; S.  Inside: 2k; 2(P-1)/P S where P
/// divides n, else S - c_o for the halving plus, for the doubling, the aligned blocks of 1, 2, ..
/// P/2 chunks of P around o (o: the rank inside, bits reversed).  The right neighbours of those
/// outside send 1; S more.
void halving_doubling_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire);
/// Binomial reduce to worker 0, binomial broadcast from it.
/// children + (1 unless w = 0); S each; children: see tree_broadcast.
void tree_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire);
/// Everyone sends to worker 0, which adds in rank order and sends the sum to everyone.
/// Worker 0: N-1; (N-1) S.  Others: 1; S.
void star_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire);
/// Ring all-gather of all buffers, everyone adds them in rank order (every value is rounded once).
/// N-1; (N-1) S.
void all_gather_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire);

/// Throws std::invalid_argument naming `ring`, `halving-doubling`, `tree`, `star`, `allgather`,
/// `gloo` (gloo_collectives.h).
AllReduce find_all_reduce(const std::string& name);

/// Largest value over the workers: recursive doubling, workers inside and outside as in
/// halving_doubling_all_reduce.  Outside: 1; 4.  Inside: k; 4k, and 1; 4 more for the right
/// neighbours of those outside.
std::int32_t all_reduce_max(Communicator& comm, std::int32_t value);

/// Everyone's block, in rank order, on everyone: `sizes[w]` bytes come from worker w, known to all.
/// Ring.  N-1; the sum of all blocks but that of worker w+1 (modulo N).
std::vector<std::byte> ring_all_gather(Communicator& comm, std::span<const std::byte> mine,
                                       std::span<const std::size_t> sizes);

using AllGather = std::vector<std::byte> (*)(Communicator& comm, std::span<const std::byte> mine,
                                             std::span<const std::size_t> sizes);

/// Everyone's block, in rank order, on `root` (empty elsewhere).
/// Root: 0; 0.  Others: 1; their own block.
std::vector<std::byte> gather(Communicator& comm, int root, std::span<const std::byte> mine,
                              std::span<const std::size_t> sizes);

/// The root's bytes on everyone: binomial tree, the largest subtree first, one after the other.
/// children; S each: v = (w - root) mod N has a child v + 2^j for every 2^j below its lowest set
/// bit (any j for v = 0) with v + 2^j < N.
void tree_broadcast(Communicator& comm, int root, std::span<std::byte> buffer);
/// The root's bytes on everyone, all sends at once.  Root: N-1; (N-1) S.  Others: 0; 0.
void star_broadcast(Communicator& comm, int root, std::span<std::byte> buffer);

/// A collective as the `collective` command runs it.
struct CollectiveRow {
  std::string name;     ///< e.g. "all-reduce:ring"
  std::string summary;  ///< one line
  /// Runs it once on `bytes` of total data (nccl-tests' size: the whole array of an all-gather or
  /// gather, its blocks equal to within one byte).  All-reduce rounds down to whole scalars, as
  /// nccl-tests does.
  void (*run)(Communicator&, std::size_t bytes);
  double (*busbw_factor)(int workers);  ///< busbw = algbw * factor, as nccl-tests defines it
};
const std::vector<CollectiveRow>& collective_table();
const CollectiveRow& find_collective(const std::string& name);

}  // namespace gradwire
