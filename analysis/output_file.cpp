#include "analysis/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace gradwire {

namespace {

namespace fs = std::filesystem;

// What the signal handler must remove.  A handler can reach nothing but globals.
std::array<char, PATH_MAX>
    temporary_path;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> temporary_exists =
    false;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<bool>::is_always_lock_free);

void handle_interrupt(int signal_number) {
  if (temporary_exists) unlink(temporary_path.data());
  _exit(128 + signal_number);
}

[[noreturn]] void fail(const std::string& path, int error) {
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(error));
}

// Returns 0 or the error.
int write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

void write_directly(const std::string& path, const std::string& text, int flags = 0) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags);
  if (file < 0) fail(path, errno);
  const int error = write_all(file, text);
  close(file);
  if (error != 0) fail(path, error);
}

// A symbolic link stays one, also where its file is not there yet.
std::string file_behind(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_symlink(path, ignored)) return path;
  if (fs::exists(path, ignored)) return fs::canonical(path, ignored);
  return fs::path(path).parent_path() / fs::read_symlink(path, ignored);
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    return write_directly(path, text);
  const std::string target = file_behind(path);
  const std::string temporary = target + ".tmp" + std::to_string(getpid());
  if (temporary.size() >= temporary_path.size()) fail(path, ENAMETOOLONG);
  std::strcpy(temporary_path.data(), temporary.c_str());
  temporary_exists = true;
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int error = file < 0 ? errno : write_all(file, text);
  if (file >= 0 && close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0 && file >= 0) unlink(temporary.c_str());
  temporary_exists = false;
  if (error != 0) fail(path, error);
}

void append_to_file(const std::string& path, const std::string& text) {
  write_directly(path, text, O_APPEND);
}

void check_writable(const std::string& path) {
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  std::error_code ignored;
  const auto reject = [&](const std::string& reason) {
    throw std::invalid_argument("cannot write " + path + ": " + reason);
  };
  if (path.empty()) reject("no file name");
  if (!fs::is_directory(folder, ignored)) reject("no folder " + folder.string());
  if (fs::is_directory(path, ignored)) reject("it is a folder");
  const bool special = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
  if (access(special ? path.c_str() : folder.c_str(), W_OK) != 0) reject(std::strerror(errno));
}

void exit_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = handle_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace gradwire
