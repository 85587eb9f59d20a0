// `gradwire lab`: runs any program once per worker inside a network lab, with the variables that
// torchrun would set, so that other systems can be measured in the network that real runs have
// (tests/bench/compare_ddp.py).
#include <ostream>
#include <stdexcept>

#include "analysis/command_line.h"
#include "analysis/study.h"
#ifdef GRADWIRE_WITH_GLOO
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "algorithms/child_process.h"
#include "analysis/local_network.h"
#include "real/scheduling.h"
#include "real/workers.h"
#endif

namespace gradwire {

namespace {

#ifdef GRADWIRE_WITH_GLOO

constexpr const char* kPort = "29500";

[[noreturn]] void become_program(std::vector<std::string> words, int output) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(argv.front(), argv.data());
  const std::string complaint = words.front() + ": " + std::strerror(errno) + "\n";
  [[maybe_unused]] const ssize_t written = write(output, complaint.data(), complaint.size());
  _exit(127);
}

// What the program writes; throws with its last line if it fails.
std::string run_program(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid == 0) {
    die_with(parent);
    become_program(words, ends[1]);
  }
  close(ends[1]);
  std::string text;
  std::vector<char> buffer(1U << 16U);
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  while (text.ends_with('\n')) text.pop_back();
  throw std::runtime_error(words.front() + " failed: " + text.substr(text.rfind('\n') + 1));
}

std::string run_one(const NetLab& lab, int rank, int workers,
                    const std::vector<std::string>& words) {
  lab.enter(rank);
  stay_on_core_of(rank);
  schedule_this_thread(SCHED_BATCH);
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no threads here
  };
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(workers));
  set("MASTER_ADDR", NetLab::address(0));
  set("MASTER_PORT", kPort);
  set("GLOO_SOCKET_IFNAME", NetLab::kInterface);
  return run_program(words);
}

int run(const Arguments& arguments, const std::string& /*command_line*/, const Streams& streams) {
  if (arguments.positional().empty()) throw UsageError("lab: no program, e.g. lab -- ip address");
  Grid grid;
  arguments.apply_to(grid);
  const std::vector<Scenario> points = grid.points();
  if (points.size() != 1) throw UsageError("lab: one value each");
  Scenario s = points.front();
  if (!s.latency_s) s.latency_s = 0;
  if (s.workers < 2) throw std::invalid_argument("workers: a lab needs at least 2");
  LocalNetwork network;
  const NetLab* lab = network.of(s);
  if (lab == nullptr) throw std::runtime_error("no network lab: " + network.obstacle());
  if (const std::string complaint = network.complaint(); !complaint.empty())
    streams.err << "gradwire: warning: " << complaint << "\n";
  for (const std::string& text : run_workers(s.workers, 2, [&](int rank) {
         return run_one(*lab, rank, s.workers, arguments.positional());
       }))
    streams.out << text;
  return 0;
}

#else

int run(const Arguments& /*arguments*/, const std::string& /*command_line*/,
        const Streams& /*streams*/) {
  throw std::runtime_error("this gradwire was built without Gloo: it has no network lab");
}

#endif

}  // namespace

Command lab_command() {
  Command command{
      .name = "lab",
      .summary = "Runs a program once per worker in a network lab, as torchrun would (root).",
      .usage = "[OPTION...] -- PROGRAM [WORD...]",
      .examples =
          R"(  gradwire lab --workers 4 --bandwidth 100Mbps --latency 10ms -- python3 train.py
)",
      .flags = {},
      .run = run};
  for (const char* key : {"workers", "bandwidth", "latency"}) {
    Flag flag = field_flag(find_field(key));
    flag.group = "Lab";
    if (key == std::string("bandwidth")) flag.help = "of every worker's cable";
    if (key == std::string("latency")) flag.help = "of every worker's cable; a message crosses two";
    command.flags.push_back(std::move(flag));
  }
  return command;
}

}  // namespace gradwire
