#include "models/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr int kMostLevels = 100;

[[noreturn]] void fail(const std::string& subject, const std::string& what) {
  throw std::invalid_argument(subject.empty() ? what : subject + " " + what);
}

[[noreturn]] void fail(const std::string& subject, int error) {
  fail(subject, "cannot be read: " + std::generic_category().message(error));
}

// Whether it is a pipe.
bool check_kind(const std::string& subject, const std::string& path, bool pipes) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) fail(subject, errno);
  if (S_ISDIR(status.st_mode)) fail(subject, "is a folder");
  const bool pipe = S_ISFIFO(status.st_mode);
  if (!S_ISREG(status.st_mode) && !(pipe && pipes)) fail(subject, "is not a regular file");
  if (access(path.c_str(), R_OK) != 0) fail(subject, errno);
  return pipe;
}

// The pipe's first byte; a writer that waits for a reader has a second to open it.
char first_byte(const std::string& subject, int file) {
  constexpr int kWait_ms = 1000;
  pollfd waiting{.fd = file, .events = POLLIN, .revents = 0};
  poll(&waiting, 1, kWait_ms);
  char byte = 0;
  ssize_t got = read(file, &byte, 1);  // at once: 0 where nobody writes
  if (got < 0 && errno == EAGAIN && fcntl(file, F_SETFL, 0) == 0) got = read(file, &byte, 1);
  if (got < 0) fail(subject, errno);
  if (got == 0) fail(subject, "is a pipe that nobody writes to");
  fcntl(file, F_SETFL, 0);
  return byte;
}

// "[json.exception.parse_error.101] parse error at line 1, ..." as printable text of one line.
std::string reason_of(const ordered_json::exception& error) {
  constexpr std::size_t kMost = 200;  // it repeats what it last read
  std::string reason = error.what();
  if (const auto end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
  for (char& c : reason)
    if (c < ' ' || c > '~') c = '?';
  return reason.size() > kMost ? reason.substr(0, kMost) + "..." : reason;
}

}  // namespace

void check_input(const std::string& subject, const std::string& path) {
  check_kind(subject, path, /*pipes=*/false);
}

std::string read_input(const std::string& subject, const std::string& path,
                       const InputOptions& options) {
  const bool pipe = check_kind(subject, path, options.pipes);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(subject, errno);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fdopen(descriptor, "rb"), std::fclose);
  if (file == nullptr) throw std::bad_alloc();
  std::string text;
  if (pipe) text += first_byte(subject, descriptor);
  const std::size_t most = std::min(options.first_bytes, options.most_bytes + 1);
  std::vector<char> chunk(std::size_t{1} << 20U);
  while (text.size() < most) {
    const std::size_t got =
        std::fread(chunk.data(), 1, std::min(chunk.size(), most - text.size()), file.get());
    if (got == 0) break;
    text.append(chunk.data(), got);
  }
  if (std::ferror(file.get()) != 0) fail(subject, errno);
  if (text.size() > options.most_bytes)
    fail(subject, "is larger than " + std::to_string(options.most_bytes >> 20U) + " MiB");
  return text;
}

ordered_json parse_input(const std::string& subject, std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto callback = [&](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    using Event = ordered_json::parse_event_t;
    if (depth >= kMostLevels && (event == Event::object_start || event == Event::array_start))
      fail(subject, "has more than " + std::to_string(kMostLevels) + " levels of lists or objects");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
      fail(subject, "has " + shown(parsed) + " twice");
    return true;
  };
  try {
    return ordered_json::parse(text, callback);
  } catch (const ordered_json::exception& error) {
    fail(subject, "is not JSON: " + reason_of(error));
  }
}

std::string shown(const ordered_json& value) {
  constexpr std::size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace gradwire
