// Options of algorithms and networks: `name:key=value,key=value`, checked against what the row of
// their registry declares.
#pragma once

#include <cstdint>
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
  /// for an unknown key or a choice that is not allowed, naming the subject (such as "algorithm
  /// dsgd"), key, value and what is allowed.
  Options(std::string subject, const std::vector<OptionSpec>& specs,
          const std::map<std::string, std::string>& given);

  const std::string& choice(std::string_view key) const;
  bool flag(std::string_view key) const;  ///< a choice of on|off
  /// Throw std::invalid_argument where the text is no such number or out of range.
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max = INT64_MAX) const;
  double real(std::string_view key, double min, double max) const;

  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  const std::string& text(std::string_view key) const;
  std::string subject_;
  std::map<std::string, std::string> values_;
};

struct Spec {
  std::string name;
  std::map<std::string, std::string> options;
  std::string text() const;  ///< the canonical spelling, options in order of their keys
};

/// Splits `name:key=value,key=value`.  Throws std::invalid_argument for a part without '=', naming
/// the kind ("algorithm", "model") and the text.
Spec parse_spec(const std::string& kind, std::string_view text);

/// The shortest decimal text that reads back as the same number.
std::string shortest(double x);

}  // namespace gradwire
