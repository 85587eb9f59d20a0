// What every command shares: its flags, their help, and where its output goes.
#pragma once

#include <iosfwd>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/fields.h"

namespace gradwire {

/// A command line that cannot be understood (exit status 2).
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Flag {
  std::string key;
  std::string argument;  ///< what the help shows for the value; empty for a switch
  std::string help;
  std::string group = "Output";
  bool several = false;  ///< takes every following word up to the next flag
};

/// The flag of a scenario field, its default in the help.
Flag field_flag(const Field& field);

class Arguments {
 public:
  /// Throws UsageError for an unknown flag (suggesting the nearest), a missing value or a flag
  /// given twice that takes one value.
  Arguments(const std::vector<Flag>& flags, const std::vector<std::string>& words);

  bool has(const std::string& key) const { return values_.contains(key); }
  /// The flag's only value, or `fallback`.
  std::string value(const std::string& key, const std::string& fallback = "") const;
  /// All that a flag was given.
  std::vector<std::string> values(const std::string& key) const;
  const std::vector<std::string>& positional() const { return positional_; }

  /// Sets what `grid`'s fields have flags for.
  void apply_to(Grid& grid) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

/// Where a command writes: results on `out`, progress and notes on `err`.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
};

struct Command {
  std::string name;     ///< one word
  std::string summary;  ///< one line
  std::string usage;    ///< after the command's name
  std::string examples;
  std::vector<Flag> flags;
  /// Returns the exit status.  `command_line` is what the user typed.
  int (*run)(const Arguments& arguments, const std::string& command_line, const Streams& streams);
};

Command run_command();
Command sweep_command();
Command report_command();
Command real_command();
Command list_command();
Command platform_command();
Command collective_command();
Command calibrate_command();
Command replay_command();
Command validate_command();
Command lab_command();

std::string command_help(const Command& command);

}  // namespace gradwire
