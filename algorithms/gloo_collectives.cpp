#include "algorithms/gloo_collectives.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

#include "algorithms/collective_parts.h"

namespace gradwire {

namespace {

using Bytes = std::vector<std::byte>;

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// A buffer in Gloo's segments, of which those at the end may be short or empty.
class Segments {
 public:
  Segments(std::span<Scalar> values, int workers) : values_(values) {
    constexpr std::size_t kLargest = (1U << 20U) / sizeof(Scalar);
    const auto n = static_cast<std::size_t>(workers);
    count_ = divide_up(std::max(divide_up(values.size(), kLargest), 2 * n), n) * n;
    each_ = divide_up(values.size(), count_);
    of_chunk_ = count_ / n;
  }
  std::size_t steps() const { return count_ - of_chunk_; }  // of either phase
  std::size_t largest() const { return each_; }
  // Segment `i` after the first of worker `chunk`'s, modulo all.
  std::span<Scalar> segment(int chunk, std::size_t i) const {
    const std::size_t begin = (static_cast<std::size_t>(chunk) * of_chunk_ + i) % count_ * each_;
    if (begin >= values_.size()) return {};
    return values_.subspan(begin, std::min(each_, values_.size() - begin));
  }

 private:
  std::span<Scalar> values_;
  std::size_t count_, each_, of_chunk_;
};

// One phase: at each step a segment goes out and one comes in, if they are not empty; two steps are
// under way.  `sent` and `received` are the chunks at which this worker starts.
void pass_around(Communicator& comm, const Segments& segments, int sent, int received, bool adds) {
  const int n = comm.size();
  const int to = (comm.rank() + n - 1) % n;
  const int from = (comm.rank() + 1) % n;
  std::vector<Scalar> storage;
  const std::span<Scalar> incoming = room(comm, storage, adds ? 2 * segments.largest() : 0);
  struct Step {
    std::optional<Request> received, sent;
  };
  std::array<Step, 2> under_way;
  for (std::size_t i = 0; i < segments.steps() + 2; ++i) {
    Step& step = under_way[i % 2];
    const auto into = [&](std::span<Scalar> target) {
      return adds ? incoming.subspan(i % 2 * segments.largest(), target.size()) : target;
    };
    if (step.received) {
      const std::span<Scalar> sum = segments.segment(received, i - 2);
      comm.wait(*step.received);
      if (adds) add_block(comm, Wire::kFp32, bytes_of(std::span<const Scalar>(into(sum))), sum);
    }
    if (step.sent) comm.wait(*step.sent);
    step = {};
    if (i >= segments.steps()) continue;
    if (const auto target = segments.segment(received, i); !target.empty())
      step.received = comm.irecv(from, writable_bytes_of(into(target)));
    if (const auto source = segments.segment(sent, i); !source.empty())
      step.sent = comm.isend(to, bytes_of(std::span<const Scalar>(source)));
  }
}

void all_reduce_schedule(Communicator& comm, std::span<Scalar> values) {
  const Segments segments(values, comm.size());
  const int me = comm.rank();
  pass_around(comm, segments, me + 1, me + 2, true);
  pass_around(comm, segments, me, me + 1, false);
}

// Every block in `parts`, that many under way.
void all_gather_schedule(Communicator& comm, std::span<std::byte> all,
                         std::span<const std::size_t> begin, std::size_t parts) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  const auto piece = [&](std::size_t worker, std::size_t part) {
    const std::size_t size = begin[worker + 1] - begin[worker];
    const std::size_t first = part * size / parts;  // the first half is the shorter one
    return all.subspan(begin[worker] + first, (part + 1) * size / parts - first);
  };
  std::vector<Request> sent, received;
  const std::size_t messages = (n - 1) * parts;
  for (std::size_t i = 0; i < messages; ++i) {
    if (i >= parts) {
      comm.wait(sent[i - parts]);
      comm.wait(received[i - parts]);
    }
    const std::size_t block = n + me - i / parts;
    sent.push_back(comm.isend(static_cast<int>((me + 1) % n), piece(block % n, i % parts)));
    received.push_back(
        comm.irecv(static_cast<int>((me + n - 1) % n), piece((block - 1) % n, i % parts)));
  }
  for (std::size_t i = messages - parts; i < messages; ++i) {
    comm.wait(sent[i]);
    comm.wait(received[i]);
  }
}

void broadcast_schedule(Communicator& comm, int root, std::span<std::byte> buffer) {
  const int n = comm.size();
  const int me = (comm.rank() - root + n) % n;
  const auto worker = [&](int v) { return (v + root) % n; };
  std::vector<Request> sent;
  for (int bit = 1; bit < n; bit *= 2) {
    if (me >= 2 * bit) continue;  // has not got it yet
    if (me >= bit)
      comm.recv(worker(me - bit), buffer);
    else if (me + bit < n)
      sent.push_back(comm.isend(worker(me + bit), buffer));
  }
  wait_all(comm, sent);
}

}  // namespace

void gloo_all_reduce(Communicator& comm, std::span<Scalar> values, Wire wire) {
  if (wire != Wire::kFp32)
    throw std::invalid_argument(
        "wire: Gloo's all-reduce sends the numbers as they are; allowed: fp32");
  if (comm.size() == 1 || values.empty()) return;
  const auto schedule = [&](Communicator& any) { all_reduce_schedule(any, values); };
  if (!comm.run_native([&](NativeCollectives& own) { own.all_reduce(values); }, schedule))
    schedule(comm);
}

Bytes gloo_all_gather(Communicator& comm, std::span<const std::byte> mine,
                      std::span<const std::size_t> sizes) {
  const std::vector<std::size_t> begin = block_offsets(comm, mine, sizes);
  Bytes storage;
  const std::span<std::byte> all = room(comm, storage, begin.back());
  copy_block(comm, mine, all.subspan(begin[static_cast<std::size_t>(comm.rank())], mine.size()));
  if (comm.size() == 1 || all.empty()) return storage;
  const bool equal = std::equal(sizes.begin() + 1, sizes.end(), sizes.begin());
  const auto schedule = [&](Communicator& any) {
    all_gather_schedule(any, all, begin, equal ? 2 : 1);
  };
  if (!comm.run_native([&](NativeCollectives& own) { own.all_gather(all, sizes); }, schedule))
    schedule(comm);
  return storage;
}

void gloo_broadcast(Communicator& comm, int root, std::span<std::byte> buffer) {
  if (comm.size() == 1) return;
  const auto schedule = [&](Communicator& any) { broadcast_schedule(any, root, buffer); };
  if (!comm.run_native([&](NativeCollectives& own) { own.broadcast(root, buffer); }, schedule))
    schedule(comm);
}

}  // namespace gradwire
