// The calibrated transport against closed forms.  L is a route's latency, B a port's bytes/s.
#include "sim/gloo_transport.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "calibration_file.h"
#include "platform_file.h"
#include "sim/simulate.h"

using namespace gradwire;

namespace {

constexpr double kL = 50e-6;
constexpr double kB = 1e9 / 8;
constexpr double kPreamble = 48;
constexpr std::size_t kBytes = 1'000'000;

Approx nearly(double seconds) { return Approx(seconds).epsilon(1e-5).margin(0); }

/// When each worker ended `worker` on the star.
std::vector<double> end_times_s(const Calibration& calibration, int workers,
                                const std::function<void(Communicator&)>& worker) {
  const PlatformFile platform(star_xml());
  const CalibrationFile file(calibration);
  Scenario s = platform.scenario(workers);
  s.network_model = file.network_model();
  s.compute.device_flop_per_s = 1;  // a flop is a second
  const SimulatedRun run = run_simulated(s, {}, [&](Communicator& comm) {
    worker(comm);
    comm.end_step();
  });
  std::vector<double> ends_s;
  for (const auto& steps : run.steps_by_worker) ends_s.push_back(steps.back().time_s);
  return ends_s;
}

void compute(Communicator& comm, double seconds) {
  comm.charge(Phase::kForward, {.flops = seconds});
}
Request send(Communicator& comm, int to, std::size_t bytes = kBytes) {
  return comm.isend(to, {static_cast<const std::byte*>(nullptr), bytes});
}
Request receive(Communicator& comm, int from, std::size_t bytes = kBytes) {
  return comm.irecv(from, {static_cast<std::byte*>(nullptr), bytes});
}

// Worker 0 sends one message at `send_s`, worker 1 has posted its receive at `receive_s`.
double arrival_s(const Calibration& calibration, double send_s, double receive_s) {
  Calibration apart = calibration;
  apart.cores = 4;
  return end_times_s(apart, 2, [&](Communicator& comm) {
    if (comm.rank() == 0) {
      compute(comm, send_s);
      comm.wait(send(comm, 1));
    } else {
      compute(comm, receive_s);
      comm.wait(receive(comm, 0));
    }
  })[1];
}

Calibration with_rendezvous() {
  Calibration c = free_calibration();
  c.rendezvous = true;
  return c;
}

constexpr double kTransfer_s = (kBytes + kPreamble) / kB;
constexpr double kNote_s = kPreamble / kB;

}  // namespace

TEST_CASE("A free calibration without rendezvous gives latency plus bytes over bandwidth",
          "[transport]") {
  CHECK(arrival_s(free_calibration(), 0, 0) == nearly(kL + kTransfer_s));
  CHECK(arrival_s(free_calibration(), 0, 5e-3) == nearly(kL + kTransfer_s));  // eager
}

TEST_CASE("A receive posted with its send costs two latencies, one posted before costs one",
          "[transport]") {
  CHECK(arrival_s(with_rendezvous(), 0, 0) == nearly(kNote_s + 2 * kL + kTransfer_s));
  CHECK(arrival_s(with_rendezvous(), 1e-3, 0) == nearly(1e-3 + kNote_s + kL + kTransfer_s));
  CHECK(arrival_s(with_rendezvous(), 0, 1e-3) == nearly(1e-3 + kNote_s + 2 * kL + kTransfer_s));
}

TEST_CASE("A note of readiness waits behind payload of the same connection", "[transport]") {
  // Both send at once; worker 1 asks for a second message when its payload has filled its port.
  const auto ends_s = end_times_s(with_rendezvous(), 2, [&](Communicator& comm) {
    const int other = 1 - comm.rank();
    const Request received = receive(comm, other);
    const Request sent = send(comm, other);
    if (comm.rank() == 0) {
      comm.wait(received);
      comm.wait(sent);
      comm.wait(send(comm, 1, 8));
    } else {
      compute(comm, 1e-3);  // its payload is on its way by then
      const Request second = receive(comm, other, 8);
      comm.wait(received);
      comm.wait(second);
      comm.wait(sent);
    }
  });
  CHECK(ends_s[1] == nearly(2 * kNote_s + kL + kTransfer_s + 2 * kL + (8 + kPreamble) / kB));
}

TEST_CASE("Headers and acknowledgements take their share of both directions", "[transport]") {
  Calibration c = free_calibration();
  c.payload_share = 0.9;
  c.acknowledgement_share = 0.02;
  const double frames = std::ceil((kBytes + kPreamble) / 1448);  // each with a full one's headers
  const double carried_s = kTransfer_s + frames * 1448 * (1 / 0.9 - 1) / kB;
  CHECK(arrival_s(c, 0, 0) == nearly(kL + carried_s));
  const auto ends_s = end_times_s(c, 2, [&](Communicator& comm) {
    const int other = 1 - comm.rank();
    const Request received = receive(comm, other);
    comm.wait(send(comm, other));
    comm.wait(received);
  });
  CHECK(ends_s[0] == nearly(kL + carried_s + 0.02 * kBytes / kB));
}

TEST_CASE("Notes and short messages carry whole headers: 10 Mbit/s were predicted 15 % too fast",
          "[transport]") {
  Calibration c = with_rendezvous();
  c.payload_share = 1448.0 / 1514;  // 66 bytes of headers
  // The receiver's note, the sender's own meanwhile, then the message.
  CHECK(arrival_s(c, 0, 0) == nearly((48 + 66) / kB + 2 * kL + kTransfer_s + 691 * 66 / kB));
}

TEST_CASE("A note waits for what its port has taken of another connection's payload",
          "[transport]") {
  // Worker 0 sends worker 1 a long message and then posts a receive for worker 2's.
  const auto arrival = [](double queue_bytes, double pause_s) {
    Calibration c = with_rendezvous();
    c.cores = 4;
    c.queue_bytes = queue_bytes;
    return end_times_s(c, 3, [&](Communicator& comm) {
      if (comm.rank() == 1) return comm.wait(receive(comm, 0));
      if (comm.rank() == 2) return comm.wait(send(comm, 0, 8));
      const Request sent = send(comm, 1);
      compute(comm, pause_s);
      comm.wait(receive(comm, 2, 8));
      const double arrival_s = comm.now_s();
      comm.wait(sent);
      compute(comm, 1 + arrival_s - comm.now_s());
    })[0];
  };
  CHECK(arrival(0, 1e-3) == Approx(1 + 1e-3 + 2 * kL).margin(3e-6));
  CHECK(arrival(5e4, 1e-3) == Approx(1 + 1e-3 + 2 * kL + 5e4 / kB).margin(3e-6));
  // No longer than the payload itself, which leaves 8 ms after its note has come.
  CHECK(arrival(5e5, 7e-3) == Approx(1 + 2 * kNote_s + kL + kTransfer_s + 2 * kL).margin(3e-6));
}

TEST_CASE("An idle port passes its token bucket at once", "[transport]") {
  Calibration c = free_calibration();
  c.token_buckets = {{.up_to_bit_per_s = 2e9, .bytes = 100'000}};
  CHECK(arrival_s(c, 0, 0) == nearly(kL + (kBytes + kPreamble - 1e5) / kB));
  const auto twice = end_times_s(c, 2, [&](Communicator& comm) {
    for (int i = 0; i < 2; ++i) comm.wait(comm.rank() == 0 ? send(comm, 1) : receive(comm, 0));
  });
  CHECK(twice[1] == nearly(kL + (2 * (kBytes + kPreamble) - 1e5) / kB));  // no time to refill
}

TEST_CASE("A delaying switch forwards whole frames and passes nothing at once", "[transport]") {
  Calibration c = free_calibration();
  c.token_buckets = {{.up_to_bit_per_s = 2e9, .bytes = 100'000}};
  c.switch_s = 2e-4;
  CHECK(arrival_s(c, 0, 0) == nearly(2e-4 + kL + kTransfer_s + 1514 / kB));
}

TEST_CASE("A sender goes on when the system has taken what is left of its message", "[transport]") {
  Calibration c = free_calibration();
  const auto sender_end_s = [&](double buffer_bytes) {
    c.send_buffer_bytes = buffer_bytes;
    return end_times_s(c, 2, [&](Communicator& comm) {
      comm.wait(comm.rank() == 0 ? send(comm, 1) : receive(comm, 0));
    })[0];
  };
  CHECK(sender_end_s(0) == nearly(kTransfer_s));
  CHECK(sender_end_s(4e5) == nearly(kTransfer_s - 4e5 / kB));
  CHECK(sender_end_s(2e6) == Approx(0).margin(1e-9));
}

TEST_CASE("Messages and bytes cost processor time at both ends", "[transport]") {
  Calibration c = free_calibration();
  c.cores = 2;
  c.message_costs[0] = {.send_s = 1e-3, .receive_s = 2e-3};
  CHECK(arrival_s(c, 0, 0) == nearly(1e-3 + kL + kTransfer_s + 2e-3));
  c.byte_costs = {{.bit_per_s = 1e9, .send_s = 5e-8, .receive_s = 0}};  // 50 ms, longer than 8
  CHECK(arrival_s(c, 0, 0) == nearly(1e-3 + 50e-3 + kL + 2e-3));
}

TEST_CASE("Messages of the second lane have a cost of their own", "[transport]") {
  Calibration c = free_calibration();
  c.cores = 2;
  c.message_costs = {{{.send_s = 1e-3, .receive_s = 2e-3}, {.send_s = 1e-5, .receive_s = 3e-5}}};
  const auto ends_s = end_times_s(c, 2, [](Communicator& comm) {
    comm.start(
        [](Communicator& lane) { lane.wait(lane.rank() == 0 ? send(lane, 1) : receive(lane, 0)); });
    comm.finish();
  });
  CHECK(ends_s[1] == nearly(1e-5 + kL + kTransfer_s + 3e-5));
}

TEST_CASE("The first message after mathematics costs more: small batches came out 20 % too fast",
          "[transport]") {
  Calibration c = free_calibration();
  c.cores = 2;
  c.message_costs = {{{.burst_s = 1e-3}, {.burst_s = 5e-3}}};
  const auto exchange = [](Communicator& comm) {  // one way: the receiver's costs are early
    comm.wait(comm.rank() == 0 ? send(comm, 1) : receive(comm, 0));
  };
  const auto thrice = [](const std::function<void()>& exchange_once, Communicator& comm) {
    exchange_once();
    exchange_once();
    if (comm.rank() == 0) compute(comm, 0.01);
    exchange_once();
  };
  const auto main_s =
      end_times_s(c, 2, [&](Communicator& comm) { thrice([&] { exchange(comm); }, comm); });
  CHECK(main_s[0] == nearly(2 * 1e-3 + 3 * kTransfer_s + 0.01));
  const auto second_s = end_times_s(c, 2, [&](Communicator& comm) {
    thrice(
        [&] {
          comm.start(exchange);
          comm.finish();
        },
        comm);
  });
  CHECK(second_s[0] == nearly(2 * 5e-3 + 3 * kTransfer_s + 0.01));
  // Somebody else's mathematics on the core does the same.
  c.one_machine = true;
  c.cores = 1;
  const auto ends_s = end_times_s(c, 3, [&](Communicator& comm) {
    if (comm.rank() == 2) return compute(comm, 0.05);
    exchange(comm);
    exchange(comm);
  });
  // The sender twice, the receiver when it posts and, 8 ms later each, when messages come.
  CHECK(ends_s[2] == nearly(0.05 + 5 * 1e-3));
}

TEST_CASE("Mathematics goes on between the pieces of a long message", "[transport]") {
  Calibration c = free_calibration();
  c.one_machine = true;
  c.byte_costs = {{.bit_per_s = 1e9, .send_s = 0, .receive_s = 4e-9}};  // 4 of 8 ms
  const auto ends_s = end_times_s(c, 3, [](Communicator& comm) {
    if (comm.rank() == 2) return compute(comm, 2e-3);
    comm.wait(comm.rank() == 0 ? send(comm, 1) : receive(comm, 0));
  });
  CHECK(ends_s[1] == nearly(kL + kTransfer_s));
  CHECK(ends_s[2] > 3.9e-3);
  CHECK(ends_s[2] < 4.5e-3);  // not after the message's 4 ms, at 6
}

TEST_CASE("Workers of one machine share its cores, those of several do not", "[transport]") {
  Calibration c = free_calibration();
  c.cores = 2;
  const auto last_end_s = [&] {
    const auto ends_s =
        end_times_s(c, 4, [](Communicator& comm) { compute(comm, comm.rank() == 3 ? 0.5 : 1); });
    return *std::max_element(ends_s.begin(), ends_s.end());
  };
  CHECK(last_end_s() == nearly(1));
  c.one_machine = true;
  // Four on two cores until the short one ends at 1.0; three halves left at rate 2/3.
  CHECK(last_end_s() == nearly(1 + 0.75));
}

TEST_CASE("Pinned workers wait for their own core though another is idle", "[transport]") {
  Calibration c = free_calibration();
  c.cores = 2;
  c.one_machine = true;
  c.pinned = true;
  const auto ends_s =
      end_times_s(c, 4, [](Communicator& comm) { compute(comm, comm.rank() % 2 == 0 ? 1 : 0.25); });
  CHECK(ends_s[0] == nearly(2));
  CHECK(ends_s[2] == nearly(2));
  CHECK(ends_s[1] == nearly(0.5));
}

TEST_CASE("What a message costs in the background delays mathematics, not the message",
          "[transport]") {
  Calibration c = free_calibration();
  c.one_machine = true;
  c.message_costs[0].background_s = 0.1;
  const auto ends_s = end_times_s(c, 3, [](Communicator& comm) {
    if (comm.rank() == 2) return compute(comm, 1);  // on the one core
    comm.wait(comm.rank() == 0 ? send(comm, 1) : receive(comm, 0));
  });
  CHECK(ends_s[1] == nearly(kL + kTransfer_s));
  CHECK(ends_s[2] == nearly(1.2));  // both ends'
}

TEST_CASE("Messages come before mathematics on the cores that both need", "[transport]") {
  Calibration c = free_calibration();
  c.one_machine = true;
  c.message_costs[0].send_s = 0.2;
  const auto ends_s = end_times_s(c, 3, [](Communicator& comm) {
    if (comm.rank() == 2) return compute(comm, 1);  // alone but for the messages
    const int other = 1 - comm.rank();
    const Request received = receive(comm, other);
    comm.wait(send(comm, other));
    comm.wait(received);
  });
  CHECK(ends_s[2] == nearly(1.4));  // two of 0.2 s on the one core
  CHECK(ends_s[0] == nearly(0.4 + kL + kTransfer_s));
}
