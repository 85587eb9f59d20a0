// What the public calls count, time and record, on a communicator whose clock the test turns.
#include "algorithms/communicator.h"

#include <catch2/catch.hpp>
#include <utility>

using namespace gradwire;

namespace {

// Every operation takes a known time; jobs run when they start.
class Clockwork final : public Communicator {
 public:
  explicit Clockwork(int rank = 0, int size = 3) : Clockwork(rank, size, 0, own_clock_) {}

  double& clock() { return clock_; }
  static constexpr double kWait = 2, kCharge = 0.5, kFinish = 4;

 private:
  Clockwork(int rank, int size, int lane, double& clock)
      : Communicator(rank, size, lane), clock_(clock) {}

  void do_isend(int /*to*/, std::span<const std::byte> /*payload*/, std::uint32_t /*id*/) override {
  }
  void do_irecv(int /*from*/, std::span<std::byte> /*buffer*/, std::uint32_t /*id*/) override {}
  void do_wait(std::uint32_t /*id*/) override { clock_ += kWait; }
  void do_charge(Phase /*phase*/, const Charge& /*charge*/) override { clock_ += kCharge; }
  void do_start(std::function<void(Communicator&)> job) override { job(second_lane()); }
  void do_finish() override { clock_ += kFinish; }
  double clock_s() const override { return clock_; }
  std::unique_ptr<Communicator> make_lane() override {
    return std::unique_ptr<Communicator>(new Clockwork(rank(), size(), 1, clock_));
  }

  double own_clock_ = 0;
  double& clock_;
};

std::vector<std::byte> bytes(std::size_t n) { return std::vector<std::byte>(n); }

double phase(const std::array<double, kPhases>& phases, Phase which) {
  return phases[static_cast<std::size_t>(which)];
}

}  // namespace

TEST_CASE("sent messages count when they start, received ones when they have arrived") {
  Clockwork comm;
  auto buffer = bytes(7);
  const Request sent = comm.isend(1, bytes(5));
  const Request received = comm.irecv(2, buffer);
  CHECK(comm.account().traffic.messages_sent == 1);
  CHECK(comm.account().traffic.bytes_sent == 5);
  CHECK(comm.account().traffic.messages_received == 0);
  comm.wait(received);
  comm.wait(sent);
  CHECK(comm.account().traffic.messages_sent == 1);
  CHECK(comm.account().traffic.messages_received == 1);
  CHECK(comm.account().traffic.bytes_received == 7);
}

TEST_CASE("a message of no bytes is a message") {
  Clockwork comm;
  comm.send(1, {});
  comm.recv(1, {});
  CHECK(comm.account().traffic.messages_sent == 1);
  CHECK(comm.account().traffic.messages_received == 1);
  CHECK(comm.account().traffic.bytes_sent == 0);
}

TEST_CASE("a worker exchanges messages with the others only") {
  Clockwork comm(1, 3);
  for (const int peer : {-1, 1, 3}) {
    CHECK_THROWS_WITH(comm.send(peer, {}),
                      "worker 1 of 3 cannot exchange messages with worker " + std::to_string(peer));
    CHECK_THROWS_AS(comm.recv(peer, {}), std::logic_error);
  }
  CHECK(comm.account().traffic.messages_sent == 0);
}

TEST_CASE("a request is waited for once") {
  Clockwork comm;
  const Request request = comm.isend(1, {});
  comm.wait(request);
  CHECK_THROWS_AS(comm.wait(request), std::logic_error);
  CHECK_THROWS_AS(comm.wait({17}), std::logic_error);
}

TEST_CASE("requests that nobody waits for end the step with the worker's name") {
  Clockwork comm(1, 3);
  const Request sent = comm.isend(2, bytes(5));
  CHECK_THROWS_AS(comm.end_step(), std::logic_error);
  CHECK_THROWS_WITH(comm.end_step(), "worker 1 did not wait for its send to worker 2 of 5 bytes");
  CHECK(comm.steps().empty());
  comm.wait(sent);
  CHECK_NOTHROW(comm.end_step());
  auto buffer = bytes(7);
  static_cast<void>(comm.irecv(0, buffer));
  CHECK_THROWS_WITH(comm.require_idle(),
                    "worker 1 did not wait for its receive from worker 0 of 7 bytes");
}

TEST_CASE("a job that leaves a request behind fails at its end") {
  Clockwork comm;
  CHECK_THROWS_WITH(
      comm.start([](Communicator& lane) { static_cast<void>(lane.isend(1, bytes(5))); }),
      "worker 0 did not wait for its send to worker 1 of 5 bytes (second lane)");
}

TEST_CASE("time in a phase runs from the previous call to the end of the charge") {
  Clockwork comm;
  comm.clock() += 10;  // before any call: nobody's time but the first charge's
  comm.charge(Phase::kForward, {});
  CHECK(phase(comm.account().phase_s, Phase::kForward) == 10 + Clockwork::kCharge);
  comm.send(1, {});
  comm.clock() += 3;
  comm.charge(Phase::kBackward, {});
  comm.charge(Phase::kBackward, {});
  CHECK(phase(comm.account().phase_s, Phase::kBackward) == 3 + 2 * Clockwork::kCharge);
  CHECK(phase(comm.account().phase_s, Phase::kForward) == 10 + Clockwork::kCharge);
}

TEST_CASE("waiting is the time inside wait and finish") {
  Clockwork comm;
  comm.clock() += 10;
  comm.send(1, {});
  comm.recv(1, {});
  CHECK(comm.account().waiting_s == 2 * Clockwork::kWait);
  comm.finish();  // no job was ever started: nothing to wait for
  CHECK(comm.account().waiting_s == 2 * Clockwork::kWait);
  comm.start([](Communicator&) {});
  comm.finish();
  CHECK(comm.account().waiting_s == 2 * Clockwork::kWait + Clockwork::kFinish);
}

TEST_CASE("the second lane's traffic counts as the worker's, its time apart") {
  Clockwork comm;
  comm.start([](Communicator& lane) {
    CHECK(lane.rank() == 0);
    CHECK(lane.size() == 3);
    lane.send(1, bytes(5));
    lane.charge(Phase::kReduction, {});
  });
  comm.finish();
  const Account account = comm.account();
  CHECK(account.traffic.messages_sent == 1);
  CHECK(account.traffic.bytes_sent == 5);
  CHECK(phase(account.lane_phase_s, Phase::kReduction) == Clockwork::kCharge);
  CHECK(phase(account.phase_s, Phase::kReduction) == 0);
  CHECK(account.waiting_s == Clockwork::kFinish);
}

TEST_CASE("a job's first charge counts from the job's start") {
  Clockwork comm;
  comm.start([](Communicator&) {});
  comm.clock() += 10;
  comm.start([](Communicator& lane) { lane.charge(Phase::kReduction, {}); });
  CHECK(phase(comm.account().lane_phase_s, Phase::kReduction) == Clockwork::kCharge);
}

TEST_CASE("the second lane starts no jobs") {
  Clockwork comm;
  comm.start([](Communicator& lane) {
    CHECK_THROWS_AS(lane.start([](Communicator&) {}), std::logic_error);
  });
}

TEST_CASE("every step leaves an account") {
  Clockwork comm;
  comm.end_step();
  comm.send(1, bytes(5));
  comm.end_step();
  REQUIRE(comm.steps().size() == 2);
  CHECK(comm.steps()[0].traffic.bytes_sent == 0);
  CHECK(comm.steps()[1].traffic.bytes_sent == 5);
  CHECK(comm.steps()[1].time_s == Clockwork::kWait);
}

TEST_CASE("a recording holds every call in order") {
  Clockwork comm;
  WorkerRecording recording;
  comm.record_to(&recording);
  const Request sent = comm.isend(1, bytes(5));
  auto buffer = bytes(7);
  const Request received = comm.irecv(2, buffer);
  comm.wait(received);
  comm.charge(Phase::kCompression, {.flops = 11, .memory_bytes = 12});
  comm.wait(sent);
  comm.start([](Communicator& lane) { lane.charge(Phase::kReduction, {.flops = 13}); });
  comm.finish();
  comm.end_step();

  using Kind = Event::Kind;
  struct Expected {
    Kind kind;
    int peer;
    std::uint64_t value;
  };
  const std::vector<Expected> expected{{Kind::kSend, 1, 5},           {Kind::kReceive, 2, 7},
                                       {Kind::kWait, 0, received.id}, {Kind::kCharge, 0, 0},
                                       {Kind::kWait, 0, sent.id},     {Kind::kStart, 0, 0},
                                       {Kind::kFinish, 0, 0},         {Kind::kStep, 0, 0}};
  const auto& main = recording.lanes[0];
  REQUIRE(main.events.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("event " << i);
    CHECK(main.events[i].kind == expected[i].kind);
    CHECK(main.events[i].peer == expected[i].peer);
    CHECK(main.events[i].value == expected[i].value);
  }
  CHECK(main.events[3].phase == Phase::kCompression);
  REQUIRE(main.charges.size() == 1);
  CHECK(main.charges[0].work.flops == 11);
  CHECK(main.charges[0].work.memory_bytes == 12);

  const auto& lane = recording.lanes[1];
  REQUIRE(lane.events.size() == 2);
  CHECK(lane.events[0].kind == Kind::kCharge);
  CHECK(lane.events[1].kind == Kind::kJobEnd);
  REQUIRE(lane.charges.size() == 1);
  CHECK(lane.charges[0].work.flops == 13);
}

TEST_CASE("a timeline holds charges, messages and finishes of both lanes") {
  Clockwork comm;
  std::vector<Span> spans;
  comm.trace_to(&spans);
  comm.send(1, bytes(5));
  comm.start([](Communicator& lane) { lane.charge(Phase::kReduction, {}); });
  comm.finish();
  comm.end_step();
  comm.recv(2, {});

  REQUIRE(spans.size() == 4);
  CHECK(spans[0].kind == Span::Kind::kSend);
  CHECK(spans[0].lane == 0);
  CHECK(spans[0].peer == 1);
  CHECK(spans[0].bytes == 5);
  CHECK(spans[0].start_s == 0);
  CHECK(spans[0].end_s == 2);
  CHECK(spans[1].kind == Span::Kind::kCharge);
  CHECK(spans[1].phase == Phase::kReduction);
  CHECK(spans[1].lane == 1);
  CHECK(spans[1].start_s == 2);
  CHECK(spans[1].end_s == 2.5);
  CHECK(spans[2].kind == Span::Kind::kFinish);
  CHECK(spans[2].end_s == 6.5);
  CHECK(spans[3].kind == Span::Kind::kReceive);
  CHECK(spans[3].peer == 2);
  CHECK(spans[2].step == 0);
  CHECK(spans[3].step == 1);
}

TEST_CASE("processor time is measured only on demand") {
  Clockwork comm;
  WorkerRecording recording;
  comm.record_to(&recording);
  const auto work = [] {
    volatile double x = 1;
    for (int i = 0; i < 100000; ++i) x = x * 0.5 + 1;
  };
  work();
  comm.charge(Phase::kForward, {});
  comm.measure_cpu(true);
  work();
  comm.charge(Phase::kForward, {});
  CHECK(recording.lanes[0].charges[0].cpu_s == 0);
  CHECK(recording.lanes[0].charges[1].cpu_s > 0);
}

TEST_CASE("phases have names") {
  CHECK(phase_name(Phase::kForward) == "forward");
  CHECK(phase_name(Phase::kBackward) == "backward");
  CHECK(phase_name(Phase::kCompression) == "compression");
  CHECK(phase_name(Phase::kReduction) == "reduction");
  CHECK(phase_name(Phase::kOptimizer) == "optimizer");
}
