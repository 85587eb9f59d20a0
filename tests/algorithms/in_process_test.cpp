// The in-process network: order, failures, deadlocks, recordings, and independence of scheduling.
#include "algorithms/in_process.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <random>
#include <thread>

#include "algorithms/collectives.h"

using namespace gradwire;

namespace {

std::span<const std::byte> payload(const int& value) { return bytes_of(std::span(&value, 1)); }
std::span<std::byte> into(int& value) { return writable_bytes_of(std::span(&value, 1)); }

int receive(Communicator& comm, int from) {
  int value = -1;
  comm.recv(from, into(value));
  return value;
}

// Overlapping collectives on both lanes, several steps: something that would show an error of
// matching or ordering.  Returns the worker's numbers.
std::vector<Scalar> busy_worker(Communicator& comm) {
  std::mt19937 engine(static_cast<unsigned>(comm.rank()));
  std::normal_distribution<Scalar> normal;
  std::vector<Scalar> a(101);
  std::vector<Scalar> b(57);
  for (int step = 0; step < 3; ++step) {
    for (Scalar& x : a) x += normal(engine);
    for (Scalar& x : b) x += normal(engine);
    comm.charge(Phase::kForward, {.flops = 1.0 * step});
    comm.start([&](Communicator& lane) { ring_all_reduce(lane, a, Wire::kFp16); });
    comm.start(
        [&](Communicator& lane) { tree_broadcast(lane, 1, writable_bytes_of(std::span(a))); });
    halving_doubling_all_reduce(comm, b, Wire::kFp32);
    comm.finish();
    comm.end_step();
  }
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Run {
  std::vector<std::vector<Scalar>> values;
  std::vector<Traffic> traffic;
  std::vector<WorkerRecording> recordings;
};

Run run_busy(int workers, int concurrency) {
  Run run;
  run.values.resize(static_cast<std::size_t>(workers));
  run.traffic.resize(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers, .concurrency = concurrency, .recordings = &run.recordings},
                 [&](Communicator& comm) {
                   const auto me = static_cast<std::size_t>(comm.rank());
                   run.values[me] = busy_worker(comm);
                   run.traffic[me] = comm.account().traffic;
                 });
  return run;
}

bool same(const LaneRecording& a, const LaneRecording& b) {
  return std::equal(a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
                    [](const Event& x, const Event& y) {
                      return x.kind == y.kind && x.phase == y.phase && x.peer == y.peer &&
                             x.value == y.value;
                    }) &&
         std::equal(a.charges.begin(), a.charges.end(), b.charges.begin(), b.charges.end(),
                    [](const Charge& x, const Charge& y) {
                      return x.work.flops == y.work.flops &&
                             x.work.memory_bytes == y.work.memory_bytes;
                    });
}

bool same(const std::vector<WorkerRecording>& a, const std::vector<WorkerRecording>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return same(x.lanes[0], y.lanes[0]) && same(x.lanes[1], y.lanes[1]);
  });
}

bool same(const Traffic& a, const Traffic& b) {
  return a.bytes_sent == b.bytes_sent && a.messages_sent == b.messages_sent &&
         a.bytes_received == b.bytes_received && a.messages_received == b.messages_received;
}

// Repeats recorded calls, with messages of zeros.
class Replay {
 public:
  explicit Replay(const WorkerRecording& recording) : recording_(recording) {}

  void run(Communicator& comm, std::size_t lane = 0) {
    const LaneRecording& calls = recording_.lanes[lane];
    while (next_[lane] < calls.events.size()) {
      const Event& event = calls.events[next_[lane]++];
      switch (event.kind) {
        case Event::Kind::kSend:
          (void)comm.isend(event.peer, buffer(event.value));  // the recording knows its id
          break;
        case Event::Kind::kReceive:
          (void)comm.irecv(event.peer, buffer(event.value));
          break;
        case Event::Kind::kWait:
          comm.wait({static_cast<std::uint32_t>(event.value)});
          break;
        case Event::Kind::kCharge:
          comm.charge(event.phase, calls.charges[event.value].work);
          break;
        case Event::Kind::kStart:
          comm.start([this](Communicator& second) { run(second, 1); });
          break;
        case Event::Kind::kJobEnd:
          return;
        case Event::Kind::kFinish:
          comm.finish();
          break;
        case Event::Kind::kStep:
          comm.end_step();
          break;
      }
    }
  }

 private:
  std::span<std::byte> buffer(std::uint64_t size) { return buffers_.emplace_back(size); }

  const WorkerRecording& recording_;
  std::array<std::size_t, 2> next_{};
  std::deque<std::vector<std::byte>> buffers_;
};

}  // namespace

TEST_CASE("messages of a pair arrive in the order in which they were sent") {
  run_in_process({.workers = 2}, [](Communicator& comm) {
    const int other = 1 - comm.rank();
    for (int i = 0; i < 100; ++i) comm.send(other, payload(i));
    for (int i = 0; i < 100; ++i)
      if (receive(comm, other) != i) throw std::runtime_error("out of order");
  });
}

TEST_CASE("a receive names its sender, whoever comes first") {
  std::vector<int> got;
  run_in_process({.workers = 4}, [&](Communicator& comm) {
    if (comm.rank() != 0) return comm.send(0, payload(comm.rank() * 10));
    for (const int from : {3, 1, 2}) got.push_back(receive(comm, from));
  });
  CHECK(got == std::vector<int>{30, 10, 20});
}

TEST_CASE("receives match by their posting, not by their waits") {
  std::array<int, 6> got{};
  // One slot: the sender goes on only once the receiver is blocked, waiting for the fourth message.
  run_in_process({.workers = 2, .concurrency = 1}, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      receive(comm, 0);
      for (int i = 0; i < 6; ++i) comm.send(0, payload(i));
      return;
    }
    std::vector<Request> requests;
    requests.reserve(got.size());
    for (int& value : got) requests.push_back(comm.irecv(1, into(value)));
    comm.send(1, payload(0));
    for (const std::size_t i : {3U, 5U, 0U, 1U, 4U, 2U}) comm.wait(requests[i]);
  });
  CHECK(got == std::array<int, 6>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("an earlier message of the same sender does not end the wait for a later one") {
  // One slot: whoever is awake when the sender pauses between its messages is the next to go on.
  for (int trial = 0; trial < 20; ++trial) {
    std::array<int, 2> got{};
    run_in_process({.workers = 3, .concurrency = 1}, [&](Communicator& comm) {
      if (comm.rank() == 0) {
        const Request first = comm.irecv(1, into(got[0]));
        const Request second = comm.irecv(1, into(got[1]));
        comm.send(1, payload(0));
        comm.wait(second);
        comm.wait(first);
      } else if (comm.rank() == 1) {
        receive(comm, 0);
        comm.send(0, payload(1));
        comm.send(2, payload(0));
        receive(comm, 2);
        comm.send(0, payload(2));
      } else {
        receive(comm, 1);
        comm.send(1, payload(0));
      }
    });
    CHECK(got == std::array<int, 2>{1, 2});
  }
}

TEST_CASE("the payload may change once the send has been waited for") {
  int got = 0;
  run_in_process({.workers = 2}, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      got = receive(comm, 0);
    } else {
      int value = 7;
      comm.send(1, payload(value));
      value = 8;
      comm.send(1, payload(value));
    }
  });
  CHECK(got == 7);
}

TEST_CASE("the lanes of a pair do not mix") {
  std::array<int, 2> got{};
  run_in_process({.workers = 2}, [&](Communicator& comm) {
    const int other = 1 - comm.rank();
    if (comm.rank() == 0) comm.send(other, payload(1));
    comm.start([&](Communicator& lane) {
      if (lane.rank() == 0)
        lane.send(other, payload(2));
      else
        got[1] = receive(lane, other);
    });
    comm.finish();
    if (comm.rank() == 1) got[0] = receive(comm, other);
  });
  CHECK(got == std::array<int, 2>{1, 2});
}

TEST_CASE("jobs of the second lane run in the order of their start and before finish returns") {
  std::vector<int> ran;
  run_in_process({.workers = 1}, [&](Communicator& comm) {
    for (int i = 0; i < 5; ++i) comm.start([&ran, i](Communicator&) { ran.push_back(i); });
    comm.finish();
    ran.push_back(5);
  });
  CHECK(ran == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a message of another size than the receive's names both workers and sizes") {
  const std::size_t sent = GENERATE(8, 3, 0);
  const auto worker = [&](Communicator& comm) {
    if (comm.rank() == 1) return comm.send(0, std::vector<std::byte>(sent));
    receive(comm, 1);
  };
  CHECK_THROWS_AS(run_in_process({.workers = 2}, worker), std::logic_error);
  CHECK_THROWS_WITH(run_in_process({.workers = 2}, worker),
                    "worker 0 expects 4 bytes from worker 1 and gets " + std::to_string(sent));
}

TEST_CASE("a worker that ends without waiting for its requests is named") {
  const auto worker = [](Communicator& comm) {
    if (comm.rank() == 1) static_cast<void>(comm.isend(0, std::vector<std::byte>(8)));
  };
  CHECK_THROWS_AS(run_in_process({.workers = 2}, worker), std::logic_error);
  CHECK_THROWS_WITH(run_in_process({.workers = 2}, worker),
                    "worker 1 did not wait for its send to worker 0 of 8 bytes");
}

TEST_CASE("a worker's exception stops the others and is rethrown") {
  struct Special : std::exception {};
  std::atomic<int> completed = 0;
  CHECK_THROWS_AS(run_in_process({.workers = 8},
                                 [&](Communicator& comm) {
                                   if (comm.rank() == 5) throw Special();
                                   receive(comm, 5);  // nothing ever comes
                                   ++completed;
                                 }),
                  Special);
  CHECK(completed == 0);
}

TEST_CASE("a worker that only sends stops after another one's exception") {
  CHECK_THROWS_WITH(run_in_process({.workers = 2},
                                   [&](Communicator& comm) {
                                     if (comm.rank() == 1) throw std::runtime_error("over");
                                     while (true) comm.send(1, {});
                                   }),
                    "over");
}

TEST_CASE("an exception in a job of the second lane is the worker's") {
  CHECK_THROWS_WITH(run_in_process({.workers = 2},
                                   [&](Communicator& comm) {
                                     comm.start([](Communicator& lane) {
                                       if (lane.rank() == 1) throw std::runtime_error("in a job");
                                       receive(lane, 1);
                                     });
                                     comm.finish();
                                   }),
                    "in a job");
}

TEST_CASE("a failure ends the run at any point and with any concurrency") {
  for (int trial = 0; trial < 100; ++trial) {
    INFO("trial " << trial);
    CHECK_THROWS_WITH(run_in_process({.workers = 6, .concurrency = 1 + trial % 4},
                                     [&](Communicator& comm) {
                                       std::vector<Scalar> values(10);
                                       for (int step = 0;; ++step) {
                                         if (step * 6 + comm.rank() == trial)
                                           throw std::runtime_error("here");
                                         ring_all_reduce(comm, values, Wire::kFp32);
                                       }
                                     }),
                      "here");
  }
}

TEST_CASE("a deadlock is reported with the workers that wait") {
  for (const int concurrency : {1, 2, 8})
    CHECK_THROWS_WITH(
        run_in_process({.workers = 3, .concurrency = concurrency},
                       [](Communicator& comm) { receive(comm, (comm.rank() + 1) % 3); }),
        "deadlock: worker 0 waits for worker 1, worker 1 waits for worker 2, "
        "worker 2 waits for worker 0");
}

TEST_CASE("a deadlock that arises when the last worker ends is reported") {
  for (const int concurrency : {1, 4})
    CHECK_THROWS_WITH(run_in_process({.workers = 4, .concurrency = concurrency},
                                     [](Communicator& comm) {
                                       if (comm.rank() == 2) return comm.send(0, payload(1));
                                       if (comm.rank() == 0) receive(comm, 2);
                                       if (comm.rank() != 0) receive(comm, 0);
                                     }),
                      "deadlock: worker 1 waits for worker 0, worker 3 waits for worker 0");
}

TEST_CASE("a deadlock on the second lane is reported") {
  CHECK_THROWS_WITH(run_in_process({.workers = 2},
                                   [](Communicator& comm) {
                                     if (comm.rank() == 0)
                                       comm.send(1, payload(1));  // on the other lane
                                     comm.start([](Communicator& lane) {
                                       if (lane.rank() == 1) receive(lane, 0);
                                     });
                                   }),
                    "deadlock: worker 1 waits for worker 0");
}

TEST_CASE("a message that arrives while its receiver waits is no deadlock") {
  // One slot: every message wakes a worker that then waits for the slot.
  for (int trial = 0; trial < 20; ++trial)
    CHECK_NOTHROW(run_in_process({.workers = 5, .concurrency = 1}, [](Communicator& comm) {
      int token = 0;
      for (int lap = 0; lap < 20; ++lap) {
        if (comm.rank() > 0) token = receive(comm, comm.rank() - 1);
        ++token;
        comm.send((comm.rank() + 1) % 5, payload(token));
        if (comm.rank() == 0) token = receive(comm, 4);
      }
      if (comm.rank() == 0 && token != 100) throw std::logic_error("lost count");
    }));
}

TEST_CASE("messages that nobody receives do no harm") {
  CHECK_NOTHROW(run_in_process(
      {.workers = 3}, [](Communicator& comm) { comm.send((comm.rank() + 1) % 3, payload(1)); }));
}

TEST_CASE("no more workers compute at the same time than allowed") {
  for (const int concurrency : {1, 3}) {
    std::atomic<int> computing = 0;
    std::atomic<int> most = 0;
    run_in_process({.workers = 12, .concurrency = concurrency}, [&](Communicator& comm) {
      std::vector<Scalar> values(1);
      for (int step = 0; step < 10; ++step) {
        const int now = ++computing;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        std::this_thread::yield();
        --computing;
        tree_all_reduce(comm, values, Wire::kFp32);
      }
    });
    CHECK(most >= 1);
    CHECK(most <= concurrency);
  }
}

TEST_CASE("numbers and recordings do not depend on how many workers compute at a time") {
  const Run reference = run_busy(7, 1);
  for (const int concurrency : {2, 7, 0}) {
    const Run run = run_busy(7, concurrency);
    CHECK(run.values == reference.values);
    CHECK(same(run.recordings, reference.recordings));
  }
  for (const auto& values : reference.values) CHECK(values == reference.values.front());
}

TEST_CASE("a recording replays to the same traffic and the same recording") {
  const Run reference = run_busy(6, 0);
  std::vector<WorkerRecording> recordings;
  std::vector<Traffic> traffic(6);
  run_in_process({.workers = 6, .recordings = &recordings}, [&](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    Replay(reference.recordings[me]).run(comm);
    traffic[me] = comm.account().traffic;
  });
  CHECK(same(recordings, reference.recordings));
  for (std::size_t w = 0; w < 6; ++w) CHECK(same(traffic[w], reference.traffic[w]));
}

TEST_CASE("64 workers end with the same sum") {
  std::vector<std::vector<Scalar>> values(64, std::vector<Scalar>(100));
  run_in_process({.workers = 64}, [&](Communicator& comm) {
    auto& mine = values[static_cast<std::size_t>(comm.rank())];
    std::fill(mine.begin(), mine.end(), static_cast<Scalar>(comm.rank()));
    ring_all_reduce(comm, mine, Wire::kFp32);
  });
  for (const auto& mine : values) CHECK(mine == std::vector<Scalar>(100, 2016));
}

TEST_CASE("recordings are made anew by every run") {
  std::vector<WorkerRecording> recordings(5);
  for (int i = 0; i < 3; ++i) recordings[0].lanes[0].add({.kind = Event::Kind::kStep});
  run_in_process({.workers = 2, .recordings = &recordings},
                 [](Communicator& comm) { comm.end_step(); });
  REQUIRE(recordings.size() == 2);
  CHECK(recordings[0].lanes[0].events.size() == 1);
}

TEST_CASE("time stands still in process, but processor time can be measured") {
  std::vector<WorkerRecording> recordings;
  run_in_process({.workers = 2, .measure_cpu = true, .recordings = &recordings},
                 [](Communicator& comm) {
                   volatile double x = 1;
                   for (int i = 0; i < 100000; ++i) x = x * 0.5 + 1;
                   comm.charge(Phase::kForward, {});
                   if (comm.now_s() != 0) throw std::logic_error("the clock moved");
                 });
  for (const auto& worker : recordings) CHECK(worker.lanes[0].charges[0].cpu_s > 0);
}

TEST_CASE("there is at least one worker") {
  CHECK_THROWS_AS(run_in_process({.workers = 0}, [](Communicator&) {}), std::invalid_argument);
  int ran = 0;
  run_in_process({.workers = 1}, [&](Communicator& comm) { ran += comm.size(); });
  CHECK(ran == 1);
}
