// Small text helpers of the command line: lists, numbers as users write them, near misses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

/// The parts between separators; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");

/// One entry of a list with its explanation from `column` on, broken between words at 100
/// characters; a longer entry stands on a line of its own.
std::string entry(std::string name, std::string_view explanation, std::size_t column);

/// f of every element: f may be a member.
template <class Range, class F>
std::vector<std::string> collect(const Range& range, const F& f) {
  std::vector<std::string> texts;
  texts.reserve(range.size());
  for (const auto& element : range) texts.push_back(std::invoke(f, element));
  return texts;
}

/// The candidate that `word` is most likely a misspelling of, or "" if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
/// "; did you mean CANDIDATE?", or "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Each throws std::invalid_argument "KEY: \"TEXT\" is not ..." naming what is allowed.
std::int64_t parse_integer(std::string_view key, std::string_view text, std::int64_t min,
                           std::int64_t max = INT64_MAX);
double parse_real(std::string_view key, std::string_view text, double min, double max);
bool parse_switch(std::string_view key, std::string_view text);

}  // namespace gradwire
