#include "models/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace gradwire {

namespace {

template <class Range>
std::string join(const Range& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ", ") + std::string(part);
  return text;
}

template <class Number>
bool parse_number(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

std::string shortest(double x) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), x).ptr};
}

Options::Options(std::string subject, const std::vector<OptionSpec>& specs,
                 const std::map<std::string, std::string>& given)
    : subject_(std::move(subject)) {
  std::vector<std::string> keys;
  for (const OptionSpec& spec : specs) {
    keys.push_back(spec.key);
    values_[spec.key] = spec.default_value;
  }
  for (const auto& [key, value] : given) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.key == key; });
    if (spec == specs.end())
      throw std::invalid_argument(subject_ + ": unknown option " + key + "=" + value +
                                  (keys.empty() ? "; it has none" : "; allowed: " + join(keys)));
    const auto& allowed = spec->allowed;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      throw std::invalid_argument(subject_ + ": " + key + "=" + value +
                                  "; allowed: " + join(allowed));
    values_[key] = value;
  }
}

const std::string& Options::text(std::string_view key) const {
  const auto found = values_.find(std::string(key));
  if (found == values_.end())
    throw std::logic_error(subject_ + " declares no option " + std::string(key));
  return found->second;
}

const std::string& Options::choice(std::string_view key) const { return text(key); }

bool Options::flag(std::string_view key) const { return text(key) == "on"; }

std::int64_t Options::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  std::int64_t value = 0;
  if (!parse_number(text(key), value) || value < min || value > max)
    throw std::invalid_argument(
        subject_ + ": " + std::string(key) + "=" + text(key) + "; allowed: an integer " +
        (max == INT64_MAX ? "of at least " + std::to_string(min)
                          : "from " + std::to_string(min) + " to " + std::to_string(max)));
  return value;
}

double Options::real(std::string_view key, double min, double max) const {
  double value = 0;
  if (!parse_number(text(key), value) || !std::isfinite(value) || value < min || value > max)
    throw std::invalid_argument(subject_ + ": " + std::string(key) + "=" + text(key) +
                                "; allowed: a number from " + shortest(min) + " to " +
                                shortest(max));
  return value;
}

std::string Spec::text() const {
  std::string result = name;
  char separator = ':';
  for (const auto& [key, value] : options) {
    result += separator + key + "=" + value;
    separator = ',';
  }
  return result;
}

Spec parse_spec(const std::string& kind, std::string_view text) {
  Spec spec;
  const auto colon = text.find(':');
  spec.name = std::string(text.substr(0, colon));
  if (spec.name.empty())
    throw std::invalid_argument(kind + " \"" + std::string(text) + "\": no name");
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw std::invalid_argument(kind + " \"" + std::string(text) + "\": \"" + std::string(part) +
                                  "\" is not key=value");
    const std::string key(part.substr(0, equals));
    if (!spec.options.emplace(key, part.substr(equals + 1)).second)
      throw std::invalid_argument(kind + " \"" + std::string(text) + "\": " + key +
                                  " is given twice");
    if (part.size() == rest.size()) return spec;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace gradwire
