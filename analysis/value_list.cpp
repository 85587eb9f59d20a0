#include "analysis/value_list.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "analysis/text.h"
#include "analysis/units.h"
#include "models/input_file.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMaxRangePoints = 100'000;

// A field's values as numbers in its base unit.
struct Quantity {
  const char* key;
  double (*parse)(std::string_view key, std::string_view text);
  std::string (*write)(double value);
};
constexpr std::array<Quantity, 3> kQuantities{
    {{"bandwidth", parse_bandwidth_bit_per_s, write_bandwidth},
     {"latency", parse_time_s, write_time},
     {"device-rate", parse_flop_per_s, write_flop_rate}}};

double parse_plain(std::string_view key, std::string_view text) {
  return parse_real(key, text, -1e300, 1e300);
}

Quantity quantity_of(const Field& field) {
  for (const Quantity& quantity : kQuantities)
    if (field.key == quantity.key) return quantity;
  if (field.kind == Field::Kind::kNumber) return {field.key.c_str(), parse_plain, shortest};
  throw std::invalid_argument(field.key + ": takes a value or a list of values, not a range");
}

std::string scalar_text(const std::string& key, const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  throw std::invalid_argument(key + ": " + shown(value) +
                              " is not a text, a number, true or false, or a list of them");
}

// Twelve significant digits: decades of a range stay round numbers.
double rounded(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.12g", x);
  return std::stod(text.data());
}

struct Range {
  double from, to;
  bool logarithmic = false;
  std::int64_t points = 0;

  double at(std::int64_t i) const {
    const double share = points > 1 ? static_cast<double>(i) / static_cast<double>(points - 1) : 0;
    return rounded(logarithmic ? from * std::pow(to / from, share) : from + (to - from) * share);
  }
};

// How many values `to` allows; `to` becomes the last of them.
void count_steps(Range& range, double steps_to_end, const std::string& key) {
  if (!(steps_to_end < static_cast<double>(kMaxRangePoints)))
    throw std::invalid_argument(key + ": a range of more than " + std::to_string(kMaxRangePoints) +
                                " values");
  const double steps = std::floor(steps_to_end + 1e-9);
  range.points = static_cast<std::int64_t>(steps) + 1;
  if (steps_to_end > 0)
    range.to = range.logarithmic
                   ? range.from * std::pow(range.to / range.from, steps / steps_to_end)
                   : range.from + (range.to - range.from) * steps / steps_to_end;
}

void check_keys(const std::string& what, const ordered_json& object,
                const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw std::invalid_argument(what + ": unknown key " + key + did_you_mean(key, known) +
                                  "; known: " + join(known));
}

Range parse_range(const Field& field, const Quantity& quantity, const ordered_json& json) {
  const std::string key = field.key + ": range";
  check_keys(key, json, {"from", "to", "points", "spacing", "step", "factor"});
  const auto text = [&](const char* name) { return scalar_text(key, json.at(name)); };
  const auto number = [&](const char* name) {
    if (!json.contains(name)) throw std::invalid_argument(key + ": needs " + name);
    return quantity.parse(field.key, text(name));
  };
  Range range{.from = number("from"), .to = number("to")};
  if (range.from > range.to)
    throw std::invalid_argument(key + ": from " + text("from") + " is above to " + text("to"));
  if (json.contains("points") + json.contains("step") + json.contains("factor") != 1)
    throw std::invalid_argument(key + ": needs one of points, step and factor");
  const std::string spacing = json.contains("spacing") ? text("spacing") : "linear";
  if (spacing != "linear" && spacing != "log")
    throw std::invalid_argument(key + ": spacing \"" + spacing + "\" is not linear or log");
  if (json.contains("spacing") && !json.contains("points"))
    throw std::invalid_argument(key + ": spacing goes with points");
  range.logarithmic = spacing == "log" || json.contains("factor");
  if (range.logarithmic && range.from <= 0)
    throw std::invalid_argument(key + ": a logarithmic range starts above 0");
  if (json.contains("points")) {
    range.points = parse_integer(key + ": points", text("points"), 1, kMaxRangePoints);
    if (range.points == 1 && range.from < range.to)
      throw std::invalid_argument(key + ": one point cannot reach from " + text("from") + " to " +
                                  text("to"));
  } else if (json.contains("factor")) {
    const double factor = parse_real(key + ": factor", text("factor"), 1, 1e9);
    if (factor <= 1) throw std::invalid_argument(key + ": factor must be above 1");
    count_steps(range, std::log(range.to / range.from) / std::log(factor), key);
  } else {
    const double step = number("step");
    if (step <= 0) throw std::invalid_argument(key + ": step must be above 0");
    count_steps(range, (range.to - range.from) / step, key);
  }
  return range;
}

// A range between whole numbers gives whole numbers, each once.
std::vector<std::string> expand_range(const Field& field, const ordered_json& json) {
  const Quantity quantity = quantity_of(field);
  const Range range = parse_range(field, quantity, json);
  const bool whole = field.kind == Field::Kind::kNumber && json["from"].is_number_integer() &&
                     json["to"].is_number_integer();
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < range.points; ++i) {
    const double value = range.at(i);
    std::string text = whole ? std::to_string(std::llround(value)) : quantity.write(value);
    if (texts.empty() || texts.back() != text) texts.push_back(std::move(text));
  }
  return texts;
}

std::string option_text(const std::string& key, const ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return scalar_text(key, value);
}

// Every combination of the options' lists, the last option varying fastest.
std::vector<std::string> expand_algorithm(const Field& field, const ordered_json& json) {
  if (!json.contains("name") || !json["name"].is_string())
    throw std::invalid_argument(field.key + ": " + shown(json) + " needs a \"name\"");
  std::vector<std::string> texts{json["name"].get<std::string>()};
  char separator = ':';
  for (const auto& [key, value] : json.items()) {
    if (key == "name") continue;
    const std::string name = field.key + ": " + key;
    const ordered_json list = value.is_array() ? value : ordered_json::array({value});
    if (list.empty()) throw std::invalid_argument(name + ": no value");
    std::vector<std::string> longer;
    for (const std::string& text : texts)
      for (const ordered_json& option : list) {
        std::string next = text + separator;
        longer.push_back(next.append(key).append("=").append(option_text(name, option)));
      }
    texts = std::move(longer);
    separator = ',';
  }
  return texts;
}

}  // namespace

std::vector<std::string> expand_values(const Field& field, const ordered_json& json) {
  if (!json.is_array()) {
    if (!json.is_object()) return {scalar_text(field.key, json)};
    return field.key == "algorithm" ? expand_algorithm(field, json) : expand_range(field, json);
  }
  std::vector<std::string> texts;
  for (const ordered_json& part : json) {
    if (part.is_array())
      throw std::invalid_argument(field.key + ": " + shown(part) + " is a list in a list");
    for (std::string& text : expand_values(field, part)) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace gradwire
