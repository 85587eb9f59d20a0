#include "algorithms/collectives.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "algorithms/collective_parts.h"
#include "algorithms/gloo_collectives.h"

namespace gradwire {

namespace {

using Bytes = std::vector<std::byte>;

struct Range {
  std::size_t begin;
  std::size_t end;
  std::size_t size() const { return end - begin; }
};

// Chunk c of n items cut into `parts` nearly equal ones; chunks [c, last) with three arguments
// more.
Range chunk(std::size_t n, int parts, int c, int last) {
  const auto cut = [&](int i) {
    return n * static_cast<std::size_t>(i) / static_cast<std::size_t>(parts);
  };
  return {cut(c), cut(last)};
}
Range chunk(std::size_t n, int parts, int c) { return chunk(n, parts, c, c + 1); }

int modulo(int a, int n) { return (a % n + n) % n; }

std::span<Scalar> part(std::span<Scalar> values, Range r) {
  return values.subspan(r.begin, r.size());
}

// The encoded form of a buffer: itself for fp32, a rounded copy for a 16-bit wire.
class Encoded {
 public:
  Encoded(const Communicator& comm, Wire wire, std::span<Scalar> values)
      : wire_(wire), values_(values), codes_(wire != Wire::kFp32 && comm.carries_data()) {
    bytes_ = wire == Wire::kFp32 ? writable_bytes_of(values)
                                 : room(comm, copy_, wire_bytes(wire, values.size()));
  }
  std::span<std::byte> bytes() const { return bytes_; }
  std::span<std::byte> bytes(Range r) const {
    return bytes_.subspan(wire_bytes(wire_, r.begin), wire_bytes(wire_, r.size()));
  }
  void encode(Range r) {
    if (codes_) gradwire::encode(wire_, part(values_, r), bytes(r));
  }
  void encode() { encode({0, values_.size()}); }
  void decode() {
    if (codes_) gradwire::decode(wire_, copy_, values_);
  }

 private:
  Wire wire_;
  std::span<Scalar> values_;
  bool codes_;
  Bytes copy_;
  std::span<std::byte> bytes_;
};

// One step of a reduce-scatter (adds) or of the all-gather after it (does not).
struct Exchange {
  int to;
  int from;
  Range sent;
  Range received;
  bool adds;
};

// Runs reduce-scatter and all-gather; the result is in `encoded`.  The first step that does not add
// sends exactly the chunk that this worker has summed.
void run_exchanges(Communicator& comm, std::span<Scalar> values, Wire wire, Encoded& encoded,
                   const std::vector<Exchange>& steps) {
  Bytes outgoing_storage;
  std::array<Bytes, 2> incoming_storage;
  std::array<std::span<std::byte>, 2> incoming;
  const auto receive = [&](std::size_t s) {
    const Exchange& step = steps[s];
    if (!step.adds) return comm.irecv(step.from, encoded.bytes(step.received));
    incoming[s % 2] = room(comm, incoming_storage[s % 2], wire_bytes(wire, step.received.size()));
    return comm.irecv(step.from, incoming[s % 2]);
  };

  Request received = receive(0);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Exchange& step = steps[s];
    std::span<const std::byte> payload;
    if (step.adds) {
      const auto outgoing = room(comm, outgoing_storage, wire_bytes(wire, step.sent.size()));
      if (comm.carries_data()) encode(wire, part(values, step.sent), outgoing);
      payload = outgoing;
    } else {
      if (s == 0 || steps[s - 1].adds) encoded.encode(step.sent);
      payload = encoded.bytes(step.sent);
    }
    const Request current = received;
    if (s + 1 < steps.size()) received = receive(s + 1);
    const Request sent = comm.isend(step.to, payload);
    comm.wait(current);
    if (step.adds) add_block(comm, wire, incoming[s % 2], part(values, step.received));
    comm.wait(sent);
  }
}

// The largest power-of-two group of workers: the even ones of the first 2(N - 2^k) stay out, each
// represented by its right neighbour.
struct PowerOfTwo {
  explicit PowerOfTwo(const Communicator& comm)
      : size(static_cast<int>(std::bit_floor(static_cast<unsigned>(comm.size())))),
        outside(comm.size() - size) {
    const int me = comm.rank();
    if (me >= 2 * outside) {
      rank = me - outside;
    } else {
      partner = me % 2 == 0 ? me + 1 : me - 1;
      rank = me % 2 == 0 ? -1 : me / 2;
    }
  }
  int worker(int group_rank) const {
    return group_rank < outside ? 2 * group_rank + 1 : group_rank + outside;
  }

  int size;
  int outside;
  int rank = -1;     // in the group; -1: outside
  int partner = -1;  // represented or representing worker; -1: none
};

// Recursive halving with the nearest first, where the most data moves, and doubling back.
std::vector<Exchange> halving_doubling_steps(const PowerOfTwo& group, std::size_t n) {
  std::vector<Exchange> steps;
  int first = 0;
  int last = group.size;  // chunks [first, last) are summed by this worker from here on
  for (int mask = 1; mask < group.size; mask *= 2) {
    const int middle = (first + last) / 2;
    const int peer = group.worker(group.rank ^ mask);
    const Range low = chunk(n, group.size, first, middle);
    const Range high = chunk(n, group.size, middle, last);
    if ((group.rank & mask) == 0) {
      steps.push_back({peer, peer, high, low, true});
      last = middle;
    } else {
      steps.push_back({peer, peer, low, high, true});
      first = middle;
    }
  }
  for (std::size_t s = steps.size(); s-- > 0;) {
    const Exchange halved = steps[s];
    steps.push_back({halved.to, halved.from, halved.received, halved.sent, false});
  }
  return steps;
}

// Binomial tree over ranks relative to the root: the parent of v is v without its lowest bit.
struct Tree {
  Tree(const Communicator& comm, int root) {
    const int n = comm.size();
    const int me = modulo(comm.rank() - root, n);
    const auto worker = [&](int v) { return (v + root) % n; };
    const int span = me == 0 ? n : me & -me;  // the subtree is [me, me + span), as far as it exists
    if (me != 0) parent = worker(me - span);
    for (int mask = 1; mask < span && me + mask < n; mask *= 2)
      children.push_back(worker(me + mask));
  }
  int parent = -1;
  std::vector<int> children;  // smallest subtree first
};

// Adds every sender's buffer to `values`, in the given order; all receives are posted at once.
void receive_and_add(Communicator& comm, const std::vector<int>& senders, Wire wire,
                     std::span<Scalar> values) {
  const std::size_t bytes = wire_bytes(wire, values.size());
  std::vector<Bytes> storage(senders.size());
  std::vector<std::span<std::byte>> incoming;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    incoming.push_back(room(comm, storage[i], bytes));
    requests.push_back(comm.irecv(senders[i], incoming[i]));
  }
  for (std::size_t i = 0; i < senders.size(); ++i) {
    comm.wait(requests[i]);
    add_block(comm, wire, incoming[i], values);
    storage[i] = {};
  }
}

std::vector<int> all_but(int workers, int left_out) {
  std::vector<int> others;
  for (int w = 0; w < workers; ++w)
    if (w != left_out) others.push_back(w);
  return others;
}

}  // namespace

void copy_block(const Communicator& comm, std::span<const std::byte> from,
                std::span<std::byte> to) {
  if (comm.carries_data()) std::copy(from.begin(), from.end(), to.begin());
}

void add_block(Communicator& comm, Wire wire, std::span<const std::byte> bytes,
               std::span<Scalar> sum) {
  if (comm.carries_data()) decode_add(wire, bytes, sum);
  comm.charge(Phase::kReduction, pass_work(static_cast<Index>(sum.size()), 1, 3));
}

void wait_all(Communicator& comm, const std::vector<Request>& requests) {
  for (const Request request : requests) comm.wait(request);
}

std::vector<std::size_t> block_offsets(const Communicator& comm, std::span<const std::byte> mine,
                                       std::span<const std::size_t> sizes) {
  const auto me = static_cast<std::size_t>(comm.rank());
  if (sizes.size() != static_cast<std::size_t>(comm.size()) || sizes[me] != mine.size())
    throw std::logic_error("gather: the sizes do not fit the workers or this worker's block");
  std::vector<std::size_t> begin{0};
  for (const std::size_t size : sizes) begin.push_back(begin.back() + size);
  return begin;
}

void ring_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire) {
  const int n = comm.size();
  const int me = comm.rank();
  if (n == 1) return;
  const auto range = [&](int c) { return chunk(values.size(), n, modulo(c, n)); };
  std::vector<Exchange> steps;
  steps.reserve(2 * static_cast<std::size_t>(n - 1));
  const int right = modulo(me + 1, n);
  const int left = modulo(me - 1, n);
  for (int s = 0; s < n - 1; ++s)
    steps.push_back({right, left, range(me - 1 - s), range(me - 2 - s), true});
  for (int s = 0; s < n - 1; ++s)
    steps.push_back({right, left, range(me - s), range(me - 1 - s), false});
  Encoded encoded(comm, wire, values);
  run_exchanges(comm, values, wire, encoded, steps);
  encoded.decode();
}

void halving_doubling_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire) {
  if (comm.size() == 1) return;
  const PowerOfTwo group(comm);
  Encoded encoded(comm, wire, values);
  if (group.rank < 0) {
    encoded.encode();
    comm.send(group.partner, encoded.bytes());
    comm.recv(group.partner, encoded.bytes());
  } else {
    if (group.partner >= 0) receive_and_add(comm, {group.partner}, wire, values);
    run_exchanges(comm, values, wire, encoded, halving_doubling_steps(group, values.size()));
    if (group.partner >= 0) comm.send(group.partner, encoded.bytes());
  }
  encoded.decode();
}

void tree_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire) {
  if (comm.size() == 1) return;
  const Tree tree(comm, 0);
  Encoded encoded(comm, wire, values);
  receive_and_add(comm, tree.children, wire, values);
  encoded.encode();
  if (tree.parent >= 0) comm.send(tree.parent, encoded.bytes());
  tree_broadcast(comm, 0, encoded.bytes());
  encoded.decode();
}

void star_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire) {
  if (comm.size() == 1) return;
  Encoded encoded(comm, wire, values);
  if (comm.rank() == 0) receive_and_add(comm, all_but(comm.size(), 0), wire, values);
  encoded.encode();
  if (comm.rank() != 0) comm.send(0, encoded.bytes());
  star_broadcast(comm, 0, encoded.bytes());
  encoded.decode();
}

void all_gather_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire) {
  if (comm.size() == 1) return;
  Encoded encoded(comm, wire, values);
  encoded.encode();
  const std::size_t bytes = encoded.bytes().size();
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(comm.size()), bytes);
  const Bytes all = ring_all_gather(comm, encoded.bytes(), sizes);
  const auto block = [&](std::size_t w) -> std::span<const std::byte> {
    return comm.carries_data() ? std::span(all).subspan(w * bytes, bytes)
                               : absent<const std::byte>(bytes);
  };
  if (comm.carries_data()) decode(wire, block(0), values);
  for (std::size_t w = 1; w < sizes.size(); ++w) add_block(comm, wire, block(w), values);
}

AllReduce find_all_reduce(const std::string& name) {
  static const std::vector<std::pair<std::string, AllReduce>> known{
      {"ring", ring_all_reduce},
      {"halving-doubling", halving_doubling_all_reduce},
      {"tree", tree_all_reduce},
      {"star", star_all_reduce},
      {"allgather", all_gather_all_reduce},
      {"gloo", gloo_all_reduce}};
  for (const auto& [known_name, function] : known)
    if (known_name == name) return function;
  throw std::invalid_argument("unknown all-reduce " + name +
                              "; known: ring, halving-doubling, tree, star, allgather, gloo");
}

std::int32_t all_reduce_max(Communicator& comm, std::int32_t value) {
  const PowerOfTwo group(comm);
  const auto bytes = [](std::int32_t& x) { return writable_bytes_of(std::span(&x, 1)); };
  if (group.rank < 0) {
    comm.send(group.partner, bytes(value));
    comm.recv(group.partner, bytes(value));
    return value;
  }
  std::vector<int> peers;
  for (int mask = 1; mask < group.size; mask *= 2) peers.push_back(group.worker(group.rank ^ mask));
  std::vector<std::int32_t> theirs(peers.size());
  std::vector<Request> received;
  for (std::size_t i = 0; i < peers.size(); ++i)
    received.push_back(comm.irecv(peers[i], bytes(theirs[i])));
  if (group.partner >= 0) {
    std::int32_t outside = 0;
    comm.recv(group.partner, bytes(outside));
    value = std::max(value, outside);
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const Request sent = comm.isend(peers[i], bytes(value));
    comm.wait(received[i]);
    comm.wait(sent);
    value = std::max(value, theirs[i]);
  }
  if (group.partner >= 0) comm.send(group.partner, bytes(value));
  return value;
}

Bytes ring_all_gather(Communicator& comm, std::span<const std::byte> mine,
                      std::span<const std::size_t> sizes) {
  const std::vector<std::size_t> begin = block_offsets(comm, mine, sizes);
  const int n = comm.size();
  const int me = comm.rank();
  Bytes all;
  const std::span<std::byte> whole = room(comm, all, begin.back());
  const auto block = [&](int w) {
    const auto i = static_cast<std::size_t>(modulo(w, n));
    return whole.subspan(begin[i], sizes[i]);
  };
  copy_block(comm, mine, block(me));
  if (n == 1) return all;
  const int right = modulo(me + 1, n);
  const int left = modulo(me - 1, n);
  Request received = comm.irecv(left, block(me - 1));
  for (int s = 0; s < n - 1; ++s) {
    const Request current = received;
    if (s + 1 < n - 1) received = comm.irecv(left, block(me - 2 - s));
    const Request sent = comm.isend(right, block(me - s));
    comm.wait(current);
    comm.wait(sent);
  }
  return all;
}

Bytes gather(Communicator& comm, int root, std::span<const std::byte> mine,
             std::span<const std::size_t> sizes) {
  const std::vector<std::size_t> begin = block_offsets(comm, mine, sizes);
  if (comm.rank() != root) {
    comm.send(root, mine);
    return {};
  }
  Bytes all;
  const std::span<std::byte> whole = room(comm, all, begin.back());
  std::vector<Request> requests;
  for (int w = 0; w < comm.size(); ++w) {
    const auto i = static_cast<std::size_t>(w);
    const auto block = whole.subspan(begin[i], sizes[i]);
    if (w == root)
      copy_block(comm, mine, block);
    else
      requests.push_back(comm.irecv(w, block));
  }
  wait_all(comm, requests);
  return all;
}

void tree_broadcast(Communicator& comm, int root, std::span<std::byte> buffer) {
  const Tree tree(comm, root);
  if (tree.parent >= 0) comm.recv(tree.parent, buffer);
  for (std::size_t i = tree.children.size(); i-- > 0;) comm.send(tree.children[i], buffer);
}

void star_broadcast(Communicator& comm, int root, std::span<std::byte> buffer) {
  if (comm.rank() != root) return comm.recv(root, buffer);
  std::vector<Request> requests;
  for (const int w : all_but(comm.size(), root)) requests.push_back(comm.isend(w, buffer));
  wait_all(comm, requests);
}

namespace {

template <AllReduce all_reduce>
void run_all_reduce(Communicator& comm, std::size_t bytes) {
  std::vector<Scalar> storage;
  all_reduce(comm, room(comm, storage, bytes / sizeof(Scalar)), Wire::kFp32);
}

template <void (*broadcast)(Communicator&, int, std::span<std::byte>)>
void run_broadcast(Communicator& comm, std::size_t bytes) {
  Bytes storage;
  broadcast(comm, 0, room(comm, storage, bytes));
}

std::vector<std::size_t> block_sizes(const Communicator& comm, std::size_t bytes) {
  std::vector<std::size_t> sizes(static_cast<std::size_t>(comm.size()));
  for (int w = 0; w < comm.size(); ++w)
    sizes[static_cast<std::size_t>(w)] = chunk(bytes, comm.size(), w).size();
  return sizes;
}

template <AllGather all_gather>
void run_all_gather(Communicator& comm, std::size_t bytes) {
  const auto sizes = block_sizes(comm, bytes);
  Bytes storage;
  all_gather(comm, room(comm, storage, sizes[static_cast<std::size_t>(comm.rank())]), sizes);
}

void run_gather(Communicator& comm, std::size_t bytes) {
  const auto sizes = block_sizes(comm, bytes);
  Bytes storage;
  gather(comm, 0, room(comm, storage, sizes[static_cast<std::size_t>(comm.rank())]), sizes);
}

double all_reduce_factor(int workers) { return 2.0 * (workers - 1) / workers; }
double gather_factor(int workers) { return 1.0 * (workers - 1) / workers; }
double broadcast_factor(int /*workers*/) { return 1; }

}  // namespace

const std::vector<CollectiveRow>& collective_table() {
  static const std::vector<CollectiveRow> rows{
      {"all-reduce:ring", "reduce-scatter and all-gather around a ring",
       run_all_reduce<ring_all_reduce>, all_reduce_factor},
      {"all-reduce:halving-doubling", "recursive halving, then doubling",
       run_all_reduce<halving_doubling_all_reduce>, all_reduce_factor},
      {"all-reduce:tree", "binomial reduce to worker 0, binomial broadcast",
       run_all_reduce<tree_all_reduce>, all_reduce_factor},
      {"all-reduce:star", "everyone to worker 0 and back", run_all_reduce<star_all_reduce>,
       all_reduce_factor},
      {"all-reduce:allgather", "ring all-gather of all buffers, sums on every worker",
       run_all_reduce<all_gather_all_reduce>, all_reduce_factor},
      {"all-reduce:gloo", "Gloo's: a ring in segments of at most 1 MiB",
       run_all_reduce<gloo_all_reduce>, all_reduce_factor},
      {"all-gather:ring", "everyone's block on everyone, around a ring",
       run_all_gather<ring_all_gather>, gather_factor},
      {"all-gather:gloo", "Gloo's: around a ring, equal blocks in halves",
       run_all_gather<gloo_all_gather>, gather_factor},
      {"broadcast:tree", "worker 0 to everyone, binomial tree", run_broadcast<tree_broadcast>,
       broadcast_factor},
      {"broadcast:star", "worker 0 to everyone, directly", run_broadcast<star_broadcast>,
       broadcast_factor},
      {"broadcast:gloo", "Gloo's: binomial tree, a worker's sends at once",
       run_broadcast<gloo_broadcast>, broadcast_factor},
      {"gather:direct", "everyone's block to worker 0, directly", run_gather, gather_factor},
  };
  return rows;
}

const CollectiveRow& find_collective(const std::string& name) {
  std::string known;
  for (const CollectiveRow& row : collective_table()) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  throw std::invalid_argument("unknown collective " + name + "; known: " + known);
}

}  // namespace gradwire
