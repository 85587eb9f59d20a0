#include "real/gloo_communicator.h"

#include <catch2/catch.hpp>
#include <exception>
#include <functional>
#include <numeric>
#include <thread>

#include "algorithms/collectives.h"
#include "algorithms/serial.h"
#include "real/rendezvous.h"
#include "tests/scratch.h"

using namespace gradwire;

namespace {

// One thread per worker over loopback; returns each worker's exception message, empty for none.
std::vector<std::string> run_threads(int size, const std::function<void(Communicator&)>& worker,
                                     double timeout_s = 20) {
  const ScratchFolder folder;
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const Mesh mesh = connect({.rank = rank,
                                   .size = size,
                                   .rendezvous = folder / "meeting",
                                   .interface = "",
                                   .timeout_s = timeout_s,
                                   .agreement = {}});
        worker(*mesh.comm);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void run_well(int size, const std::function<void(Communicator&)>& worker) {
  for (const std::string& error : run_threads(size, worker)) CHECK(error.empty());
}

std::span<std::byte> bytes_in(std::vector<std::int32_t>& values) {
  return writable_bytes_of(std::span(values));
}

std::vector<std::int32_t> counting(std::size_t n, std::int32_t first) {
  std::vector<std::int32_t> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("Messages of every size arrive whole and in order, received early or late") {
  const std::vector<std::size_t> sizes{0, 1, 5, 0, 100'000, 3, 1'000'000};
  const bool early = GENERATE(true, false);
  std::vector<std::vector<std::int32_t>> got;
  for (const std::size_t n : sizes) got.emplace_back(n);
  run_well(2, [&](Communicator& comm) {
    std::vector<Request> requests;
    std::vector<std::vector<std::int32_t>> sent;
    for (const std::size_t n : sizes) sent.push_back(counting(n, static_cast<std::int32_t>(n)));
    if ((comm.rank() == 1) == early) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (std::size_t i = 0; i < sizes.size(); ++i)
      requests.push_back(comm.rank() == 0 ? comm.irecv(1, bytes_in(got[i]))
                                          : comm.isend(0, bytes_in(sent[i])));
    for (const Request request : requests) comm.wait(request);
  });
  for (std::size_t i = 0; i < sizes.size(); ++i)
    CHECK(got[i] == counting(sizes[i], static_cast<std::int32_t>(sizes[i])));
}

TEST_CASE("Requests may be waited for in another order than they were made") {
  std::vector<std::int32_t> first(10), second(10);
  run_well(2, [&](Communicator& comm) {
    auto a = counting(10, 100), b = counting(10, 200);
    if (comm.rank() == 0) {
      const Request one = comm.irecv(1, bytes_in(first));
      const Request two = comm.irecv(1, bytes_in(second));
      comm.wait(two);
      comm.wait(one);
    } else {
      const Request one = comm.isend(0, bytes_in(a));
      const Request two = comm.isend(0, bytes_in(b));
      comm.wait(two);
      comm.wait(one);
    }
  });
  CHECK(first == counting(10, 100));
  CHECK(second == counting(10, 200));
}

TEST_CASE("The lanes do not mix their messages, whichever comes first") {
  const int lane_first = GENERATE(0, 1);
  std::vector<std::int32_t> main_got(1000), lane_got(1000);
  std::vector<Traffic> traffic(2);
  run_well(2, [&](Communicator& comm) {
    auto for_main = counting(1000, 1), for_lane = counting(1000, 5000);
    const auto job = [&](Communicator& lane) {
      lane.rank() == 0 ? lane.recv(1, bytes_in(lane_got)) : lane.send(0, bytes_in(for_lane));
    };
    const auto here = [&] {
      comm.rank() == 0 ? comm.recv(1, bytes_in(main_got)) : comm.send(0, bytes_in(for_main));
    };
    if (lane_first == comm.rank()) comm.start(job);
    here();
    if (lane_first != comm.rank()) comm.start(job);
    comm.finish();
    comm.end_step();
    traffic[static_cast<std::size_t>(comm.rank())] = comm.steps().back().traffic;
  });
  CHECK(traffic[0].bytes_received == 8000);
  CHECK(traffic[0].bytes_sent == 0);
  CHECK(traffic[1].bytes_received == 0);
  CHECK(traffic[1].messages_sent == 2);
  CHECK(main_got == counting(1000, 1));
  CHECK(lane_got == counting(1000, 5000));
}

TEST_CASE("Jobs of the second lane run in order, besides the main lane, until finish") {
  run_well(1, [](Communicator& comm) {
    std::vector<int> order;
    const std::thread::id main_thread = std::this_thread::get_id();
    for (int i = 0; i < 3; ++i)
      comm.start([&, i](Communicator& lane) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        order.push_back(std::this_thread::get_id() == main_thread ? -1 : i);
        lane.charge(Phase::kReduction, {});
      });
    comm.finish();
    CHECK(order == std::vector<int>{0, 1, 2});
    const Account account = comm.account();
    const auto reduction = static_cast<std::size_t>(Phase::kReduction);
    CHECK(account.lane_phase_s[reduction] >= 0.006);
    CHECK(account.phase_s[reduction] == 0);
    CHECK(account.waiting_s > 0);
  });
}

TEST_CASE("Charges measure the wall clock since the call before") {
  run_well(1, [](Communicator& comm) {
    comm.charge(Phase::kOptimizer, {});  // sets the mark
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    comm.charge(Phase::kForward, {});
    const Account account = comm.account();
    CHECK(account.phase_s[static_cast<std::size_t>(Phase::kForward)] >= 0.005);
    CHECK(account.time_s >= 0.005);
  });
}

TEST_CASE("Workers on one host read the same clock") {
  std::vector<double> sent_s(1), received_s(1);
  run_well(2, [&](Communicator& comm) {
    if (comm.rank() == 0) {
      sent_s[0] = comm.now_s();
      comm.send(1, {});
    } else {
      comm.recv(0, {});
      received_s[0] = comm.now_s();
    }
  });
  CHECK(received_s[0] >= sent_s[0]);
}

TEST_CASE("Every collective gives over TCP what it gives in memory") {
  const int workers = GENERATE(2, 3, 5);
  for (const CollectiveRow& row : collective_table()) {
    CAPTURE(row.name, workers);
    run_well(workers, [&](Communicator& comm) { row.run(comm, 10'000); });
  }
  for (const char* name : {"ring", "halving-doubling", "tree", "star", "allgather"}) {
    std::vector<Scalar> sums(static_cast<std::size_t>(workers));
    run_well(workers, [&](Communicator& comm) {
      std::vector<Scalar> values(100, static_cast<Scalar>(comm.rank() + 1));
      find_all_reduce(name)(comm, values, Wire::kFp32);
      sums[static_cast<std::size_t>(comm.rank())] = values[99];
    });
    for (const Scalar sum : sums) CHECK(sum == static_cast<Scalar>(workers * (workers + 1) / 2));
  }
}

TEST_CASE("A worker that waits for one that has left is told so") {
  const auto errors = run_threads(2, [](Communicator& comm) {
    std::vector<std::int32_t> values(10);
    if (comm.rank() == 0) comm.recv(1, bytes_in(values));
  });
  CHECK_THAT(errors[0], Catch::StartsWith("lost worker 1: "));
  CHECK(errors[1].empty());
}

TEST_CASE("A worker that waits for a silent one is told so after the timeout") {
  const auto errors = run_threads(
      2,
      [](Communicator& comm) {
        std::vector<std::int32_t> values(10);
        if (comm.rank() == 0) {
          comm.recv(1, bytes_in(values));
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds(400));
        }
      },
      0.2);
  CHECK(errors[0] == "worker 1 did not send 40 bytes within 0.2 s");
}

TEST_CASE("A message of another size than expected is refused on both sides with both sizes") {
  const std::size_t sent = GENERATE(5, 15, 0);
  const auto errors = run_threads(
      2,
      [&](Communicator& comm) {
        std::vector<std::int32_t> values(comm.rank() == 0 ? 10 : sent);
        comm.rank() == 0 ? comm.recv(1, bytes_in(values)) : comm.send(0, bytes_in(values));
      },
      0.2);
  const std::string bytes = std::to_string(4 * sent);
  CHECK(errors[0] == "worker 0 expects 40 bytes from worker 1 and gets " + bytes);
  CHECK(errors[1] == "worker 1 sends " + bytes + " bytes to worker 0, which expects 40");
}

TEST_CASE("A worker that dies while it waits is lost, and not one that expects another size") {
  const auto errors = run_threads(2, [](Communicator& comm) {
    std::vector<std::int32_t> values(10);
    if (comm.rank() == 1) {
      static_cast<void>(comm.irecv(0, bytes_in(values)));
      throw std::runtime_error("dead");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    comm.send(1, bytes_in(values));
  });
  CHECK_THAT(errors[0], Catch::StartsWith("lost worker 1: "));
  CHECK(errors[1] == "dead");
}

TEST_CASE("Messages of right sizes in the wrong order do not meet") {
  const auto errors = run_threads(
      2,
      [](Communicator& comm) {
        std::vector<std::int32_t> one(1), two(2);
        std::vector<Request> requests;
        for (auto* values : {&one, &two})
          if (comm.rank() == 0) requests.push_back(comm.irecv(1, bytes_in(*values)));
        for (auto* values : {&two, &one})
          if (comm.rank() == 1) requests.push_back(comm.isend(0, bytes_in(*values)));
        for (const Request request : requests) comm.wait(request);
      },
      0.2);
  CHECK(errors[0] == "worker 0 expects 4 bytes from worker 1 and gets 8");
  CHECK(errors[1] == "worker 1 sends 8 bytes to worker 0, which expects 4");
}

TEST_CASE("A worker that comes but never connects is named when the timeout is over") {
  const ScratchFolder folder;
  const std::string meeting = folder / "meeting";
  Rendezvous rendezvous(meeting, 1, 20);  // its entries stay until the end
  std::thread other([&] {
    rendezvous.exchange(rendezvous.get("hello-0"), 2);
    // Of two workers the one with the higher port connects: promise one and stay away.
    const std::string mesh = rendezvous.get("mesh-0");
    std::string address = ByteReader(mesh).get_strings().at(1);
    address.replace(2, 2, "\xff\xff");
    ByteWriter out;
    out.put_strings({address, ""});
    rendezvous.put("mesh-1", out.take());
  });
  CHECK_THROWS_WITH(connect({.rank = 0,
                             .size = 2,
                             .rendezvous = meeting,
                             .interface = "",
                             .timeout_s = 0.3,
                             .agreement = {}}),
                    Catch::StartsWith("cannot connect to the other workers through lo") &&
                        Catch::EndsWith("worker 1 did not connect within 0.3 s"));
  other.join();
}

TEST_CASE("A failure of the second lane ends the main lane's wait, and finish tells it") {
  const bool wait_in_finish = GENERATE(true, false);
  const auto errors = run_threads(3, [&](Communicator& comm) {
    std::vector<std::int32_t> values(10), others(10);
    if (comm.rank() == 1) return;  // leaves at once
    if (comm.rank() == 2) {        // says nothing until worker 0 has gone
      comm.recv(0, bytes_in(values));
      return;
    }
    comm.start([&](Communicator& lane) { lane.recv(1, bytes_in(values)); });
    if (!wait_in_finish) comm.recv(2, bytes_in(others));
    comm.finish();
  });
  CHECK_THAT(errors[0], Catch::StartsWith("lost worker 1: "));
  CHECK_THAT(errors[2], Catch::StartsWith("lost worker 0: "));
}

TEST_CASE("An exception of the caller's own does not wait for messages that are still expected") {
  const auto errors = run_threads(2, [](Communicator& comm) {
    std::vector<std::int32_t> values(10);
    if (comm.rank() == 0) {
      comm.start([&](Communicator& lane) { lane.recv(1, bytes_in(values)); });
      throw std::runtime_error("no memory");
    }
    comm.recv(0, bytes_in(values));
  });
  CHECK(errors[0] == "no memory");
  CHECK_THAT(errors[1], Catch::StartsWith("lost worker 0: "));
}
