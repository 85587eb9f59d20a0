// Real processes over loopback against the rehearsal in this one, and what becomes of runs whose
// workers die, hang, are missing or disagree.
#include "real/launch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "algorithms/collectives.h"
#include "tests/algorithms/training_runs.h"
#include "tests/real/processes.h"
#include "tests/scratch.h"

using namespace gradwire;
using Catch::Contains;

namespace {

namespace fs = std::filesystem;

Scenario scenario_of(const std::string& algorithm, int workers) {
  Scenario scenario = small_scenario(algorithm, workers, "mlp:40-30-5");
  scenario.gradient_error = false;
  return scenario;
}

Result run_here(const Scenario& scenario, const RealOptions& options = {}) {
  return run_real(scenario, small_dataset(scenario), options).value();
}

// The message of the exception; fails if there is none.
template <class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  FAIL("no exception");
  return {};
}

// Bytes and messages that a worker sends per batch according to its recording.
std::pair<double, double> sent_per_batch(const WorkerRecording& recording, std::int64_t batches) {
  double bytes = 0;
  double messages = 0;
  const auto count = [&](const Event& event) {
    if (event.kind != Event::Kind::kSend) return;
    bytes += static_cast<double>(event.value);
    messages += 1;
  };
  bool training = false;  // after the broadcast of the parameters
  for (const Event& event : recording.lanes[0].events) {
    if (training) count(event);
    training = training || event.kind == Event::Kind::kStep;
  }
  for (const Event& event : recording.lanes[1].events) count(event);
  const auto n = static_cast<double>(batches);
  return {bytes / n, messages / n};
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

// What a worker of a cluster got: its result's hash or its exception's message.
struct ClusterOutcome {
  std::optional<Result> result;
  std::string error;
};

// Some ranks of a cluster as threads of this process.
std::map<int, ClusterOutcome> run_cluster(const std::map<int, Scenario>& scenarios, int size,
                                          const std::string& folder, double timeout_s) {
  std::map<int, ClusterOutcome> outcomes;
  for (const auto& [rank, scenario] : scenarios) {
    outcomes[rank] = {};
    small_dataset(scenario);  // loaded before threads share it
  }
  std::vector<std::thread> threads;
  for (const auto& [rank, scenario] : scenarios)
    threads.emplace_back([&, rank = rank, &scenario = scenario] {
      try {
        outcomes.at(rank).result = run_real(
            scenario, small_dataset(scenario),
            {.timeout_s = timeout_s,
             .cluster = ClusterRank{.rank = rank, .size = size, .launcher = "test", .job = "7"},
             .rendezvous = folder});
      } catch (const std::exception& error) {
        outcomes.at(rank).error = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

}  // namespace

TEST_CASE("Every synchronous algorithm gives the rehearsal's numbers and traffic over TCP") {
  const int workers = GENERATE(1, 2, 3, 4);
  for (const AlgorithmRow& row : algorithm_registry()) {
    if (!row.synchronous) continue;
    CAPTURE(row.name, workers);
    const Scenario scenario = scenario_of(row.name, workers);
    const Rehearsal rehearsal = rehearse(scenario, small_dataset(scenario));
    Result expected;
    describe(rehearsal, expected);
    const Result real = run_here(scenario);
    CHECK(real.parameter_hash == expected.parameter_hash);
    CHECK(real.replicas_equal == expected.replicas_equal);
    CHECK(same_bits(real.loss, expected.loss));
    expected.metrics.erase("consensus_distance");  // nobody has all replicas
    REQUIRE(real.metrics.size() == expected.metrics.size());
    for (const auto& [name, series] : expected.metrics)
      CHECK(same_bits(real.metrics.at(name), series));
    for (std::size_t w = 0; w < rehearsal.workers.size(); ++w) {
      const auto [bytes, messages] =
          sent_per_batch(rehearsal.recording.workers[w], scenario.batches);
      CHECK(real.bytes_sent_by_worker[w] == bytes);
      CHECK(real.messages_sent_by_worker[w] == messages);
    }
  }
}

TEST_CASE("A real run keeps every batch's time and its parts") {
  Scenario scenario = scenario_of("dsgd", 2);
  scenario.batches = 5;
  scenario.evaluate_every = 5;
  const Result real = run_here(scenario);
  REQUIRE(real.batch_time_s.samples.size() == 5);
  for (std::size_t b = 0; b < 5; ++b) {
    CHECK(real.batch_time_s.samples[b] > 0);
    CHECK(real.compute_time_s.samples[b] > 0);
    CHECK(real.compute_time_s.samples[b] + real.reduction_time_s.samples[b] +
              real.exposed_communication_time_s.samples[b] <=
          real.batch_time_s.samples[b] * (1 + 1e-9));
  }
  CHECK(real.setup_time_s > 0);
  REQUIRE(real.evaluations.size() == 1);
  CHECK(real.evaluations[0].time_s > 0);
}

TEST_CASE("A real run keeps every worker's timeline, both lanes and all batches of it") {
  Timeline timeline;
  run_here(scenario_of("dsgd", 3), {.timeline = &timeline});
  REQUIRE(timeline.size() == 3);
  for (const auto& spans : timeline) {
    std::set<std::int64_t> batches;
    std::set<int> lanes;
    std::int64_t sent = 0;
    for (const Span& span : spans) {
      batches.insert(span.step);
      lanes.insert(span.lane);
      if (span.kind == Span::Kind::kSend && span.step > 0) ++sent;
      CHECK(span.end_s >= span.start_s);
    }
    CHECK(batches == std::set<std::int64_t>{0, 1, 2, 3});
    CHECK(lanes == std::set<int>{0, 1});
    CHECK(sent == 3 * 4);  // a ring of three, one bucket a batch
  }
}

TEST_CASE("Asking for the gradient's error gives a warning and changes nothing else") {
  Scenario scenario = scenario_of("dsgd", 2);
  const Result without = run_here(scenario);
  CHECK(without.warnings.empty());
  scenario.gradient_error = true;
  const Result with = run_here(scenario);
  REQUIRE(with.warnings.size() == 1);
  CHECK_THAT(with.warnings[0], Contains("gradient-error"));
  CHECK(with.gradient_relative_error.empty());
  CHECK(with.parameter_hash == without.parameter_hash);
}

TEST_CASE("A run leaves no folder behind") {
  const auto folders = [] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(fs::temp_directory_path()))
      count += entry.path().filename().string().starts_with("gradwire-") ? 1 : 0;
    return count;
  };
  ScratchFolder folder;
  REQUIRE(setenv("TMPDIR", folder.path().string().c_str(), 1) == 0);
  run_here(scenario_of("dsgd", 2));
  CHECK(folders() == 0);
  RealOptions killing;
  killing.timeout_s = 2;
  killing.hook = [](const Worker&) { raise(SIGKILL); };
  CHECK_THROWS(run_here(scenario_of("dsgd", 2), killing));
  CHECK(folders() == 0);
  REQUIRE(unsetenv("TMPDIR") == 0);
}

TEST_CASE("An interrupt or a kill during the rendezvous leaves no folder and no worker behind") {
  const int signal_number = GENERATE(SIGINT, SIGKILL);
  const ScratchFolder folder;
  const std::string pid_file = folder / "pid";
  const pid_t starter = fork();
  REQUIRE(starter >= 0);
  if (starter == 0) {
    setenv("TMPDIR", folder.path().c_str(), 1);
    signal(SIGINT, SIG_DFL);
    run_here(scenario_of("dsgd", 2), {.prepare = [&](int rank) {
               if (rank == 0) return;
               std::ofstream(pid_file) << getpid() << std::endl;
               pause();
             }});
    _exit(0);
  }
  const auto meeting = [&]() -> std::optional<fs::path> {
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (entry.is_directory() && fs::exists(entry.path() / "hello-0")) return entry.path();
    return std::nullopt;
  };
  pid_t worker = 0;
  while (worker == 0 || !meeting()) {
    std::ifstream(pid_file) >> worker;
    usleep(1000);
  }
  const fs::path left = *meeting();
  kill(starter, signal_number);
  waitpid(starter, nullptr, 0);
  for (int i = 0; i < 5000 && fs::exists(left); ++i) usleep(1000);
  CHECK_FALSE(fs::exists(left));
  CHECK_FALSE(runs(worker));
}

TEST_CASE("A worker that leaves requests behind is named") {
  CHECK_THROWS_WITH(run_on_mesh(2, {}, {},
                                [](const Mesh& mesh) -> std::string {
                                  std::vector<std::byte> buffer(8);
                                  if (mesh.comm->rank() == 1)
                                    static_cast<void>(mesh.comm->irecv(0, buffer));
                                  return {};
                                }),
                    Contains("worker 1 did not wait for its receive from worker 0 of 8 bytes"));
}

TEST_CASE("A worker that is killed during training is named, and so is what the others saw") {
  RealOptions options;
  options.timeout_s = 5;
  options.hook = [](const Worker& worker) {
    if (worker.comm.rank() == 1 && worker.step == 1) raise(SIGKILL);
  };
  const std::string message = message_of([&] { run_here(scenario_of("dsgd", 3), options); });
  CHECK_THAT(message, Catch::StartsWith("worker 1: ended by signal: Killed"));
  CHECK_THAT(message, Contains("lost worker 1"));
}

TEST_CASE("A worker that dies in the middle of a collective is named by those that need it") {
  RealOptions options;
  options.timeout_s = 5;
  const std::string message = message_of([&] {
    run_on_mesh(4, {}, options, [](const Mesh& mesh) -> std::string {
      std::vector<Scalar> values(100'000);
      if (mesh.comm->rank() == 1) {  // its first step, and no more
        const auto chunk = bytes_of(std::span<const Scalar>(values).first(25'000));
        mesh.comm->send(2, chunk);
        raise(SIGKILL);
      }
      ring_all_reduce(*mesh.comm, values, Wire::kFp32);
      return {};
    });
  });
  CHECK_THAT(message, Catch::StartsWith("worker 1: ended by signal: Killed"));
  CHECK_THAT(message, Contains("worker 0: lost worker 1"));
}

TEST_CASE("A worker that dies after the last collective is named, and there is no result") {
  RealOptions options;
  options.timeout_s = 5;
  options.hook = [](const Worker& worker) {
    if (worker.comm.rank() == 1 && worker.step == 2) raise(SIGKILL);
  };
  const std::string message = message_of([&] { run_here(scenario_of("dsgd", 3), options); });
  CHECK_THAT(message, Catch::StartsWith("worker 1: ended by signal: Killed"));
  CHECK_THAT(message, Contains("worker 0: lost worker 1"));
}

TEST_CASE("A worker that dies before it meets the others is named") {
  RealOptions options;
  options.timeout_s = 1;
  options.prepare = [](int rank) {
    if (rank == 1) raise(SIGKILL);
  };
  const std::string message = message_of([&] { run_here(scenario_of("dsgd", 3), options); });
  CHECK_THAT(message, Catch::StartsWith("worker 1: ended by signal: Killed"));
}

TEST_CASE("The complaint of a worker that aborts is quoted") {
  RealOptions options;
  options.timeout_s = 2;
  options.prepare = [](int rank) {
    if (rank != 0) return;
    fputs("first line\nthe last line\n", stderr);
    abort();
  };
  CHECK_THAT(message_of([&] { run_here(scenario_of("dsgd", 2), options); }),
             Catch::StartsWith("worker 0: ended by signal: Aborted (the last line)"));
}

TEST_CASE("A worker's exception is reported with its message") {
  RealOptions options;
  options.timeout_s = 2;
  options.hook = [](const Worker& worker) {
    if (worker.comm.rank() == 2) throw std::runtime_error("disk full");
  };
  CHECK_THAT(message_of([&] { run_here(scenario_of("dsgd", 3), options); }),
             Contains("worker 2: disk full"));
}

TEST_CASE("A worker that stands still ends the run within the timeout and is killed") {
  ScratchFolder folder;
  const std::string pid_file = folder / "pid";
  RealOptions options;
  options.timeout_s = 0.5;
  options.hook = [&](const Worker& worker) {
    if (worker.comm.rank() != 1) return;
    std::ofstream(pid_file) << getpid();
    raise(SIGSTOP);
  };
  const std::string message = message_of([&] { run_here(scenario_of("dsgd", 2), options); });
  CHECK_THAT(message, Contains("worker 0: worker 1 did not") && Contains("within 0.5 s"));
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  REQUIRE(pid > 0);
  CHECK(kill(pid, 0) == -1);
}

TEST_CASE("Workers that a cluster's launcher started meet in a folder and leave it empty") {
  ScratchFolder folder;
  const Scenario scenario = scenario_of("rank-dad", 3);
  auto outcomes =
      run_cluster({{0, scenario}, {1, scenario}, {2, scenario}}, 3, folder.path().string(), 20);
  for (const auto& [rank, outcome] : outcomes) CHECK(outcome.error.empty());
  REQUIRE(outcomes[0].result);
  CHECK_FALSE(outcomes[1].result);
  CHECK_FALSE(outcomes[2].result);
  const Rehearsal rehearsal = rehearse(scenario, small_dataset(scenario));
  CHECK(outcomes[0].result->parameter_hash == rehearsal.workers[0].parameter_hash);
  CHECK(outcomes[0].result->replicas_equal);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("A rank that never comes is named by all the others") {
  ScratchFolder folder;
  const Scenario scenario = scenario_of("dsgd", 4);
  auto outcomes = run_cluster({{0, scenario}, {2, scenario}}, 4, folder.path().string(), 0.5);
  for (const int rank : {0, 2})
    CHECK_THAT(outcomes[rank].error,
               Catch::StartsWith("worker 1, worker 3 did not come within 0.5 s"));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("Workers with different scenarios are told the first difference before any message") {
  ScratchFolder folder;
  const Scenario scenario = scenario_of("dsgd", 2);
  Scenario other = scenario;
  other.batch_size = 5;
  auto outcomes = run_cluster({{0, scenario}, {1, other}}, 2, folder.path().string(), 10);
  CHECK(outcomes[0].error ==
        "worker 1 runs something else: batch-size is 5 there and 4 on worker 0");
  CHECK(outcomes[1].error ==
        "worker 0 runs something else: batch-size is 4 there and 5 on worker 1");
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("Whatever changes a run's numbers must be the same on all workers") {
  const std::vector<std::pair<std::string, std::function<void(Scenario&)>>> changes{
      {"algorithm", [](Scenario& s) { s.algorithm = parse_algorithm_spec("dsgd:exchange=tree"); }},
      {"activation", [](Scenario& s) { s.model.activation = "relu"; }},
      {"bias", [](Scenario& s) { s.model.bias = false; }},
      {"fold", [](Scenario& s) { s.fold = {.index = 1, .count = 2}; }},
      {"split", [](Scenario& s) { s.split = DataSplit::kByClass; }},
      {"optimizer", [](Scenario& s) { s.optimizer.name = "adam"; }},
      {"learning-rate", [](Scenario& s) { s.optimizer.learning_rate = 0.2; }},
      {"batches", [](Scenario& s) { s.batches = 4; }},
      {"evaluate-every", [](Scenario& s) { s.evaluate_every = 1; }},
      {"seed", [](Scenario& s) { s.seed = 2; }}};
  for (const auto& [key, change] : changes) {
    const ScratchFolder folder;
    const Scenario scenario = scenario_of("dsgd", 2);
    Scenario other = scenario;
    change(other);
    auto outcomes = run_cluster({{0, scenario}, {1, other}}, 2, folder.path().string(), 10);
    CHECK_THAT(outcomes[0].error,
               Catch::StartsWith("worker 1 runs something else: " + key + " is "));
    CHECK_THAT(outcomes[1].error,
               Catch::StartsWith("worker 0 runs something else: " + key + " is "));
  }
}

TEST_CASE("A folder that an earlier run has left full is refused") {
  ScratchFolder folder;
  fs::create_directories(folder / "gradwire-7");
  std::ofstream(folder / "gradwire-7/hello-0") << "left behind";
  const Scenario scenario = scenario_of("dsgd", 2);
  auto outcomes = run_cluster({{0, scenario}}, 2, folder.path().string(), 10);
  CHECK_THAT(outcomes[0].error, Contains("already has an entry of worker 0"));
  CHECK(fs::exists(folder / "gradwire-7/hello-0"));
}

TEST_CASE("A cluster's size must be the scenario's, and needs a folder") {
  const Scenario scenario = scenario_of("dsgd", 3);
  CHECK_THROWS_WITH(
      run_here(scenario, {.cluster = ClusterRank{.rank = 0, .size = 2, .launcher = "srun"}}),
      "workers: srun started 2 processes, not 3");
  CHECK_THROWS_WITH(
      run_here(scenario, {.cluster = ClusterRank{.rank = 0, .size = 3, .launcher = "srun"}}),
      Catch::StartsWith("rendezvous: "));
}

TEST_CASE("An interface that does not exist is refused with the names of those that do") {
  RealOptions options;
  options.interface = "gradwire9";
  CHECK_THROWS_AS(run_here(scenario_of("dsgd", 2), options), std::invalid_argument);
  CHECK_THAT(message_of([&] { run_here(scenario_of("dsgd", 2), options); }),
             Contains("interface: no interface gradwire9") && Contains("lo"));
}

TEST_CASE("Bad scenarios are refused before any process starts") {
  Scenario scenario = scenario_of("dsgd", 2);
  scenario.algorithm.name = "sgd";
  CHECK_THROWS_AS(run_here(scenario), std::invalid_argument);
  CHECK_THROWS_AS(run_here(scenario_of("dsgd", 0)), std::invalid_argument);
}

TEST_CASE("More workers than one host has ports for are refused before they start") {
  CHECK_THROWS_AS(run_on_mesh(300, {}, {}, [](const Mesh&) { return std::string(); }),
                  std::invalid_argument);
  CHECK_THAT(
      message_of([] { run_on_mesh(300, {}, {}, [](const Mesh&) { return std::string(); }); }),
      Catch::StartsWith("workers: 300 on one host need a port for each end of each pair, 89700;"));
}

TEST_CASE("The rank comes from the variables of mpirun, srun or torchrun") {
  CHECK_FALSE(find_cluster_rank(environment({{"PATH", "/bin"}})));
  const auto mpirun = find_cluster_rank(environment({{"OMPI_COMM_WORLD_RANK", "5"},
                                                     {"OMPI_COMM_WORLD_SIZE", "8"},
                                                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                                     {"PMIX_NAMESPACE", "a/b"},
                                                     {"SLURM_PROCID", "0"}}));
  REQUIRE(mpirun);
  CHECK(mpirun->rank == 5);
  CHECK(mpirun->size == 8);
  CHECK(mpirun->local_rank == 1);
  CHECK(mpirun->launcher == "mpirun");
  CHECK(mpirun->job == "a-b");
  const auto srun = find_cluster_rank(environment({{"SLURM_PROCID", "2"},
                                                   {"SLURM_STEP_NUM_TASKS", "3"},
                                                   {"SLURM_LOCALID", "0"},
                                                   {"SLURM_JOB_ID", "41"},
                                                   {"SLURM_STEP_ID", "6"}}));
  REQUIRE(srun);
  CHECK(srun->rank == 2);
  CHECK(srun->job == "41.6");
  const auto torchrun =
      find_cluster_rank(environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}));
  REQUIRE(torchrun);
  CHECK(torchrun->launcher == "torchrun");
  CHECK(torchrun->job.empty());
}

TEST_CASE("Workers of a torchrun that srun or mpirun started on each host have torchrun's ranks") {
  for (const auto& [rank, size] : {std::pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
                                   std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")}) {
    const auto found = find_cluster_rank(environment({{rank, "1"},
                                                      {size, "2"},
                                                      {"SLURM_LOCALID", "0"},
                                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                      {"TORCHELASTIC_RUN_ID", "none"},
                                                      {"RANK", "6"},
                                                      {"WORLD_SIZE", "8"},
                                                      {"LOCAL_RANK", "2"}}));
    REQUIRE(found);
    CHECK(found->launcher == "torchrun");
    CHECK(found->rank == 6);
    CHECK(found->size == 8);
  }
}

TEST_CASE("A batch script of Slurm's, which srun has not started, is no rank of a cluster") {
  CHECK_FALSE(find_cluster_rank(environment({{"SLURM_JOB_ID", "41"},
                                             {"SLURM_NTASKS", "4"},
                                             {"SLURM_PROCID", "0"},
                                             {"SLURM_LOCALID", "0"}})));
}

TEST_CASE("Variables that are missing or make no sense are named") {
  CHECK_THROWS_WITH(find_cluster_rank(environment({{"RANK", "0"}})),
                    Contains("WORLD_SIZE is not set"));
  CHECK_THROWS_WITH(
      find_cluster_rank(environment({{"RANK", "two"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}})),
      Contains("RANK=two"));
  CHECK_THROWS_WITH(
      find_cluster_rank(environment({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}})),
      "RANK=4 is not below WORLD_SIZE=4");
}
