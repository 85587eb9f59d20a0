// The options of an algorithm: `name:key=value,key=value`, checked against what its registry row
// declares.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct OptionSpec {
  std::string key;
  std::string default_value;
  std::string help;                  ///< one line, with unit and range
  std::vector<std::string> allowed;  ///< the values of a choice; empty for a number
};

class Options {
 public:
  /// Every key of `specs` with its default, overridden by `given`.  Throws std::invalid_argument
  /// for an unknown key or a choice that is not allowed, naming algorithm, key, value and what is
  /// allowed.
  Options(std::string algorithm, const std::vector<OptionSpec>& specs,
          const std::map<std::string, std::string>& given);

  const std::string& choice(std::string_view key) const;
  bool flag(std::string_view key) const;  ///< a choice of on|off
  /// Throw std::invalid_argument where the text is no such number or out of range.
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max = INT64_MAX) const;
  double real(std::string_view key, double min, double max) const;

  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  const std::string& text(std::string_view key) const;
  std::string algorithm_;
  std::map<std::string, std::string> values_;
};

/// Splits `name:key=value,key=value`.  Throws std::invalid_argument for a part without '='.
struct AlgorithmSpec {
  std::string name = "dsgd";
  std::map<std::string, std::string> options;
  std::string text() const;  ///< the canonical spelling, options in order of their keys
};
AlgorithmSpec parse_algorithm_spec(std::string_view text);

}  // namespace gradwire
