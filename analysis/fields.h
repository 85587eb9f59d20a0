// The fields of a Scenario by name: the one table behind the flags of `run`, the keys of scenario
// files and the echo of a scenario in reports.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/scenario.h"

namespace gradwire {

struct Field {
  enum class Kind : std::uint8_t { kText, kNumber, kSwitch };  ///< its type in JSON
  std::string key;
  std::string group;     ///< heading in the help
  std::string argument;  ///< what the help shows for the value; empty for a switch
  std::string help;
  Kind kind = Kind::kText;
  char separator = 0;        ///< between a list's values; ' ': words of their own; 0: no list
  bool timing_only = false;  ///< changes the times, never the numbers
  /// Throws std::invalid_argument "KEY: \"VALUE\" is not ...".
  void (*set)(Scenario& scenario, const std::string& value) = nullptr;
  /// The text that set() reads back as the same value.
  std::string (*get)(const Scenario& scenario) = nullptr;
};
const std::vector<Field>& scenario_fields();

/// Throws std::invalid_argument suggesting the nearest key.
const Field& find_field(const std::string& key);

/// The scenario in the fields that change its numbers: equal text, equal mathematics.
std::string mathematics_key(const Scenario& scenario);

/// Values by field; every combination is a scenario.
class Grid {
 public:
  /// Replaces the field's values.  Throws std::invalid_argument for a bad, repeated or missing
  /// value, or several where one is wanted.
  void set(const Field& field, const std::vector<std::string>& values);
  bool has(const std::string& key) const { return values_.contains(key); }

  /// The last fields of the table vary fastest.
  std::vector<Scenario> points() const;

  /// A scenario file of this grid with every field, defaults included.
  nlohmann::ordered_json echo() const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

/// Reads a JSON object of fields into `grid`, keys that it already has excepted.  Throws
/// std::invalid_argument naming the file and the key.
void load_scenario_file(const std::string& path, Grid& grid);

}  // namespace gradwire
