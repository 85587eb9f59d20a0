// The file in which a sweep gathers its results: one JSON object per line, the sweep's identity
// first, then one line per finished piece of work, in the order in which they finished.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace gradwire {

/// Goes up when lines of before lack something or mean something else.
inline constexpr int kSweepFormat = 2;

/// May throw what nlohmann::json throws for a missing member: the line is then called corrupt.
using RecordSink = std::function<void(nlohmann::ordered_json record)>;

/// Reads a sweep's file: returns the identity and hands every record to `sink`.  A last line
/// without its end was being written when the sweep was interrupted: it is left out.  Throws
/// std::invalid_argument naming file and line for any other line that is no record, and for a file
/// that is no sweep's.
nlohmann::ordered_json read_sweep_file(const std::string& path, const RecordSink& sink);

/// The file open for appending, by this process alone.  Not for several threads at once.
class SweepFile {
 public:
  /// Creates the file, or hands its records to `sink` and cuts a torn last line off.  Throws
  /// std::invalid_argument for a file that is not this sweep's, std::runtime_error if another
  /// process has it open or it cannot be written.
  SweepFile(std::string path, const nlohmann::ordered_json& identity, const RecordSink& sink);
  /// Writes a line at once: what has been appended survives the process.  Throws
  /// std::runtime_error naming the file and the reason.
  void append(const nlohmann::ordered_json& record);

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  // Open for as long as the lock is held: closing any descriptor of a file gives its locks up.
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace gradwire
