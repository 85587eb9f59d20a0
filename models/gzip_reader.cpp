#include "models/gzip_reader.h"

#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "models/input_file.h"

namespace gradwire {

GzipReader::GzipReader(std::string path) : path_(std::move(path)), file_(open(), gzclose) {}

std::size_t GzipReader::read(std::span<unsigned char> bytes) {
  const int got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
  int status = Z_OK;
  const char* const message = gzerror(file_.get(), &status);
  if (got < 0) fail(std::string("cannot be read: ") + message);
  if (status == Z_BUF_ERROR) fail("is truncated: its gzip stream stops early");
  return static_cast<std::size_t>(got);
}

std::string GzipReader::read_all() {
  constexpr std::size_t kChunk = 1 << 20;
  constexpr std::size_t kMost = std::size_t{1} << 31U;
  std::string text;
  std::vector<unsigned char> chunk(kChunk);
  while (const std::size_t got = read(chunk)) {
    text.append(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
    if (text.size() > kMost) fail("is larger than 2 GiB");
  }
  return text;
}

void GzipReader::fail(const std::string& what) const {
  throw std::invalid_argument("dataset: " + path_ + " " + what);
}

gzFile GzipReader::open() const {
  check_input("dataset: " + path_, path_);
  gzFile file = gzopen(path_.c_str(), "rb");
  if (file == nullptr) throw std::bad_alloc();  // all else has been checked
  return file;
}

}  // namespace gradwire
