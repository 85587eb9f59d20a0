// A folder of files for a test; gone afterwards.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/scratch.h"

namespace gradwire {

class TemporaryFolder {
 public:
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const { return read_text(path(name)); }
  void compress(const std::string& name) const {
    const std::string bytes = read(name);
    gzFile file = gzopen(path(name + ".gz").c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    remove(name);
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path(name)); }
  std::filesystem::path path(const std::string& name = "") const { return folder_ / name; }

 private:
  ScratchFolder folder_;
};

}  // namespace gradwire
