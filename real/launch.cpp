#include "real/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "algorithms/memory.h"
#include "algorithms/serial.h"
#include "real/descriptor.h"
#include "real/interface.h"
#include "real/scheduling.h"
#include "real/workers.h"

namespace gradwire {

namespace {

// What one worker reports to rank 0.
struct WorkerReport {
  WorkerOutcome outcome;
  std::vector<Account> steps;
  std::vector<Span> spans;
  std::string interface;
  bool batch_scheduling = false;
};

std::string pack(const WorkerReport& report) {
  ByteWriter out;
  out.put_array(report.outcome.loss);
  out.put(report.outcome.metrics.size());
  for (const auto& [name, series] : report.outcome.metrics) {
    out.put_string(name);
    out.put_array(series);
  }
  out.put_array(report.outcome.evaluations);
  out.put(report.outcome.parameter_hash);
  out.put(report.outcome.memory);
  out.put_array(report.steps);
  out.put_array(report.spans);
  out.put_string(report.interface);
  out.put(report.batch_scheduling);
  return out.take();
}

WorkerReport unpack(const std::string& bytes) {
  ByteReader in(bytes);
  WorkerReport report;
  report.outcome.loss = in.get_array<double>();
  for (auto n = in.get<std::size_t>(); n > 0; --n) {
    std::string name = in.get_string();
    report.outcome.metrics[std::move(name)] = in.get_array<double>();
  }
  report.outcome.evaluations = in.get_array<EvaluationPoint>();
  report.outcome.parameter_hash = in.get<std::uint64_t>();
  report.outcome.memory = in.get<WorkerMemory>();
  report.steps = in.get_array<Account>();
  report.spans = in.get_array<Span>();
  report.interface = in.get_string();
  report.batch_scheduling = in.get<bool>();
  return report;
}

// Everyone's text on rank 0, in rank order; empty elsewhere.  Nobody returns before rank 0 has all,
// so that no connection closes under a text still on its way.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& mine) {
  std::uint64_t size = mine.size();
  const auto size_bytes = [&] { return writable_bytes_of(std::span(&size, 1)); };
  if (comm.rank() != 0) {
    comm.send(0, size_bytes());
    comm.send(0, bytes_of(std::span(mine)));
    comm.recv(0, {});
    return {};
  }
  std::vector<std::string> all{mine};
  for (int rank = 1; rank < comm.size(); ++rank) {
    comm.recv(rank, size_bytes());
    all.emplace_back(size, '\0');
    comm.recv(rank, writable_bytes_of(std::span(all.back())));
  }
  for (int rank = 1; rank < comm.size(); ++rank) comm.send(rank, {});
  return all;
}

// One worker from beginning to end.  Rank 0 returns what the body returned on all workers.
std::vector<std::string> run_worker(const MeshOptions& options, const WorkerBody& body) {
  signal(SIGPIPE, SIG_IGN);  // a closed connection is an error of the write
  schedule_this_thread(SCHED_BATCH);
  const Mesh mesh = connect(options);
  const std::string result = body(mesh);
  mesh.comm->require_idle();
  return gather_texts(*mesh.comm, result);
}

std::string exactly(double value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << value;
  return text.str();
}

// Identifies this build: replicas are bit-equal only where the same code computes them.
std::string program_fingerprint() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a over 64-bit words
  std::array<std::uint64_t, 8192> words{};
  while (file) {
    words.fill(0);
    file.read(reinterpret_cast<char*>(words.data()), sizeof(words));  // NOLINT(*-reinterpret-cast)
    for (const std::uint64_t word : words) hash = (hash ^ word) * 1099511628211ULL;
  }
  std::ostringstream text;
  text << "build " << std::hex << hash;
  return text.str();
}

// What workers must have in common; the keys are those of the command line.
std::vector<std::pair<std::string, std::string>> agreement(const Scenario& s,
                                                           const Dataset& dataset) {
  return {{"algorithm", s.algorithm.text()},
          {"model", s.model.name},
          {"activation", s.model.activation},
          {"bias", s.model.bias ? "on" : "off"},
          {"dataset", s.dataset},
          {"fold", std::to_string(s.fold.index) + "/" + std::to_string(s.fold.count)},
          {"split", s.split == DataSplit::kRandom ? "random" : "by-class"},
          {"the data set's number of examples", std::to_string(dataset.train.labels.size())},
          {"optimizer", s.optimizer.name},
          {"learning-rate", exactly(s.optimizer.learning_rate)},
          {"momentum", exactly(s.optimizer.momentum)},
          {"batch-size", std::to_string(s.batch_size)},
          {"batches", std::to_string(s.batches)},
          {"seed", std::to_string(s.seed)},
          {"evaluate-every", std::to_string(s.evaluate_every)},
          {"the program", program_fingerprint()}};
}

// A fresh folder, gone with its contents at the end: removed by a process that outlives this one
// and its workers, also if a signal ends them.  They hold the pipe whose end it waits for.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "gradwire-XXXXXX").string()) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    const Descriptor guards_end(ends[0], "pipe2");
    ours_ = Descriptor(ends[1], "pipe2");
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);  // no signal between the folder and its guard
    const bool made = mkdtemp(path_.data()) != nullptr;
    guard_ = made ? fork() : -1;
    if (guard_ == 0) be_guard(guards_end.get());
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (guard_ < 0) {
      rmdir(path_.c_str());
      throw std::runtime_error("cannot make " + path_);
    }
  }
  ~TemporaryFolder() {
    ours_ = {};
    while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void be_guard(int end) {
    setsid();  // out of reach of the terminal, all signals still blocked
    ours_ = {};
    char byte = 0;
    while (read(end, &byte, 1) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    _exit(0);
  }

  std::string path_;
  Descriptor ours_;
  pid_t guard_ = -1;
};

// Gloo listens on a port for each end of each pair until it is connected.
void check_ports(int workers) {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  double first = 0, last = 0;
  if (!(file >> first >> last)) return;
  if (1.0 * workers * (workers - 1) > last - first + 1)
    throw std::invalid_argument("workers: " + std::to_string(workers) +
                                " on one host need a port for each end of each pair, " +
                                std::to_string(static_cast<long>(workers) * (workers - 1)) +
                                "; there are " + std::to_string(std::lround(last - first + 1)) +
                                " (net.ipv4.ip_local_port_range)");
}

std::vector<std::string> run_here(const MeshOptions& common, const RealOptions& options,
                                  const WorkerBody& body) {
  constexpr double kGrace_s = 2;
  if (options.lab == nullptr) check_ports(common.size);
  const TemporaryFolder folder;
  const auto worker = [&](int rank) {
    MeshOptions mesh = common;
    mesh.rank = rank;
    mesh.rendezvous = folder.path();
    if (options.prepare) options.prepare(rank);
    if (options.lab != nullptr) {
      options.lab->enter(rank);
      stay_on_core_of(rank);
      mesh.interface = NetLab::kInterface;
      mesh.messages_first = true;
    }
    ByteWriter out;
    out.put_strings(run_worker(mesh, body));
    return out.take();
  };
  const std::string reports =
      run_workers(common.size, std::min(kGrace_s, options.timeout_s), worker).front();
  return ByteReader(reports).get_strings();
}

std::vector<std::string> run_on_cluster(const MeshOptions& common, const RealOptions& options,
                                        const WorkerBody& body) {
  const ClusterRank& cluster = *options.cluster;
  if (cluster.size != common.size)
    throw std::invalid_argument("workers: " + cluster.launcher + " started " +
                                std::to_string(cluster.size) + " processes, not " +
                                std::to_string(common.size));
  if (options.rendezvous.empty())
    throw std::invalid_argument("rendezvous: workers that " + cluster.launcher +
                                " started need a folder that all hosts see");
  MeshOptions mesh = common;
  mesh.rank = cluster.rank;
  mesh.rendezvous = options.rendezvous;
  if (!cluster.job.empty()) mesh.rendezvous += "/gradwire-" + cluster.job;
  return run_worker(mesh, body);
}

std::string scheduling_text(bool batch, bool lab) {
  if (!batch) return "default";
  return lab ? "SCHED_RR for messages, SCHED_BATCH for mathematics" : "SCHED_BATCH";
}

Result make_result(const Scenario& scenario, const std::vector<std::string>& reports,
                   const RealOptions& options) {
  Rehearsal rehearsal;
  std::vector<std::vector<Account>> steps;
  bool batch_scheduling = true;
  std::string interface;
  for (const std::string& bytes : reports) {
    WorkerReport report = unpack(bytes);
    rehearsal.workers.push_back(std::move(report.outcome));
    steps.push_back(std::move(report.steps));
    if (options.timeline != nullptr) options.timeline->push_back(std::move(report.spans));
    batch_scheduling = batch_scheduling && report.batch_scheduling;
    if (interface.empty()) interface = report.interface;
  }
  Result result;
  result.scenario = scenario;
  describe(rehearsal, result);
  describe_times(steps, result);
  result.network = {{"transport", "Gloo, TCP"},
                    {"interface", interface.empty() ? "none" : interface},
                    {"launcher", options.cluster ? options.cluster->launcher : "fork"},
                    {"scheduling", scheduling_text(batch_scheduling, options.lab != nullptr)},
                    {"timeout_s", exactly(options.timeout_s)}};
  if (options.lab != nullptr)
    for (auto& constant : options.lab->constants()) result.network.push_back(std::move(constant));
  if (!batch_scheduling)
    result.warnings.emplace_back(
        "SCHED_BATCH was refused: small messages take up to a timer tick longer");
  if (scenario.gradient_error)
    result.warnings.emplace_back("gradient-error is computed in simulation only");
  return result;
}

int parse_number(const Environment& environment, const std::string& name, int least) {
  const std::optional<std::string> text = environment(name);
  if (!text) throw std::invalid_argument(name + " is not set, though the launcher's others are");
  int number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end || number < least)
    throw std::invalid_argument(name + "=" + *text + " is no number from " + std::to_string(least) +
                                " on");
  return number;
}

}  // namespace

std::optional<ClusterRank> find_cluster_rank(const Environment& environment) {
  struct Launcher {
    const char *name, *mark, *rank, *size, *local_rank;
    std::vector<std::string> job;  // variables that together name the run
  };
  const std::vector<std::string> elastic{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"};
  // The innermost first: srun or mpirun may have started torchrun, srun mpirun.  A batch script of
  // Slurm's has a rank, though srun has not started it, but no step.
  const std::array<Launcher, 4> launchers{
      {{"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK", elastic},
       {"mpirun",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        {"PMIX_NAMESPACE"}},
       {"srun",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_LOCALID",
        {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
       {"torchrun", "RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", elastic}}};
  for (const Launcher& launcher : launchers) {
    if (!environment(launcher.mark)) continue;
    ClusterRank found{.rank = parse_number(environment, launcher.rank, 0),
                      .size = parse_number(environment, launcher.size, 1),
                      .local_rank = parse_number(environment, launcher.local_rank, 0),
                      .launcher = launcher.name,
                      .job = ""};
    if (found.rank >= found.size)
      throw std::invalid_argument(std::string(launcher.rank) + "=" + std::to_string(found.rank) +
                                  " is not below " + launcher.size + "=" +
                                  std::to_string(found.size));
    for (const std::string& variable : launcher.job)
      if (const auto value = environment(variable))
        found.job += (found.job.empty() ? "" : ".") + *value;
    std::replace(found.job.begin(), found.job.end(), '/', '-');
    return found;
  }
  return std::nullopt;
}

std::optional<ClusterRank> find_cluster_rank() {
  return find_cluster_rank([](const std::string& name) -> std::optional<std::string> {
    const char* value = getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

std::vector<std::string> run_on_mesh(
    int workers, const std::vector<std::pair<std::string, std::string>>& agreement,
    const RealOptions& options, const WorkerBody& body) {
  const MeshOptions mesh{.rank = 0,
                         .size = workers,
                         .rendezvous = "",
                         .interface = options.interface,
                         .timeout_s = options.timeout_s,
                         .agreement = agreement};
  return options.cluster ? run_on_cluster(mesh, options, body) : run_here(mesh, options, body);
}

std::optional<Result> run_real(const Scenario& scenario, const Dataset& dataset,
                               const RealOptions& options) {
  if (scenario.workers < 1) throw std::invalid_argument("workers must be at least 1");
  make_algorithm(
      scenario.algorithm);  // bad options and models fail here, before any process starts
  make_optimizer(scenario.optimizer);
  make_model(scenario.model, dataset.shape, scenario.seed);
  const BatchSource enough(dataset, scenario.batch_size, 0, scenario.workers, scenario.seed);
  if (!options.interface.empty()) find_interface(options.interface);
  Scenario trained = scenario;
  trained.gradient_error = false;  // would need every worker's gradient in one place
  const std::vector<std::string> reports =
      run_on_mesh(scenario.workers, agreement(scenario, dataset), options, [&](const Mesh& mesh) {
        const KeptPages pages;
        WorkerReport report;
        if (options.timeline != nullptr) mesh.comm->trace_to(&report.spans);
        report.outcome = train(*mesh.comm, trained, dataset, options.hook, nullptr, options.start);
        mesh.comm->trace_to(nullptr);
        report.steps = mesh.comm->steps();
        report.interface = mesh.interface;
        report.batch_scheduling = sched_getscheduler(0) == SCHED_BATCH;
        return pack(report);
      });
  if (reports.empty()) return std::nullopt;
  return make_result(scenario, reports, options);
}

}  // namespace gradwire
