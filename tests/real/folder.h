// An empty folder of a test's own.
#pragma once

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

namespace gradwire {

struct Folder {
  Folder() : path((std::filesystem::temp_directory_path() / "gradwire-test-XXXXXX").string()) {
    REQUIRE(mkdtemp(path.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

}  // namespace gradwire
