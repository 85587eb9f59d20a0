#include "analysis/sweep_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "models/input_file.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "{\"gradwire_sweep\":";

// A line of any length.
class Line {
 public:
  Line() = default;
  ~Line() { std::free(data_); }  // NOLINT(cppcoreguidelines-no-malloc): getline's
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  bool read(std::FILE* file) {
    const ssize_t size = getline(&data_, &capacity_, file);
    text_ = size < 0 ? std::string_view() : std::string_view(data_, static_cast<std::size_t>(size));
    whole_ = text_.ends_with('\n');
    if (whole_) text_.remove_suffix(1);
    return size >= 0;
  }
  std::string_view text() const { return text_; }
  bool whole() const { return whole_; }

 private:
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::string_view text_;
  bool whole_ = false;
};

[[noreturn]] void reject(const std::string& path, const std::string& reason) {
  throw std::invalid_argument(path + ": " + reason);
}

[[noreturn]] void reject_line(const std::string& path, std::size_t number) {
  reject(path + ":" + std::to_string(number),
         "corrupt line; delete it to have what it held computed again");
}

struct Contents {
  ordered_json identity;  // null if the file ends before it does
  off_t whole_bytes = 0;
};

// Reads as far as lines are whole.
Contents read_lines(std::FILE* file, const std::string& path, const RecordSink& sink) {
  Contents contents;
  Line line;
  for (std::size_t number = 1; line.read(file); ++number) {
    if (number == 1 && !line.text().starts_with(kMagic) &&
        (line.whole() || !kMagic.starts_with(line.text())))
      reject(path, "is not a file that gradwire sweep wrote");
    if (!line.whole()) break;  // torn
    contents.whole_bytes += static_cast<off_t>(line.text().size()) + 1;
    ordered_json json;
    try {
      json = parse_input("", line.text());
    } catch (const std::invalid_argument&) {
    }
    if (!json.is_object()) reject_line(path, number);
    if (number > 1) {
      try {
        sink(std::move(json));
      } catch (const ordered_json::exception&) {  // a member is missing
        reject_line(path, number);
      }
    } else if (json["gradwire_sweep"] != kSweepFormat) {
      reject(path, "is a sweep of format " + json["gradwire_sweep"].dump() +
                       "; this gradwire writes and reads format " + std::to_string(kSweepFormat) +
                       "; compute it again");
    } else if (json.contains("hash") && json.contains("scenario")) {
      contents.identity = std::move(json);
    } else {
      reject(path + ":1", "the sweep's identity is not whole");
    }
  }
  if (std::ferror(file) != 0) reject(path, "cannot be read");
  return contents;
}

// Why two sweeps are not one.
std::string difference(const ordered_json& ours, const ordered_json& theirs) {
  for (const char* part : {"versions", "platform_hashes"})
    if (ours["scenario"] == theirs["scenario"] && ours[part] != theirs.value(part, ordered_json()))
      return std::string(part) + " was " + shown(theirs.value(part, ordered_json())) + ", is " +
             shown(ours[part]);
  for (const auto& [key, value] : ours["scenario"].items())
    if (theirs["scenario"].value(key, ordered_json()) != value)
      return key + " was " + shown(theirs["scenario"].value(key, ordered_json())) + ", is " +
             shown(value);
  return "hash " + shown(theirs["hash"]);
}

}  // namespace

ordered_json read_sweep_file(const std::string& path, const RecordSink& sink) {
  check_input(path + ":", path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (file == nullptr) reject(path, std::string("cannot be read: ") + std::strerror(errno));
  Contents contents = read_lines(file.get(), path, sink);
  if (contents.identity.is_null()) reject(path, "is empty: the sweep has not begun");
  return std::move(contents.identity);
}

void SweepFile::fail(const std::string& what) const {
  throw std::runtime_error("cannot write " + path_ + ": " + what);
}

SweepFile::SweepFile(std::string path, const ordered_json& identity, const RecordSink& sink)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "a+be"), std::fclose) {
  if (file_ == nullptr) fail(std::strerror(errno));
  const int descriptor = fileno(file_.get());
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) fail("it is no regular file");
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_SETLK, &lock) != 0)
    fail(errno == EAGAIN || errno == EACCES ? "another sweep is writing it" : std::strerror(errno));
  std::rewind(file_.get());
  const Contents contents = read_lines(file_.get(), path_, sink);
  if (!contents.identity.is_null() && contents.identity["hash"] != identity["hash"])
    reject(path_, "holds another sweep (" + difference(identity, contents.identity) +
                      "); choose another --output");
  if (contents.whole_bytes < status.st_size && ftruncate(descriptor, contents.whole_bytes) != 0)
    fail(std::strerror(errno));
  if (contents.identity.is_null()) append(identity);
}

void SweepFile::append(const ordered_json& record) {
  const std::string line =
      record.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = write(fileno(file_.get()), line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace gradwire
