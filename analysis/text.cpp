#include "analysis/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "models/options.h"

namespace gradwire {

namespace {

// Insertions, deletions and substitutions that turn `a` into `b` (Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

[[noreturn]] void reject(std::string_view key, std::string_view text, const std::string& wanted) {
  throw std::invalid_argument(std::string(key) + ": \"" + std::string(text) + "\" is not " +
                              wanted);
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string entry(std::string name, std::string_view explanation, std::size_t column) {
  constexpr std::size_t kWidth = 100;
  std::string text;
  std::string line = std::move(name);
  if (line.size() + 2 > column) text.append(std::exchange(line, "")).append("\n");
  line.resize(column - 1, ' ');
  for (const std::string& word : split(explanation, ' ')) {
    if (line.size() + 1 + word.size() > kWidth) {
      text.append(line).append("\n");
      line.assign(column - 1, ' ');
    }
    line.append(" ").append(word);
  }
  return text.append(line).append("\n");
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const std::size_t edits = edit_distance(word, candidate);
    const std::size_t distance = begins ? std::min<std::size_t>(edits, 2) : edits;
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : "; did you mean " + best + "?";
}

std::int64_t parse_integer(std::string_view key, std::string_view text, std::int64_t min,
                           std::int64_t max) {
  const auto value = parse_number<std::int64_t>(text);
  if (!value || *value < min || *value > max)
    reject(key, text,
           "an integer " + (max == INT64_MAX
                                ? "of at least " + std::to_string(min)
                                : "from " + std::to_string(min) + " to " + std::to_string(max)));
  return *value;
}

double parse_real(std::string_view key, std::string_view text, double min, double max) {
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < min || *value > max)
    reject(key, text, "a number from " + shortest(min) + " to " + shortest(max));
  return *value;
}

bool parse_switch(std::string_view key, std::string_view text) {
  if (text != "on" && text != "true" && text != "off" && text != "false")
    reject(key, text, "on or off");
  return text == "on" || text == "true";
}

}  // namespace gradwire
