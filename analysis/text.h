// Small text helpers of the command line: lists, numbers as users write them, near misses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

/// The parts between separators; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");

/// The candidate that `word` is most likely a misspelling of, or "" if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
/// "; did you mean CANDIDATE?", or "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Each throws std::invalid_argument "KEY: \"TEXT\" is not ..." naming what is allowed.
std::int64_t parse_integer(std::string_view key, std::string_view text, std::int64_t min,
                           std::int64_t max = INT64_MAX);
double parse_real(std::string_view key, std::string_view text, double min, double max);

/// The shortest decimal text that reads back as the same number.
std::string shortest(double x);

}  // namespace gradwire
