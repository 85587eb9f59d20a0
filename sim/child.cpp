#include "sim/child.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "algorithms/child_process.h"
#include "sim/platform.h"

namespace gradwire {

namespace {

[[noreturn]] void fail_with_errno(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

// Anonymous memory in the form of a file: written by the child, read by the parent afterwards.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("gradwire", MFD_CLOEXEC)) {
    if (fd_ < 0) fail_with_errno("memfd_create");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }

  std::string read_all() const {
    std::string bytes(static_cast<std::size_t>(std::max<off_t>(lseek(fd_, 0, SEEK_END), 0)), '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n =
          pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    bytes.resize(done);
    return bytes;
  }

 private:
  int fd_;
};

constexpr std::size_t kNoteBytes = 4096;

// A page that both processes see, so that the last word of a crashing child is not lost.
class SharedNote {
 public:
  SharedNote() {
    void* page =
        mmap(nullptr, kNoteBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) fail_with_errno("mmap");
    text_ = static_cast<char*>(page);
  }
  ~SharedNote() { munmap(text_, kNoteBytes); }
  SharedNote(const SharedNote&) = delete;
  SharedNote& operator=(const SharedNote&) = delete;

  char* text() const { return text_; }

 private:
  char* text_;
};

// The first byte of what a child leaves.
constexpr char kResult = 'R', kPlatformError = 'P', kError = 'E';

[[noreturn]] void be_child(const std::function<std::string(Child&)>& body, pid_t parent,
                           const MemoryFile& result, const MemoryFile& output,
                           const SharedNote& note) {
  become_child(parent, output.fd());
  Child child(result.fd(), note.text());
  try {
    child.succeed(body(child));
  } catch (const std::exception& error) {
    child.fail(error);
  }
}

// What SimGrid (or a sanitizer) said last before the process ended, without its decoration:
// "[0.000000] ./src/file.cpp:23: [root/CRITICAL] message".
std::string last_complaint(const std::string& output) {
  static constexpr std::array<std::string_view, 4> kMarks{"/CRITICAL] ", "/ERROR] ",
                                                          "ERROR: ", "runtime error: "};
  for (std::size_t end = output.size(); end > 0;) {
    const std::size_t newline = output.rfind('\n', end - 1);
    const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
    const std::string_view line = std::string_view(output).substr(begin, end - begin);
    for (const std::string_view mark : kMarks) {
      const std::size_t at = line.find(mark);
      if (at == std::string_view::npos || line.ends_with("Current backtrace:")) continue;
      return std::string(line.substr(at + mark.size()));
    }
    end = newline == std::string::npos ? 0 : newline;
  }
  return {};
}

std::string reason_of_death(int status, const std::string& output) {
  if (std::string complaint = last_complaint(output); !complaint.empty()) return complaint;
  if (WIFSIGNALED(status)) return std::string("ended by signal: ") + strsignal(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

void Child::doing(std::string_view what) {
  const std::size_t n = std::min(what.size(), kNoteBytes - 1);
  std::memcpy(note_, what.data(), n);
  note_[n] = '\0';
}

void Child::fail(const std::exception& error) const {
  leave(dynamic_cast<const PlatformError*>(&error) != nullptr ? kPlatformError : kError,
        error.what());
}

void Child::succeed(std::string_view result) const { leave(kResult, result); }

// _exit: neither the parent's buffered output nor its destructors belong to this process.
void Child::leave(char outcome, std::string_view bytes) const {
  const bool written = write_all(result_fd_, {&outcome, 1}) && write_all(result_fd_, bytes);
  _exit(written ? 0 : 1);
}

std::string run_in_child(const std::function<std::string(Child&)>& body) {
  const MemoryFile result, output;
  const SharedNote note;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("fork");
  if (pid == 0) be_child(body, parent, result, output, note);

  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) fail_with_errno("waitpid");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) throw Interrupted();
  std::string bytes = result.read_all();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || bytes.empty())
    throw ChildDied(reason_of_death(status, output.read_all()), note.text());
  const char outcome = bytes.front();
  bytes.erase(0, 1);
  if (outcome == kPlatformError) throw PlatformError(bytes);
  if (outcome == kError) throw std::runtime_error(bytes);
  return bytes;
}

}  // namespace gradwire
