// How input files are read: whole regular files (a FIFO would hang, /dev/zero never end) and JSON,
// with errors that say which file and why.  Every `subject` is what the message begins with, such
// as "model: FILE" or "FILE:"; it may be empty.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gradwire {

/// Throws std::invalid_argument unless `path` is a regular file that may be read: "SUBJECT is a
/// folder", "SUBJECT is not a regular file", "SUBJECT cannot be read: Permission denied".
void check_input(const std::string& subject, const std::string& path);

struct InputOptions {
  std::size_t first_bytes = SIZE_MAX;              ///< the rest is not read
  std::size_t most_bytes = std::size_t{1} << 30U;  ///< larger files are refused
  bool pipes = false;  ///< a pipe that somebody writes to will do (process substitution)
};

/// The file's bytes.  Throws as check_input(), and if it is larger than allowed.
std::string read_input(const std::string& subject, const std::string& path,
                       const InputOptions& options = {});

/// Refuses what is no JSON, objects with a key twice, and more than 100 levels (nlohmann::json
/// takes and frees them recursively).  A byte order mark is skipped.
nlohmann::ordered_json parse_input(const std::string& subject, std::string_view text);

/// A value for a message: its JSON, of which at most 60 bytes.
std::string shown(const nlohmann::ordered_json& value);

/// Without the byte order mark that some editors put at the front of UTF-8.
std::string_view without_mark(std::string_view text);

}  // namespace gradwire
