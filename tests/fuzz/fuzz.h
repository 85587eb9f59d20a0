// What the libFuzzer harnesses share: the input as a file, and the only exception allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/scratch.h"

namespace gradwire::fuzz {

/// A folder of this process.
inline const std::filesystem::path& folder() {
  static const ScratchFolder scratch;
  return scratch.path();
}

inline void write(const std::string& name, const std::string& bytes) {
  std::ofstream(folder() / name, std::ios::binary) << bytes;
}

/// Bad input must end in std::invalid_argument, with a message of one line.
template <class Load>
void expect_refusal_or_success(const Load& load) {
  try {
    load();
  } catch (const std::invalid_argument& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) throw;
  }
}

}  // namespace gradwire::fuzz
