// `gradwire real` on this machine, and as one of a cluster's processes, against `gradwire run`.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "analysis/cli.h"
#include "tests/scratch.h"

#ifdef GRADWIRE_WITH_GLOO

namespace gradwire {

namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int status;
  std::string out;
  std::string err;
};

Outcome gradwire(const Words& command, const Words& more = {}) {
  Words words = command;
  for (const char* word : {"--dataset", "synthetic:20x3", "--model", "mlp:20-8-3"})
    words.emplace_back(word);
  words.insert(words.end(), more.begin(), more.end());
  std::ostringstream out, err;
  const int status = run_command_line(words, {.out = out, .err = err});
  return {status, out.str(), err.str()};
}

// What a launcher tells each of its processes.
struct Launcher {
  std::string name, rank, size, local_rank;
  std::vector<std::pair<std::string, std::string>> job;
};
const std::vector<Launcher> kLaunchers{
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     {{"PMIX_NAMESPACE", "12345/1"}}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     {{"SLURM_JOB_ID", "41"}, {"SLURM_STEP_ID", "0"}}},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", {{"TORCHELASTIC_RUN_ID", "none"}}}};

void set_rank(const Launcher& launcher, int rank, int size = 2) {
  const std::string text = std::to_string(rank);
  setenv(launcher.rank.c_str(), text.c_str(), 1);
  setenv(launcher.local_rank.c_str(), text.c_str(), 1);
  setenv(launcher.size.c_str(), std::to_string(size).c_str(), 1);
  for (const auto& [name, value] : launcher.job) setenv(name.c_str(), value.c_str(), 1);
}
void unset_rank(const Launcher& launcher) {
  for (const std::string* name : {&launcher.rank, &launcher.local_rank, &launcher.size})
    unsetenv(name->c_str());
  for (const auto& [name, value] : launcher.job) unsetenv(name.c_str());
}

// One rank of a cluster in a process of its own; leaves what it said on stderr in `said`.
pid_t start_rank(int rank, int size, const Words& words, const std::string& said) {
  const pid_t child = fork();
  if (child != 0) return child;
  set_rank(kLaunchers.back(), rank, size);
  const Outcome outcome = gradwire({"real"}, words);
  std::ofstream(said) << outcome.err;
  _exit(outcome.out.empty() || rank == 0 ? outcome.status : 99);
}

int exit_status(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("A real run reports the numbers of the simulated one, and how it was connected") {
  const Words same{"--workers", "2,3", "--algorithm", "dsgd", "rank-dad", "--json"};
  const Outcome real = gradwire({"real"}, same);
  const Outcome run = gradwire({"run", "--platform", "star-1g"}, same);
  REQUIRE(real.status == 0);
  REQUIRE(run.status == 0);
  const auto measured = nlohmann::json::parse(real.out);
  const auto predicted = nlohmann::json::parse(run.out);
  REQUIRE(measured["results"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& a = measured["results"][i];
    const auto& b = predicted["results"][i];
    for (const char* key : {"algorithm", "workers", "parameter_hash", "loss",
                            "bytes_sent_by_worker", "messages_by_worker", "effective_rank"})
      CHECK(a[key] == b[key]);
    CHECK(a["batch_time_s"]["samples"].size() == 3);
    CHECK(a["platform"] == "loopback");
  }
  CHECK(measured["context"]["network_model"]["transport"] == "Gloo, TCP");
  CHECK(measured["context"]["compute"]["mode"] == "measured");
}

TEST_CASE("Two processes of a cluster calibrate together: all but the first left after one part") {
  const ScratchFolder folder;
  const std::string file = folder / "calibration.json";
  std::array<pid_t, 2> ranks{};
  for (int rank = 0; rank < 2; ++rank) {
    pid_t& child = ranks[static_cast<std::size_t>(rank)];
    child = fork();
    REQUIRE(child >= 0);
    if (child > 0) continue;
    set_rank(kLaunchers.front(), rank);
    std::ostringstream out, err;
    _exit(run_command_line({"calibrate", "--rendezvous", folder / "meeting", "--output", file},
                           {.out = out, .err = err}));
  }
  for (const pid_t rank : ranks) CHECK(exit_status(rank) == 0);
  const auto calibration = nlohmann::json::parse(std::ifstream(file));
  CHECK(calibration["network"] == "cluster");
  CHECK_FALSE(calibration["parameters"]["one_machine"]);
  for (const auto& lane : calibration["samples"]["lanes"]) {
    CHECK(lane["short_burst_cpu_s"].size() == 3);
    CHECK(lane["long_burst_cpu_s"].size() == 3);
  }
  CHECK(std::filesystem::is_empty(folder / "meeting"));
}

TEST_CASE("With a bandwidth a real run is in a lab, or is refused with why", "[lab]") {
  const Outcome real = gradwire({"real"}, {"--bandwidth", "50Mbps", "--latency", "2ms", "--json"});
  if (real.status != 0) {
    CHECK(real.status == 3);
    CHECK_THAT(real.err, Catch::Contains("bandwidth: no network lab"));
    return;
  }
  const auto result = nlohmann::json::parse(real.out)["results"][0];
  CHECK(result["platform"] == "lab");
  CHECK(result["bandwidth_bit_per_s"] == 50e6);
  CHECK(result["latency_s"] == 0.002);
  CHECK(result["batch_time_s"]["min"] > 0.004);
}

TEST_CASE("Without root a rate or delay that nobody would keep is refused, loopback is not") {
  const auto status_as_nobody = [](const Words& words, const std::string& said) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (geteuid() == 0 && setuid(65534) != 0) _exit(98);
      const Outcome outcome = gradwire({"real"}, words);
      _exit(outcome.err.find(said) == std::string::npos ? 99 : outcome.status);
    }
    return exit_status(child);
  };
  CHECK(status_as_nobody({"--bandwidth", "50Mbps"}, "bandwidth: no network lab") == 3);
  CHECK(status_as_nobody({"--latency", "5ms"}, "run as root") == 3);
  CHECK(status_as_nobody({}, "") == 0);
}

TEST_CASE("On a cluster rank 0 alone reports, whichever launcher started it") {
  const Launcher& launcher = GENERATE(from_range(kLaunchers));
  const ScratchFolder folder;
  const std::string meeting = folder / "meeting";
  const Words words{"--rendezvous", meeting, "--json", "--workers", "2"};
  const pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    set_rank(launcher, 1);
    const Outcome outcome = gradwire({"real"}, words);
    _exit(outcome.out.empty() ? outcome.status : 99);
  }
  set_rank(launcher, 0);
  const Outcome outcome = gradwire({"real"}, words);
  unset_rank(launcher);
  CHECK(exit_status(other) == 0);
  REQUIRE(outcome.status == 0);
  const auto report = nlohmann::json::parse(outcome.out);
  CHECK(report["results"][0]["platform"] == "cluster");
  CHECK(report["context"]["network_model"]["launcher"] == launcher.name);
}

TEST_CASE("A rank that reports nothing needs no folder for the report") {
  const ScratchFolder folder;
  const Words same{"--rendezvous", folder / "meeting", "--workers", "2"};
  Words words = same;
  for (const char* key : {"--output", "--trace"})
    words.insert(words.end(), {key, std::string("/no/such/folder/on/this/host") + key});
  const pid_t other = start_rank(1, 2, words, folder / "said-1");
  REQUIRE(other > 0);
  words = same;
  for (const char* key : {"--output", "--trace"})
    words.insert(words.end(), {key, folder / ("file" + std::string(key))});
  const pid_t leader = start_rank(0, 2, words, folder / "said-0");
  REQUIRE(leader > 0);
  CHECK(exit_status(leader) == 0);
  CHECK(exit_status(other) == 0);
  CHECK(read_text(folder / "said-1").empty());
  CHECK_FALSE(read_text(folder / "file--trace").empty());
}

TEST_CASE("When a cluster's rank is killed or stopped the others end in time, without a report") {
  const int signal_number = GENERATE(SIGKILL, SIGSTOP);
  const ScratchFolder folder;
  const std::string output = folder / "report.json";
  const Words words{"--rendezvous", folder / "meeting", "--workers", "3",        "--timeout",
                    "1s",           "--batches",        "1000000",   "--output", output};
  std::vector<pid_t> ranks;
  std::vector<std::string> said;
  for (int rank = 0; rank < 3; ++rank) {
    said.push_back(folder / ("said-" + std::to_string(rank)));
    ranks.push_back(start_rank(rank, 3, words, said.back()));
    REQUIRE(ranks.back() > 0);
  }
  usleep(300'000);  // while they meet, or while they train
  kill(ranks[1], signal_number);
  for (const std::size_t rank : {0, 2}) {
    CHECK(exit_status(ranks[rank]) == 1);
    const std::string line = read_text(said[rank]);
    CHECK_THAT(line, Catch::StartsWith("gradwire: "));
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  }
  CHECK_THAT(read_text(said[0]) + read_text(said[2]), Catch::Contains("worker 1"));
  kill(ranks[1], SIGKILL);
  exit_status(ranks[1]);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK_FALSE(entry.path().filename().string().starts_with("report"));
}

TEST_CASE("A cluster's processes need a folder, one of their own number, and no lab") {
  const Launcher& torchrun = kLaunchers.back();
  set_rank(torchrun, 0);
  const Outcome no_folder = gradwire({"real"});
  CHECK(no_folder.status == 2);
  CHECK_THAT(no_folder.err, Catch::Contains("--rendezvous"));
  const Outcome shaped = gradwire({"real"}, {"--rendezvous", "x", "--bandwidth", "1Gbps"});
  CHECK(shaped.status == 2);
  const Outcome size = gradwire({"real"}, {"--rendezvous", "x", "--workers", "3"});
  CHECK(size.status == 3);
  CHECK_THAT(size.err, Catch::Contains("torchrun started 2 processes, not 3"));
  unset_rank(torchrun);
  CHECK(gradwire({"real"}, {"--rendezvous", "x"}).status == 2);
}

TEST_CASE("A real run draws its timeline, of one combination") {
  const ScratchFolder folder;
  const std::string trace = folder / "trace.json";
  const Words two{"--trace", trace, "--workers", "2,3"};
  CHECK(gradwire({"real"}, two).status == 2);
  CHECK(gradwire({"real"}, {"--trace", "/no/such/folder/file"}).status == 3);
  CHECK_FALSE(std::filesystem::exists(trace));
  REQUIRE(gradwire({"real"}, {"--trace", trace}).status == 0);
  std::set<std::pair<int, std::string>> drawn;
  const auto parsed = nlohmann::json::parse(read_text(trace));
  for (const auto& event : parsed["traceEvents"])
    if (event["ph"] == "X") drawn.emplace(event["pid"], event["name"]);
  for (int worker = 0; worker < 2; ++worker)
    for (const std::string name : {"forward", "backward", "optimizer", "batch 3"})
      CHECK(drawn.contains({worker, name}));
}

TEST_CASE("Bad input of a real run is refused in one line and with its status") {
  const auto refused = [](const Words& words, int status, const std::string& message) {
    const Outcome outcome = gradwire({"real"}, words);
    CHECK(outcome.status == status);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Catch::StartsWith("gradwire: ") && Catch::Contains(message));
  };
  refused({"--interface", "gradwire9"}, 3, "no interface gradwire9");
  refused({"--timeout", "1us"}, 3, "timeout");
  refused({"--timeout", "5"}, 3, "timeout");
  refused({"--optimizer", "adam", "--momentum", "0.5"}, 3, "momentum: optimizer adam has none");
  refused({"--algorithm", "sgd"}, 3, "unknown algorithm sgd");
  refused({"--output", "/no/such/folder/file"}, 3, "/no/such/folder");
  refused({"--platform", "star-1g"}, 2, "platform");
}

}  // namespace gradwire

#endif
