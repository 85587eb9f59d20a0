// Every collective, for many numbers of workers and lengths: results, bit-equality, rounding, and
// the messages and bytes of collectives.h's formulas.
#include "algorithms/collectives.h"

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "algorithms/in_process.h"

using namespace gradwire;

namespace {

constexpr std::array kWorkers{1, 2, 3, 5, 8, 24};
constexpr std::array kWires{Wire::kFp32, Wire::kFp16, Wire::kBf16};
const std::vector<std::string> kAllReduces{"ring", "halving-doubling", "tree", "star", "allgather"};

using Values = std::vector<std::vector<Scalar>>;  // by worker
using Bytes = std::vector<std::byte>;

std::vector<std::size_t> lengths(int workers) {
  const auto n = static_cast<std::size_t>(workers);
  return {0, 1, n - 1, n, n + 1, 1000};
}

// Small integers, whose sum over 24 workers is exact in every wire format.
Values small_integers(int workers, std::size_t length) {
  Values values(static_cast<std::size_t>(workers), std::vector<Scalar>(length));
  for (std::size_t w = 0; w < values.size(); ++w)
    for (std::size_t i = 0; i < length; ++i)
      values[w][i] = static_cast<Scalar>((7 * w + 3 * i) % 11) - 5;
  return values;
}

Values random_numbers(int workers, std::size_t length) {
  std::mt19937 engine(static_cast<unsigned>(workers));
  std::uniform_real_distribution<Scalar> uniform(-1, 1);
  Values values(static_cast<std::size_t>(workers), std::vector<Scalar>(length));
  for (auto& mine : values)
    for (Scalar& x : mine) x = uniform(engine);
  return values;
}

std::vector<double> sum(const Values& values) {
  std::vector<double> total(values.front().size());
  for (const auto& mine : values)
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += static_cast<double>(mine[i]);
  return total;
}

bool same_bits(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Scalar)) == 0);
}

struct Run {
  std::vector<Traffic> traffic;
  std::vector<WorkerRecording> recordings;
};

Run run(int workers, const std::function<void(Communicator&)>& worker) {
  Run result;
  result.traffic.resize(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers, .recordings = &result.recordings}, [&](Communicator& comm) {
    worker(comm);
    result.traffic[static_cast<std::size_t>(comm.rank())] = comm.account().traffic;
  });
  return result;
}

Run all_reduce(const std::string& name, Values& values, Wire wire) {
  return run(static_cast<int>(values.size()), [&](Communicator& comm) {
    find_all_reduce(name)(comm, values[static_cast<std::size_t>(comm.rank())], wire);
  });
}

// What a worker sends.
struct Sent {
  int messages = 0;
  std::size_t bytes = 0;
};

// Encoded bytes of chunks [first, last) of `parts`.
std::size_t chunks(std::size_t n, int parts, int first, int last, std::size_t width) {
  const auto begin = n * static_cast<std::size_t>(first) / static_cast<std::size_t>(parts);
  const auto end = n * static_cast<std::size_t>(last) / static_cast<std::size_t>(parts);
  return (end - begin) * width;
}

int tree_children(int workers, int v) {
  int children = 0;
  for (int step = 1; step < workers; step *= 2)
    if (v % (2 * step) == 0 && v + step < workers) ++children;
  return children;
}

struct Group {  // of halving-doubling and max
  int size, k;
  int rank;                 // -1: outside
  bool represents = false;  // a worker outside
};
Group group_of(int workers, int w) {
  Group g{1, 0, -1};
  while (2 * g.size <= workers) {
    g.size *= 2;
    ++g.k;
  }
  const int outside = workers - g.size;
  if (w >= 2 * outside)
    g.rank = w - outside;
  else if (w % 2 == 1) {
    g.rank = w / 2;
    g.represents = true;
  }
  return g;
}

Sent halving_doubling(int workers, int w, std::size_t n, std::size_t width) {
  const Group g = group_of(workers, w);
  const std::size_t all = n * width;
  if (g.rank < 0) return {1, all};
  int own = 0;
  for (int bit = 0; bit < g.k; ++bit)
    if ((g.rank >> bit) % 2 == 1) own += g.size >> (bit + 1);
  Sent sent{2 * g.k, all - chunks(n, g.size, own, own + 1, width)};
  for (int block = 1; block < g.size; block *= 2) {
    const int first = own / block * block;
    sent.bytes += chunks(n, g.size, first, first + block, width);
  }
  if (g.represents) sent = {sent.messages + 1, sent.bytes + all};
  return sent;
}

Sent formula(const std::string& name, int workers, int w, std::size_t n, Wire wire) {
  if (workers == 1) return {};
  const std::size_t width = wire_bytes(wire, 1);
  const std::size_t all = n * width;
  const auto others = static_cast<std::size_t>(workers - 1);
  if (name == "ring") {
    const int next = (w + 1) % workers;
    return {2 * (workers - 1), 2 * all - chunks(n, workers, w, w + 1, width) -
                                   chunks(n, workers, next, next + 1, width)};
  }
  if (name == "halving-doubling") return halving_doubling(workers, w, n, width);
  if (name == "tree") {
    const int messages = tree_children(workers, w) + (w == 0 ? 0 : 1);
    return {messages, static_cast<std::size_t>(messages) * all};
  }
  if (name == "star") return w == 0 ? Sent{workers - 1, others * all} : Sent{1, all};
  return {workers - 1, others * all};  // allgather
}

void check_sent(const Traffic& traffic, const Sent& expected, int worker) {
  INFO("worker " << worker);
  CHECK(traffic.messages_sent == expected.messages);
  CHECK(traffic.bytes_sent == static_cast<std::int64_t>(expected.bytes));
}

void check_received_as_sent(const Run& run) {
  Traffic total;
  for (const Traffic& t : run.traffic) {
    total.bytes_sent += t.bytes_sent;
    total.bytes_received += t.bytes_received;
    total.messages_sent += t.messages_sent;
    total.messages_received += t.messages_received;
  }
  CHECK(total.bytes_sent == total.bytes_received);
  CHECK(total.messages_sent == total.messages_received);
}

int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

// How often a number is rounded on its way into the sum, at most.
int roundings(const std::string& name, int workers) {
  if (workers == 1) return 0;
  if (name == "ring") return workers;
  if (name == "star") return 2;
  if (name == "allgather") return 1;
  return ceil_log2(workers) + 1;  // halving-doubling, tree
}

Bytes block_of(int w, std::size_t size) {
  Bytes block(size);
  for (std::size_t i = 0; i < size; ++i)
    block[i] = static_cast<std::byte>(static_cast<std::size_t>(w) * 31 + i);
  return block;
}

// Ragged block sizes, some of them zero.
std::vector<std::size_t> ragged(int workers) {
  std::vector<std::size_t> sizes(static_cast<std::size_t>(workers));
  for (std::size_t w = 0; w < sizes.size(); ++w) sizes[w] = (w * 5) % 4 * 3;
  return sizes;
}

Bytes concatenated(const std::vector<std::size_t>& sizes) {
  Bytes all;
  for (std::size_t w = 0; w < sizes.size(); ++w) {
    const Bytes block = block_of(static_cast<int>(w), sizes[w]);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

// Before send i, receive i + 1 is posted, where there is one.
void check_receives_posted_ahead(const WorkerRecording& recording, int sends) {
  int posted = 0;
  int sent = 0;
  for (const Event& event : recording.lanes[0].events) {
    if (event.kind == Event::Kind::kReceive) ++posted;
    if (event.kind == Event::Kind::kSend) {
      ++sent;
      CHECK(posted >= std::min(sent + 1, sends));
    }
  }
  CHECK(sent == sends);
}

}  // namespace

TEST_CASE("every all-reduce sums small integers exactly") {
  for (const auto& name : kAllReduces)
    for (const int workers : kWorkers)
      for (const std::size_t n : lengths(workers))
        for (const Wire wire : kWires) {
          INFO(name << ", " << workers << " workers, " << n << " numbers, " << wire_bytes(wire, 1)
                    << " bytes each");
          Values values = small_integers(workers, n);
          const auto exact = sum(values);
          all_reduce(name, values, wire);
          for (const auto& mine : values)
            CHECK(std::vector<double>(mine.begin(), mine.end()) == exact);
        }
}

TEST_CASE("every all-reduce leaves the same bits on all workers, within rounding of the sum") {
  for (const auto& name : kAllReduces)
    for (const int workers : kWorkers)
      for (const Wire wire : kWires) {
        INFO(name << ", " << workers << " workers, " << wire_bytes(wire, 1) << " bytes each");
        Values values = random_numbers(workers, 1001);
        const auto exact = sum(values);
        std::vector<double> magnitude(exact.size());
        for (const auto& mine : values)
          for (std::size_t i = 0; i < mine.size(); ++i)
            magnitude[i] += static_cast<double>(std::abs(mine[i]));
        all_reduce(name, values, wire);
        for (const auto& mine : values) CHECK(same_bits(mine, values.front()));

        // Unit roundoff of the wire per hop, of float per addition; fp16's subnormal spacing.
        const double u = wire == Wire::kFp32 ? 0 : std::ldexp(1, wire == Wire::kFp16 ? -11 : -8);
        const double relative =
            std::pow(1 + u, roundings(name, workers)) * std::pow(1 + std::ldexp(1, -24), workers) -
            1;
        const double absolute = wire == Wire::kFp16 ? workers * std::ldexp(1, -25) : 0;
        double worst = 0;
        for (std::size_t i = 0; i < exact.size(); ++i)
          worst = std::max(worst, std::abs(static_cast<double>(values[0][i]) - exact[i]) -
                                      relative * magnitude[i] - absolute);
        CHECK(worst <= 0);
      }
}

TEST_CASE("with a 16-bit wire the worker that sums last rounds its own copy too") {
  for (const std::string name : {"ring", "halving-doubling", "tree", "star"})
    for (const Wire wire : {Wire::kFp16, Wire::kBf16}) {
      INFO(name);
      Values values = random_numbers(3, 100);
      all_reduce(name, values, wire);
      Bytes bytes(wire_bytes(wire, 100));
      encode(wire, values[0], bytes);
      std::vector<Scalar> rounded(100);
      decode(wire, bytes, rounded);
      CHECK(same_bits(values[0], rounded));
    }
}

TEST_CASE("a lone worker's numbers stay as they are, whatever the wire") {
  for (const auto& name : kAllReduces) {
    Values values = random_numbers(1, 10);
    const auto before = values[0];
    const Run result = all_reduce(name, values, Wire::kBf16);
    CHECK(same_bits(values[0], before));
    CHECK(result.recordings[0].lanes[0].events.empty());
  }
}

TEST_CASE("messages and bytes of every all-reduce follow its formula") {
  for (const auto& name : kAllReduces)
    for (const int workers : kWorkers)
      for (const std::size_t n : lengths(workers))
        for (const Wire wire : kWires) {
          INFO(name << ", " << workers << " workers, " << n << " numbers");
          Values values = small_integers(workers, n);
          const Run result = all_reduce(name, values, wire);
          for (int w = 0; w < workers; ++w)
            check_sent(result.traffic[static_cast<std::size_t>(w)],
                       formula(name, workers, w, n, wire), w);
          check_received_as_sent(result);
        }
}

TEST_CASE("ring and halving-doubling move 2(N-1)/N of the buffer where N divides its length") {
  for (const std::string name : {"ring", "halving-doubling"}) {
    Values values = small_integers(8, 1000);
    const Run result = all_reduce(name, values, Wire::kFp32);
    for (const Traffic& t : result.traffic)
      CHECK(t.bytes_sent == static_cast<std::int64_t>(2 * 7 * 1000 / 8 * sizeof(Scalar)));
  }
}

TEST_CASE("additions are charged, one flop and three accesses each") {
  for (const auto& name : kAllReduces)
    for (const int workers : kWorkers) {
      INFO(name << ", " << workers << " workers");
      Values values = small_integers(workers, 1000);
      const Run result = all_reduce(name, values, Wire::kFp16);
      Work total;
      for (const auto& worker : result.recordings)
        for (const Event& event : worker.lanes[0].events)
          if (event.kind == Event::Kind::kCharge) {
            CHECK(event.phase == Phase::kReduction);
            total += worker.lanes[0].charges[event.value].work;
          }
      // N - 1 additions of the buffer in total; the all-gather repeats them on every worker.
      const double additions = 1000.0 * (workers - 1) * (name == "allgather" ? workers : 1);
      CHECK(total.flops == additions);
      CHECK(total.memory_bytes == 3 * sizeof(Scalar) * additions);
    }
}

TEST_CASE("the next step's receive is posted before this step's send") {
  Values values = small_integers(8, 100);
  for (const auto& recording : all_reduce("ring", values, Wire::kFp32).recordings)
    check_receives_posted_ahead(recording, 14);
  for (const auto& recording : all_reduce("halving-doubling", values, Wire::kFp16).recordings)
    check_receives_posted_ahead(recording, 6);
  for (const auto& recording : all_reduce("allgather", values, Wire::kFp32).recordings)
    check_receives_posted_ahead(recording, 7);
}

TEST_CASE("the star's aggregator receives from everyone at once, and sends likewise") {
  Values values = small_integers(5, 10);
  const Run result = all_reduce("star", values, Wire::kFp32);
  std::string calls;
  for (const Event& event : result.recordings[0].lanes[0].events)
    calls += event.kind == Event::Kind::kReceive ? 'r'
             : event.kind == Event::Kind::kSend  ? 's'
             : event.kind == Event::Kind::kWait  ? 'w'
                                                 : '+';
  CHECK(calls == "rrrrw+w+w+w+sssswwww");
}

TEST_CASE("the star and the all-gather add in rank order") {
  // 2^24 + 1 is not a float: only (2^24 + 1) + 1 in this order loses both ones.
  for (const std::string name : {"star", "allgather"}) {
    Values values{{16777216}, {1}, {1}};
    all_reduce(name, values, Wire::kFp32);
    CHECK(values[0][0] == 16777216);
    values = {{1}, {1}, {16777216}};
    all_reduce(name, values, Wire::kFp32);
    CHECK(values[0][0] == 16777218);
  }
}

TEST_CASE("an infinite or undefined number reaches every worker") {
  for (const auto& name : kAllReduces)
    for (const Wire wire : kWires) {
      Values values = small_integers(5, 3);
      values[3][1] = std::numeric_limits<Scalar>::infinity();
      values[2][2] = std::numeric_limits<Scalar>::quiet_NaN();
      all_reduce(name, values, wire);
      for (const auto& mine : values) {
        CHECK(std::isfinite(mine[0]));
        CHECK(std::isinf(mine[1]));
        CHECK(std::isnan(mine[2]));
      }
    }
}

TEST_CASE("the largest value is known to everyone, with k messages of 4 bytes each") {
  for (const int workers : kWorkers)
    for (int where = 0; where < workers; ++where) {
      INFO(workers << " workers, largest on " << where);
      std::vector<std::int32_t> found(static_cast<std::size_t>(workers));
      const Run result = run(workers, [&](Communicator& comm) {
        found[static_cast<std::size_t>(comm.rank())] =
            all_reduce_max(comm, comm.rank() == where ? -1 : -100 - comm.rank());
      });
      CHECK(found == std::vector<std::int32_t>(static_cast<std::size_t>(workers), -1));
      for (int w = 0; w < workers; ++w) {
        const Group g = group_of(workers, w);
        const int messages = g.rank < 0 ? 1 : g.k + (g.represents ? 1 : 0);
        check_sent(result.traffic[static_cast<std::size_t>(w)],
                   {messages, 4 * static_cast<std::size_t>(messages)}, w);
      }
      check_received_as_sent(result);
    }
}

TEST_CASE("the ring all-gather leaves every block on every worker, ragged and empty ones too") {
  for (const int workers : kWorkers)
    for (const auto& sizes :
         {ragged(workers), std::vector<std::size_t>(static_cast<std::size_t>(workers), 0)}) {
      INFO(workers << " workers");
      const Bytes expected = concatenated(sizes);
      std::vector<Bytes> got(sizes.size());
      const Run result = run(workers, [&](Communicator& comm) {
        const auto me = static_cast<std::size_t>(comm.rank());
        got[me] = ring_all_gather(comm, block_of(comm.rank(), sizes[me]), sizes);
      });
      for (std::size_t w = 0; w < sizes.size(); ++w) {
        CHECK(got[w] == expected);
        const std::size_t next = (w + 1) % sizes.size();
        check_sent(result.traffic[w],
                   {workers - 1, workers == 1 ? 0 : expected.size() - sizes[next]},
                   static_cast<int>(w));
      }
      check_received_as_sent(result);
    }
}

TEST_CASE("gather leaves every block on the root alone") {
  for (const int workers : kWorkers)
    for (const int root : {0, workers - 1}) {
      INFO(workers << " workers, root " << root);
      const auto sizes = ragged(workers);
      std::vector<Bytes> got(sizes.size());
      const Run result = run(workers, [&](Communicator& comm) {
        const auto me = static_cast<std::size_t>(comm.rank());
        got[me] = gather(comm, root, block_of(comm.rank(), sizes[me]), sizes);
      });
      for (std::size_t w = 0; w < sizes.size(); ++w) {
        const bool is_root = static_cast<int>(w) == root;
        CHECK(got[w] == (is_root ? concatenated(sizes) : Bytes{}));
        check_sent(result.traffic[w], is_root ? Sent{} : Sent{1, sizes[w]}, static_cast<int>(w));
      }
      check_received_as_sent(result);
    }
}

TEST_CASE("broadcasts leave the root's bytes on everyone") {
  for (const bool tree : {true, false})
    for (const int workers : kWorkers)
      for (int root = 0; root < workers; root += 2)
        for (const std::size_t size : {0U, 1U, 1000U}) {
          INFO((tree ? "tree, " : "star, ")
               << workers << " workers, root " << root << ", " << size << " bytes");
          std::vector<Bytes> got(static_cast<std::size_t>(workers));
          const Run result = run(workers, [&](Communicator& comm) {
            Bytes& mine = got[static_cast<std::size_t>(comm.rank())];
            mine = block_of(comm.rank(), size);
            (tree ? tree_broadcast : star_broadcast)(comm, root, mine);
          });
          for (int w = 0; w < workers; ++w) {
            CHECK(got[static_cast<std::size_t>(w)] == block_of(root, size));
            const int messages = tree ? tree_children(workers, (w - root + workers) % workers)
                                 : w == root ? workers - 1
                                             : 0;
            check_sent(result.traffic[static_cast<std::size_t>(w)],
                       {messages, static_cast<std::size_t>(messages) * size}, w);
          }
          check_received_as_sent(result);
        }
}

TEST_CASE("sizes that do not fit the workers or the block are refused") {
  run_in_process({.workers = 1}, [](Communicator& comm) {
    const Bytes block(4);
    for (const auto& sizes : {std::vector<std::size_t>{5}, {4, 4}, {}}) {
      CHECK_THROWS_AS(ring_all_gather(comm, block, sizes), std::logic_error);
      CHECK_THROWS_AS(gather(comm, 0, block, sizes), std::logic_error);
    }
  });
}

TEST_CASE("every row of the collective table runs with any number of bytes and workers") {
  for (const CollectiveRow& row : collective_table())
    for (const int workers : kWorkers)
      for (const std::size_t bytes : {0U, 1U, 7U, 1003U}) {
        INFO(row.name << ", " << workers << " workers, " << bytes << " bytes");
        check_received_as_sent(run(workers, [&](Communicator& comm) { row.run(comm, bytes); }));
      }
}

TEST_CASE("the collective table's sizes are of the whole array, in scalars for an all-reduce") {
  const auto sent = [](const std::string& name, std::size_t bytes) {
    std::int64_t total = 0;
    for (const Traffic& t :
         run(5, [&](Communicator& comm) { find_collective(name).run(comm, bytes); }).traffic)
      total += t.bytes_sent;
    return total;
  };
  CHECK(sent("all-reduce:ring", 1000) == 8000);
  CHECK(sent("all-reduce:ring", 1003) == 8000);
  CHECK(sent("all-gather:ring", 1003) == 4012);
  CHECK(sent("broadcast:tree", 1003) == 4012);
  CHECK(sent("broadcast:star", 1003) == 4012);
  CHECK(sent("gather:direct", 1000) == 800);
}

TEST_CASE("bus bandwidth is what nccl-tests makes of algorithm bandwidth") {
  for (const CollectiveRow& row : collective_table()) {
    INFO(row.name);
    const double expected = row.name.starts_with("all-reduce")  ? 2 * 7.0 / 8
                            : row.name.starts_with("broadcast") ? 1
                                                                : 7.0 / 8;
    CHECK(row.busbw_factor(8) == expected);
  }
}

TEST_CASE("collectives have names") {
  for (const auto& name : kAllReduces)
    CHECK(find_collective("all-reduce:" + name).name == "all-reduce:" + name);
  CHECK_THROWS_WITH(
      find_all_reduce("bus"),
      "unknown all-reduce bus; known: ring, halving-doubling, tree, star, allgather, gloo");
  CHECK_THROWS_WITH(find_collective("all-reduce:bus"),
                    Catch::StartsWith("unknown collective all-reduce:bus; known: all-reduce:ring, "
                                      "all-reduce:halving-doubling") &&
                        Catch::EndsWith("broadcast:gloo, gather:direct"));
}
