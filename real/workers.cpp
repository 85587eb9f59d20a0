#include "real/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "algorithms/child_process.h"
#include "real/descriptor.h"

namespace gradwire {

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail_with_errno(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) _exit(1);
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int fd) {
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(lseek(fd, 0, SEEK_END), 0)), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno != EINTR) fail_with_errno("pread");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return bytes;
}

// The first byte of what a worker leaves.
constexpr char kResult = 'R', kError = 'E';

struct WorkerProcess {
  Descriptor result, output;  // anonymous memory in the form of files
  pid_t pid = -1;
  int exit_fd = -1;  // readable when the process has ended
  int status = 0;
  bool ended = false;
};

[[noreturn]] void be_worker(const WorkerProcess& self, int rank, pid_t parent,
                            const std::function<std::string(int)>& body) {
  become_child(parent, self.output.get());
  std::string left;
  try {
    left = kResult + body(rank);
  } catch (const std::exception& error) {
    left = kError + std::string(error.what());
  }
  write_all(self.result.get(), left);
  _exit(0);  // neither the parent's buffered output nor its destructors belong to this process
}

// The processes; kills and reaps those that still run when it goes.
class Workers {
 public:
  Workers() = default;
  ~Workers() { kill_and_reap(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void start(const std::function<std::string(int)>& body) {
    const int rank = static_cast<int>(all_.size());
    const pid_t parent = getpid();
    WorkerProcess worker{Descriptor(memfd_create("gradwire", MFD_CLOEXEC), "memfd_create"),
                         Descriptor(memfd_create("gradwire", MFD_CLOEXEC), "memfd_create")};
    worker.pid = fork();
    if (worker.pid < 0) fail_with_errno("fork");
    if (worker.pid == 0) be_worker(worker, rank, parent, body);
    all_.push_back(std::move(worker));
    all_.back().exit_fd = static_cast<int>(syscall(SYS_pidfd_open, all_.back().pid, 0));
    if (all_.back().exit_fd < 0) fail_with_errno("pidfd_open");
  }

  // Waits until all have ended, or some for `grace_s` after the first failure.
  void wait(double grace_s) {
    Clock::time_point deadline = Clock::time_point::max();
    for (;;) {
      std::vector<pollfd> running;
      for (const WorkerProcess& w : all_)
        if (!w.ended) running.push_back({w.exit_fd, POLLIN, 0});
      if (running.empty()) return;
      int pause_ms = -1;
      if (deadline != Clock::time_point::max()) {
        const std::chrono::duration<double, std::milli> left = deadline - Clock::now();
        if (left.count() <= 0) return;
        pause_ms = static_cast<int>(std::ceil(left.count()));
      }
      poll(running.data(), running.size(), pause_ms);
      for (std::size_t rank = 0; rank < all_.size(); ++rank) {
        WorkerProcess& w = all_[rank];
        if (w.ended || waitpid(w.pid, &w.status, WNOHANG) != w.pid) continue;
        w.ended = true;
        if (!failed(w)) continue;
        failed_.push_back(rank);
        if (failed_.size() == 1)
          deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(grace_s));
      }
    }
  }

  std::vector<std::string> results() const {
    std::vector<std::string> bytes;
    for (const WorkerProcess& w : all_) bytes.push_back(read_all(w.result.get()).substr(1));
    return bytes;
  }

  // Everything that went wrong, those that died first; empty if nothing did.
  std::string complaint() const {
    constexpr std::size_t kQuoted = 8;
    std::vector<std::size_t> order = failed_;
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t rank) { return WIFSIGNALED(all_[rank].status); });
    std::string text;
    for (std::size_t i = 0; i < std::min(order.size(), kQuoted); ++i)
      text += (i == 0 ? "worker " : "; worker ") + std::to_string(order[i]) + ": " +
              reason(all_[order[i]]);
    if (order.size() > kQuoted)
      text += "; and " + std::to_string(order.size() - kQuoted) + " more failed";
    return text;
  }

 private:
  static bool clean(const WorkerProcess& w) {
    return WIFEXITED(w.status) && WEXITSTATUS(w.status) == 0;
  }
  static bool failed(const WorkerProcess& w) {
    return !clean(w) || !read_all(w.result.get()).starts_with(kResult);
  }
  static std::string reason(const WorkerProcess& w) {
    const std::string left = read_all(w.result.get());
    if (clean(w) && left.starts_with(kError)) return left.substr(1);
    std::string said = read_all(w.output.get());
    while (said.ends_with('\n')) said.pop_back();
    said.erase(0, said.rfind('\n') + 1);
    const std::string how = WIFSIGNALED(w.status)
                                ? std::string("ended by signal: ") + strsignal(WTERMSIG(w.status))
                                : "ended with status " + std::to_string(WEXITSTATUS(w.status));
    return said.empty() ? how : how + " (" + said + ")";
  }

  void kill_and_reap() {
    for (WorkerProcess& w : all_) {
      if (!w.ended) {
        kill(w.pid, SIGKILL);
        while (waitpid(w.pid, &w.status, 0) < 0 && errno == EINTR) {
        }
        w.ended = true;
      }
      if (w.exit_fd >= 0) close(std::exchange(w.exit_fd, -1));
    }
  }

  std::vector<WorkerProcess> all_;
  std::vector<std::size_t> failed_;  // ranks, in the order of their ends
};

}  // namespace

std::vector<std::string> run_workers(int size, double grace_s,
                                     const std::function<std::string(int)>& body) {
  Workers workers;
  for (int rank = 0; rank < size; ++rank) workers.start(body);
  workers.wait(grace_s);
  if (const std::string complaint = workers.complaint(); !complaint.empty())
    throw std::runtime_error(complaint);
  return workers.results();
}

}  // namespace gradwire
