// Gloo's schedules in memory: sums in Gloo's order, and the messages and bytes of the formulas.
// tests/real/gloo_collectives_test.cpp holds them against Gloo itself.
#include "algorithms/gloo_collectives.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "algorithms/collectives.h"
#include "algorithms/in_process.h"

using namespace gradwire;

namespace {

constexpr std::array kWorkers{1, 2, 3, 5, 8};
using Bytes = std::vector<std::byte>;
using Values = std::vector<std::vector<Scalar>>;  // by worker

// Runs `worker` on each; what each sent and received.
std::vector<Traffic> run(int workers, const std::function<void(Communicator&)>& worker) {
  std::vector<Traffic> traffic(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    worker(comm);
    traffic[static_cast<std::size_t>(comm.rank())] = comm.account().traffic;
  });
  return traffic;
}

std::vector<Traffic> all_reduce(Values& values) {
  return run(static_cast<int>(values.size()), [&](Communicator& comm) {
    gloo_all_reduce(comm, values[static_cast<std::size_t>(comm.rank())], Wire::kFp32);
  });
}

Values random_numbers(int workers, std::size_t length) {
  std::mt19937 engine(static_cast<unsigned>(workers));
  std::uniform_real_distribution<Scalar> uniform(-1, 1);
  Values values(static_cast<std::size_t>(workers), std::vector<Scalar>(length));
  for (auto& mine : values)
    for (Scalar& x : mine) x = uniform(engine);
  return values;
}

// Numbers in a segment, and in a worker's chunk of them, as the header says.
struct Cut {
  std::size_t segment, chunk;
};
Cut cut(std::size_t workers, std::size_t length) {
  const std::size_t bytes = length * sizeof(Scalar);
  std::size_t n = std::max(2 * workers, (bytes + 1048575) / 1048576);
  while (n % workers != 0) ++n;
  const std::size_t segment = (length + n - 1) / n;
  return {segment, segment * (n / workers)};
}

// What exists of chunk c: numbers and segments.
struct Part {
  std::size_t numbers, segments;
};
Part part(const Cut& cut, std::size_t c, std::size_t length) {
  const std::size_t begin = std::min(length, c * cut.chunk);
  const std::size_t end = std::min(length, (c + 1) * cut.chunk);
  return {end - begin, (end - begin + cut.segment - 1) / cut.segment};
}

// 700 001 numbers are 2.7 MiB: more than two segments a worker for two workers, ragged at the end.
const std::vector<std::size_t> kLengths{1, 2, 7, 16, 1000, 700'001};

}  // namespace

TEST_CASE("Gloo's all-reduce adds each chunk backwards from the worker before its own") {
  for (const int workers : kWorkers)
    for (const std::size_t length : kLengths) {
      CAPTURE(workers, length);
      const auto n = static_cast<std::size_t>(workers);
      Values values = random_numbers(workers, length);
      std::vector<Scalar> expected(length);
      const Cut pieces = cut(n, length);
      for (std::size_t i = 0; i < length; ++i) {
        const std::size_t own = i / pieces.chunk;
        expected[i] = values[(own + n - 1) % n][i];
        for (std::size_t hop = 2; hop <= n; ++hop) expected[i] += values[(own + n - hop) % n][i];
      }
      all_reduce(values);
      for (const auto& mine : values)
        CHECK(std::memcmp(mine.data(), expected.data(), length * sizeof(Scalar)) == 0);
    }
}

TEST_CASE("messages and bytes of Gloo's all-reduce follow its formula") {
  for (const int workers : kWorkers)
    for (const std::size_t length : kLengths) {
      CAPTURE(workers, length);
      Values values = random_numbers(workers, length);
      const std::vector<Traffic> traffic = all_reduce(values);
      const auto n = static_cast<std::size_t>(workers);
      const Cut pieces = cut(n, length);
      for (std::size_t w = 0; w < n; ++w) {
        std::size_t numbers = 0, messages = 0;
        for (std::size_t c = 0; c < n && n > 1; ++c) {
          const Part p = part(pieces, c, length);
          const std::size_t times = (c == w ? 0 : 1) + (c == (w + n - 1) % n ? 0 : 1);
          numbers += times * p.numbers;
          messages += times * p.segments;
        }
        CHECK(traffic[w].bytes_sent == static_cast<std::int64_t>(numbers * sizeof(Scalar)));
        CHECK(traffic[w].messages_sent == static_cast<std::int64_t>(messages));
      }
    }
}

TEST_CASE("with two segments a worker Gloo's all-reduce sends 4(N-1) messages") {
  for (const int workers : {2, 4, 8}) {
    Values values = random_numbers(workers, 16 * 1024);
    for (const Traffic& traffic : all_reduce(values))
      CHECK(traffic.messages_sent == 4 * (workers - 1));
  }
}

TEST_CASE("nothing to add is nothing to send") {
  Values values(3);
  for (const Traffic& traffic : all_reduce(values)) CHECK(traffic.messages_sent == 0);
}

TEST_CASE("Gloo's all-reduce sends no 16-bit numbers") {
  CHECK_THROWS_WITH(run(2,
                        [](Communicator& comm) {
                          std::vector<Scalar> values(4);
                          gloo_all_reduce(comm, values, Wire::kBf16);
                        }),
                    Catch::StartsWith("wire: "));
}

TEST_CASE("Gloo's all-gather sends halves of equal blocks, whole ragged ones, none of nothing") {
  struct Case {
    std::vector<std::size_t> sizes;
    std::int64_t messages_per_step;
  };
  for (const int workers : kWorkers) {
    const auto n = static_cast<std::size_t>(workers);
    std::vector<std::size_t> ragged(n);
    for (std::size_t w = 0; w < n; ++w) ragged[w] = w * 5 % 4 * 3;
    for (const Case& c :
         {Case{std::vector<std::size_t>(n, 7), 2}, Case{std::vector<std::size_t>(n, 1), 2},
          Case{ragged, 1}, Case{std::vector<std::size_t>(n, 0), 0}}) {
      CAPTURE(workers, c.sizes);
      Bytes expected;
      std::vector<Bytes> blocks(n), all(n);
      for (std::size_t w = 0; w < n; ++w) {
        for (std::size_t i = 0; i < c.sizes[w]; ++i)
          blocks[w].push_back(static_cast<std::byte>(31 * w + i));
        expected.insert(expected.end(), blocks[w].begin(), blocks[w].end());
      }
      const std::vector<Traffic> traffic = run(workers, [&](Communicator& comm) {
        const auto me = static_cast<std::size_t>(comm.rank());
        all[me] = gloo_all_gather(comm, blocks[me], c.sizes);
      });
      const bool ragged_but_empty = expected.empty();
      for (std::size_t w = 0; w < n; ++w) {
        CHECK(all[w] == expected);
        CHECK(traffic[w].messages_sent ==
              (ragged_but_empty ? 0 : c.messages_per_step * (workers - 1)));
        CHECK(traffic[w].bytes_sent ==
              (n == 1 ? 0 : static_cast<std::int64_t>(expected.size() - c.sizes[(w + 1) % n])));
      }
    }
  }
}

TEST_CASE("Gloo's broadcast reaches everyone from any root, each worker sending to its children") {
  for (const int workers : kWorkers)
    for (int root = 0; root < workers; ++root) {
      CAPTURE(workers, root);
      std::vector<Bytes> buffers(static_cast<std::size_t>(workers), Bytes(100));
      for (std::size_t i = 0; i < 100; ++i)
        buffers[static_cast<std::size_t>(root)][i] = static_cast<std::byte>(i);
      const std::vector<Traffic> traffic = run(workers, [&](Communicator& comm) {
        gloo_broadcast(comm, root, buffers[static_cast<std::size_t>(comm.rank())]);
      });
      for (int w = 0; w < workers; ++w) {
        const int v = (w - root + workers) % workers;
        std::int64_t children = 0;
        for (int power = 1; v + power < workers; power *= 2)
          if (power > v) ++children;
        const auto i = static_cast<std::size_t>(w);
        CHECK(buffers[i] == buffers[static_cast<std::size_t>(root)]);
        CHECK(traffic[i].messages_sent == children);
        CHECK(traffic[i].bytes_sent == 100 * children);
      }
    }
}

TEST_CASE("a transport's own collective runs in the schedule's place and counts its messages") {
  class Own final : public Communicator, public NativeCollectives {
   public:
    Own() : Communicator(1, 4, 0) {}
    void all_reduce(std::span<Scalar> values) override { values[0] = 42; }
    void all_gather(std::span<std::byte> /*all*/, std::span<const std::size_t> /*sizes*/) override {
    }
    void broadcast(int /*root*/, std::span<std::byte> /*buffer*/) override {}

   private:
    void do_isend(int, std::span<const std::byte>, std::uint32_t) override { FAIL(); }
    void do_irecv(int, std::span<std::byte>, std::uint32_t) override { FAIL(); }
    void do_wait(std::uint32_t) override {}
    void do_charge(Phase, const Charge&) override {}
    void do_start(std::function<void(Communicator&)>) override {}
    void do_finish() override {}
    double clock_s() const override { return 0; }
    std::unique_ptr<Communicator> make_lane() override { return nullptr; }
    NativeCollectives* native() override { return this; }
  };
  Own comm;
  std::vector<Scalar> values(1024);
  gloo_all_reduce(comm, values, Wire::kFp32);
  CHECK(values[0] == 42);
  CHECK(comm.account().traffic.messages_sent == 12);
  CHECK(comm.account().traffic.messages_received == 12);
  CHECK(comm.account().traffic.bytes_sent == 2 * 3 * 1024);
}
