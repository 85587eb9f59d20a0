// Replay against full simulation, simulation against the in-process network, failures of workers.
#include "sim/simulate.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>

#include "algorithms/collectives.h"
#include "platform_file.h"
#include "sim/platform.h"

namespace gradwire {
namespace {

Scenario small_training(const PlatformFile& platform, const std::string& algorithm, int workers) {
  Scenario s = platform.scenario(workers);
  s.compute.device_flop_per_s = 1e9;
  s.algorithm = parse_algorithm_spec(algorithm);
  s.model.name = "mlp:20-16-12-4";
  s.dataset = "synthetic:20x4";
  s.batch_size = 8;
  s.batches = 2;
  return s;
}

// What a simulation's child process leaves for the test: one number per worker.
class SharedNumbers {
 public:
  explicit SharedNumbers(int workers) : bytes_(static_cast<std::size_t>(workers) * 8) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
    numbers_ = static_cast<std::uint64_t*>(memory);
  }
  ~SharedNumbers() { munmap(numbers_, bytes_); }
  SharedNumbers(const SharedNumbers&) = delete;
  SharedNumbers& operator=(const SharedNumbers&) = delete;
  std::uint64_t& operator[](int worker) { return numbers_[worker]; }

 private:
  std::size_t bytes_;
  std::uint64_t* numbers_;
};

void check_same_bits(const SimulatedRun& a, const SimulatedRun& b) {
  REQUIRE(a.steps_by_worker.size() == b.steps_by_worker.size());
  for (std::size_t w = 0; w < a.steps_by_worker.size(); ++w) {
    REQUIRE(a.steps_by_worker[w].size() == b.steps_by_worker[w].size());
    for (std::size_t s = 0; s < a.steps_by_worker[w].size(); ++s) {
      const Account& x = a.steps_by_worker[w][s];
      const Account& y = b.steps_by_worker[w][s];
      CAPTURE(w, s);
      CHECK(x.time_s == y.time_s);
      CHECK(x.phase_s == y.phase_s);
      CHECK(x.lane_phase_s == y.lane_phase_s);
      CHECK(x.waiting_s == y.waiting_s);
      CHECK(x.traffic.bytes_sent == y.traffic.bytes_sent);
      CHECK(x.traffic.messages_received == y.traffic.messages_received);
    }
  }
}

std::size_t count_charges(const LaneRecording& lane) {
  return static_cast<std::size_t>(
      std::count_if(lane.events.begin(), lane.events.end(),
                    [](const Event& event) { return event.kind == Event::Kind::kCharge; }));
}

std::vector<std::string> algorithms_under_test() {
  std::vector<std::string> specs{"dsgd:overlap=on,first-bucket-bytes=500,bucket-bytes=1000",
                                 "dsgd:exchange=halving-doubling,wire=bf16,overlap=off"};
  for (const AlgorithmRow& row : algorithm_registry())
    if (row.synchronous) specs.push_back(row.name);
  return specs;
}

TEST_CASE("a replay equals the full simulation to the last bit, and both the in-process numbers") {
  const PlatformFile star(star_xml());
  for (const std::string& algorithm : algorithms_under_test()) {
    CAPTURE(algorithm);
    Scenario scenario = small_training(star, algorithm, 5);
    const Dataset dataset = load_dataset(scenario.dataset, scenario.seed);
    const Rehearsal rehearsal = rehearse(scenario, dataset);
    SharedNumbers hashes(scenario.workers);
    const SimulatedRun full =
        run_simulated(scenario, rehearsal.recording.batch_work, [&](Communicator& comm) {
          hashes[comm.rank()] = train(comm, scenario, dataset).parameter_hash;
        });
    scenario.exact_replay = true;
    check_same_bits(full, replay(scenario, rehearsal.recording));
    for (int w = 0; w < scenario.workers; ++w)
      CHECK(hashes[w] == rehearsal.workers[static_cast<std::size_t>(w)].parameter_hash);
  }
}

TEST_CASE("two replays are identical, on a contended platform too") {
  const PlatformFile platform(star_xml(R"(bb_bw="150MBps" bb_lat="10us")"));
  const Scenario scenario = small_training(platform, "dsgd", 7);
  const Rehearsal rehearsal = rehearse(scenario, load_dataset(scenario.dataset, scenario.seed));
  check_same_bits(replay(scenario, rehearsal.recording), replay(scenario, rehearsal.recording));
}

TEST_CASE("a timeline holds every charge and message, and none ends before it starts") {
  const PlatformFile star(star_xml());
  const Scenario scenario = small_training(star, "dsgd", 3);
  const Rehearsal rehearsal = rehearse(scenario, load_dataset(scenario.dataset, scenario.seed));
  const SimulatedRun run = replay(scenario, rehearsal.recording, true);
  REQUIRE(run.timeline.size() == 3);
  for (std::size_t w = 0; w < 3; ++w) {
    std::size_t charges = 0, sent = 0;
    for (const Span& span : run.timeline[w]) {
      CHECK(span.start_s <= span.end_s);
      charges += span.kind == Span::Kind::kCharge ? 1 : 0;
      sent += span.kind == Span::Kind::kSend ? 1 : 0;
    }
    const auto& lanes = rehearsal.recording.workers[w].lanes;
    CHECK(charges == count_charges(lanes[0]) + count_charges(lanes[1]));
    CHECK(static_cast<std::int64_t>(sent) == run.steps_by_worker[w].back().traffic.messages_sent);
  }
  CHECK(replay(scenario, rehearsal.recording).timeline.empty());
}

TEST_CASE("simulate splits a batch into compute and exposed communication") {
  // Without overlap, on a device of 1 Gflop/s.
  const PlatformFile star(star_xml());
  const Scenario scenario = small_training(star, "dsgd:overlap=off", 4);
  const Dataset dataset = load_dataset(scenario.dataset, scenario.seed);
  const Result result = simulate(scenario, dataset);
  REQUIRE(result.batch_time_s.samples.size() == 2);
  CHECK(result.replicas_equal);
  CHECK(result.optimizer_time_s.mean > 0);
  CHECK(result.compute_time_s.mean > result.optimizer_time_s.mean);
  CHECK(result.exposed_communication_time_s.mean > 0);
  CHECK(result.compute_time_s.mean + result.compression_time_s.mean + result.reduction_time_s.mean +
            result.exposed_communication_time_s.mean ==
        Approx(result.batch_time_s.mean).epsilon(1e-9));
  Scenario ideal = scenario;
  ideal.bandwidth_bit_per_s = 1e18;
  ideal.latency_s = 0;
  CHECK(simulate(ideal, dataset).batch_time_s.mean < result.batch_time_s.mean);
}

TEST_CASE("the report of a run names every constant of the network") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(2);
  const auto constants = [&] {
    const auto list = run_simulated(scenario, {}, [](Communicator&) {}).network;
    return std::map<std::string, std::string>(list.begin(), list.end());
  };
  auto exact = constants();
  CHECK(exact["network_model"] == "exact");
  CHECK(exact["simgrid_model"] == "CM02");
  CHECK(exact["latency_factor"] == "1");
  CHECK(exact["bandwidth_factor"] == "1");
  CHECK(exact["tcp_gamma_byte"] == "0");
  CHECK(exact["crosstraffic"] == "no");
  CHECK(exact["platform"] == star.path());
  CHECK(exact["hosts_used"] == "node-0, node-1 (2)");
  CHECK(std::stod(exact["max_route_latency_s"]) == Approx(50e-6));
  CHECK(std::stod(exact["min_route_bandwidth_bit_per_s"]) == Approx(1e9));
  scenario.network_model = "simgrid:LV08";
  auto lv08 = constants();
  CHECK(lv08["latency_factor"] == "13.01");
  CHECK(lv08["bandwidth_factor"] == "0.97");
  CHECK(lv08["tcp_gamma_byte"] == "4194304");
  CHECK(lv08["crosstraffic"] == "yes");
  scenario.network_model = "simgrid:SMPI";
  CHECK_THAT(constants()["latency_factor"], Catch::StartsWith("65472:11.6436;"));  // by size
}

TEST_CASE("GRADWIRE_SIMGRID_CONTEXTS reaches SimGrid in time") {
  const PlatformFile star(star_xml());
  const char* before = std::getenv("GRADWIRE_SIMGRID_CONTEXTS");
  const std::string factory = before == nullptr ? "" : before;
  setenv("GRADWIRE_SIMGRID_CONTEXTS", "no-such-factory", 1);
  CHECK_THROWS_WITH(run_simulated(star.scenario(2), {}, [](Communicator&) {}),
                    Catch::Contains("valid factory") && Catch::Contains("starting SimGrid"));
  if (before == nullptr)
    unsetenv("GRADWIRE_SIMGRID_CONTEXTS");
  else
    setenv("GRADWIRE_SIMGRID_CONTEXTS", factory.c_str(), 1);
}

TEST_CASE("a deadlock names the waiting workers") {
  const PlatformFile star(star_xml());
  std::vector<std::byte> buffer(8);
  CHECK_THROWS_WITH(run_simulated(star.scenario(3), {},
                                  [&](Communicator& comm) {
                                    if (comm.rank() < 2) comm.recv(1 - comm.rank(), buffer);
                                  }),
                    "deadlock: worker 0 waits for worker 1, worker 1 waits for worker 0");
  CHECK_THROWS_WITH(run_simulated(star.scenario(2), {},
                                  [&](Communicator& comm) {
                                    comm.start([&](Communicator& lane) {
                                      if (lane.rank() == 1) lane.recv(0, buffer);
                                    });
                                    comm.finish();
                                  }),
                    "deadlock: worker 1 (second lane) waits for worker 0");
}

TEST_CASE("a worker's failure comes back with its message") {
  const PlatformFile star(star_xml());
  const auto fail_on = [&](int lane) {
    return run_simulated(star.scenario(2), {}, [lane](Communicator& comm) {
      if (comm.rank() == 0) return;
      const auto fail = [](Communicator&) { throw std::logic_error("the loss is NaN"); };
      if (lane == 0) fail(comm);
      comm.start(fail);
      comm.finish();
    });
  };
  CHECK_THROWS_WITH(fail_on(0), "worker 1: the loss is NaN");
  CHECK_THROWS_WITH(fail_on(1), "worker 1: the loss is NaN");
}

TEST_CASE("a receive of the wrong size is an error") {
  const PlatformFile star(star_xml());
  CHECK_THROWS_WITH(run_simulated(star.scenario(2), {},
                                  [](Communicator& comm) {
                                    std::vector<std::byte> buffer(comm.rank() == 0 ? 8u : 4u);
                                    if (comm.rank() == 0)
                                      comm.send(1, buffer);
                                    else
                                      comm.recv(0, buffer);
                                  }),
                    Catch::Contains("worker 1 expects 4 bytes from worker 0 and gets 8"));
}

TEST_CASE("a crash during the simulation is an error of one line") {
  const PlatformFile star(star_xml());
  CHECK_THROWS_WITH(run_simulated(star.scenario(2), {}, [](Communicator&) { raise(SIGSEGV); }),
                    "SimGrid failed: ended by signal: Segmentation fault (while simulating)");
}

TEST_CASE("a recording of other workers than the scenario's is refused") {
  const PlatformFile star(star_xml());
  Recording recording;
  recording.workers.resize(3);
  CHECK_THROWS_AS(replay(star.scenario(2), recording), std::logic_error);
}

}  // namespace
}  // namespace gradwire
