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
  enum class Lists : std::uint8_t { kWhereDeclared, kEverywhere };  ///< see Field::separator
  Grid() = default;
  explicit Grid(Lists lists) : lists_(lists) {}

  /// Replaces the field's values.  Throws std::invalid_argument for a bad, repeated or missing
  /// value, or several where one is wanted.
  void set(const Field& field, const std::vector<std::string>& values);
  bool has(const std::string& key) const { return values_.contains(key); }
  /// The field's values, its default if none were set.
  std::vector<std::string> values(const Field& field) const;

  /// Of combinations; UINT64_MAX if there are more.
  std::uint64_t size() const;
  /// The combination at `index` < size(): the last fields of the table vary fastest.
  Scenario point(std::uint64_t index) const;
  std::vector<Scenario> points() const;

  /// A scenario file of this grid with every field, defaults included.
  nlohmann::ordered_json echo() const;

 private:
  Lists lists_ = Lists::kWhereDeclared;
  std::map<std::string, std::vector<std::string>> values_;
};

/// A JSON file that holds one object.  Throws std::invalid_argument, without the file's name, for
/// anything else and for a key given twice.
nlohmann::ordered_json parse_object_file(const std::string& path);

/// Reads an object of fields into `grid`, keys that it already has excepted.  Throws
/// std::invalid_argument naming the key.
void load_scenario(const nlohmann::ordered_json& object, Grid& grid);

/// The same from a file, which is named in what is thrown.
void load_scenario_file(const std::string& path, Grid& grid);

}  // namespace gradwire
