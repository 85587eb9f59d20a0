// A binary file read front to back, plain or gzipped (zlib reads both), with errors that name it.
#pragma once

#include <zlib.h>

#include <memory>
#include <span>
#include <string>

namespace gradwire {

class GzipReader {
 public:
  /// Throws std::invalid_argument if the file is no regular file that may be read.
  explicit GzipReader(std::string path);

  /// Up to bytes.size(); fewer only at the end of the file.
  std::size_t read(std::span<unsigned char> bytes);

  /// All that follows, at most 2 GiB.
  std::string read_all();

  [[noreturn]] void fail(const std::string& what) const;

 private:
  using File = std::unique_ptr<gzFile_s, int (*)(gzFile)>;
  gzFile open() const;

  std::string path_;
  File file_;
};

}  // namespace gradwire
