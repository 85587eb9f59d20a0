// Networks of namespaces on this machine; skipped where they may not be made.
#include "real/netlab.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "real/gloo_communicator.h"
#include "real/launch.h"
#include "real/workers.h"
#include "tests/algorithms/training_runs.h"
#include "tests/real/processes.h"
#include "tests/scratch.h"

using namespace gradwire;

namespace {

std::unique_ptr<NetLab> make_lab(const std::vector<SwitchPort>& ports) {
  try {
    return std::make_unique<NetLab>(ports);
  } catch (const LabUnavailable& error) {
    WARN("skipped: " << error.what());
    return nullptr;
  }
}

std::vector<SwitchPort> ports(std::size_t workers, double bit_per_s, double delay_s) {
  return {workers, {.up_bit_per_s = bit_per_s, .down_bit_per_s = bit_per_s, .delay_s = delay_s}};
}

// Alone on the machine both agree to 0.1 %; other tests may run beside this one.
bool roughly(double measured, double expected) {
  return measured > expected / 1.8 && measured < expected * 1.8;
}

std::string network_of_this_thread() {
  return std::filesystem::read_symlink("/proc/thread-self/ns/net").string();
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

}  // namespace

TEST_CASE("The lab carries its rate, with and without delay", "[lab]") {
  const double delay_s = GENERATE(0.0, 0.005);
  const auto lab = make_lab(ports(2, 20e6, delay_s));
  if (lab == nullptr) return;
  const LabCheck check = lab->check(1, 0);
  CHECK(check.expected_goodput_bit_per_s == Approx(20e6 * 1448 / 1514));
  CHECK(roughly(check.goodput_bit_per_s, check.expected_goodput_bit_per_s));
  CHECK(check.expected_round_trip_s == 4 * delay_s);
  CHECK(check.round_trip_s >= check.expected_round_trip_s);
}

TEST_CASE("The slower of the sender's and the receiver's rate counts", "[lab]") {
  const auto lab = make_lab({{.up_bit_per_s = 40e6, .down_bit_per_s = 10e6},
                             {.up_bit_per_s = 5e6, .down_bit_per_s = 20e6}});
  if (lab == nullptr) return;
  CHECK(lab->check(0, 1).expected_goodput_bit_per_s == Approx(20e6 * 1448 / 1514));
  const LabCheck check = lab->check(1, 0);
  CHECK(roughly(check.goodput_bit_per_s, 5e6 * 1448 / 1514));
}

TEST_CASE("Every algorithm gives the rehearsal's parameters in the lab", "[lab]") {
  const auto workers = GENERATE(2, 3, 4, 8);
  const auto lab = make_lab(ports(static_cast<std::size_t>(workers), 100e6, 0));
  if (lab == nullptr) return;
  for (const AlgorithmRow& row : algorithm_registry()) {
    if (!row.synchronous) continue;
    CAPTURE(row.name, workers);
    Scenario scenario = small_scenario(row.name, workers, "mlp:40-30-5");
    scenario.gradient_error = false;
    const Dataset& dataset = small_dataset(scenario);
    const Result real = run_real(scenario, dataset, {.lab = lab.get()}).value();
    CHECK(real.parameter_hash == rehearse(scenario, dataset).workers[0].parameter_hash);
  }
}

TEST_CASE("A run in the lab takes the time of its bytes and delays at least", "[lab]") {
  const double delay_s = GENERATE(0.0, 0.01);
  const auto lab = make_lab(ports(2, 10e6, delay_s));
  if (lab == nullptr) return;
  Scenario scenario = small_scenario("dsgd", 2, "mlp:300-100-10");
  scenario.gradient_error = false;
  const Result real = run_real(scenario, small_dataset(scenario), {.lab = lab.get()}).value();
  // Two dependent steps, less the bytes that the buckets of tbf let pass.
  const double least_s = 8 * (real.bytes_sent_by_worker[0] - 2 * 5120) / 10e6 + 2 * 2 * delay_s;
  REQUIRE(least_s > 0.05);
  CHECK(real.batch_time_s.mean > 0.9 * least_s);
  const auto& network = real.network;
  CHECK(std::count(network.begin(), network.end(),
                   std::pair<std::string, std::string>("interface", "eth0")) == 1);
  CHECK(std::count(network.begin(), network.end(),
                   std::pair<std::string, std::string>("lab_up_bit_per_s", "1e+07")) == 1);
}

TEST_CASE("A worker that dies in the lab is named", "[lab]") {
  const auto lab = make_lab(ports(3, 100e6, 0.002));
  if (lab == nullptr) return;
  const Scenario scenario = small_scenario("dsgd", 3);
  const StepHook hook = [](const Worker& worker) {
    if (worker.comm.rank() == 1) raise(SIGKILL);
  };
  CHECK_THROWS_WITH(
      run_real(scenario, small_dataset(scenario), {.timeout_s = 2, .lab = lab.get(), .hook = hook}),
      Catch::StartsWith("worker 1: ended by signal: Killed"));
}

TEST_CASE("Workers that cannot reach each other through the interface say so in time", "[lab]") {
  const auto lab = make_lab(ports(2, 100e6, 0));
  if (lab == nullptr) return;
  const ScratchFolder folder;
  std::string message;
  try {
    run_workers(2, 2, [&](int rank) -> std::string {
      lab->enter(rank);  // everyone's lo is its own
      connect({.rank = rank,
               .size = 2,
               .rendezvous = folder / "meeting",
               .interface = "lo",
               .timeout_s = 0.5,
               .agreement = {}});
      return {};
    });
  } catch (const std::exception& error) {
    message = error.what();
  }
  for (const char* rank : {"0", "1"})
    CHECK_THAT(message, Catch::Contains("worker " + std::string(rank) +
                                        ": cannot connect to the other workers through lo "
                                        "(127.0.0.1): worker "));
}

TEST_CASE("Making a lab leaves the caller in its own network", "[lab]") {
  const std::string before = network_of_this_thread();
  const auto lab = make_lab(ports(3, 0, 0.001));
  CHECK(network_of_this_thread() == before);
}

TEST_CASE("The switch ends with the lab, and with a process that is killed", "[lab]") {
  {
    const auto lab = make_lab(ports(2, 0, 0.001));
    if (lab == nullptr) return;
    CHECK(children_of(getpid()).size() == 1);
  }
  CHECK(children_of(getpid()).empty());

  std::array<int, 2> ready{};
  REQUIRE(pipe(ready.data()) == 0);
  const pid_t owner = fork();
  REQUIRE(owner >= 0);
  if (owner == 0) {
    const NetLab lab(ports(2, 0, 0.001));
    while (write(ready[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  const std::vector<pid_t> switches = children_of(owner);
  REQUIRE(switches.size() == 1);
  CHECK(runs(switches[0]));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  for (int i = 0; i < 1000 && runs(switches[0]); ++i) usleep(1000);
  CHECK_FALSE(runs(switches[0]));
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("Labs of one worker and negative rates are refused") {
  CHECK_THROWS_AS(NetLab(ports(1, 0, 0)), std::invalid_argument);
  CHECK_THROWS_AS(NetLab(ports(2, -1, 0)), std::invalid_argument);
  CHECK_THROWS_AS(NetLab(ports(2, 0, NAN)), std::invalid_argument);
}
