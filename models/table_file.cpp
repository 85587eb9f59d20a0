#include "models/table_file.h"

#include <charconv>
#include <fstream>
#include <set>
#include <stdexcept>

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr Index kMaxDimension = Index{1} << 40;

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw std::invalid_argument("model: " + file + " " + what);
}

}  // namespace

TableArguments parse_table_arguments(const std::string& arguments) {
  constexpr std::string_view kRows = "rows=";
  TableArguments result;
  const auto parts = cut(arguments, ',');
  result.path = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const char* const end = part.data() + part.size();
    Index rows = 0;
    bool good = part.starts_with(kRows);
    if (good) {
      const auto parsed = std::from_chars(part.data() + kRows.size(), end, rows);
      good = parsed.ec == std::errc{} && parsed.ptr == end && rows >= 1 && rows <= 1 << 24;
    }
    if (!good)
      fail(in_quotes(arguments),
           "has " + in_quotes(part) + "; allowed after the file: rows=1 to 16777216");
    result.options.rows = rows;
  }
  return result;
}

std::string read_file(const std::string& file, std::size_t limit) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(file, "cannot be read");
  constexpr std::size_t kChunk = 1 << 20;
  std::string text;
  std::string chunk(kChunk, '\0');
  while (text.size() < limit && in) {
    in.read(chunk.data(), static_cast<std::streamsize>(std::min(kChunk, limit - text.size())));
    text.append(chunk, 0, static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || (text.empty() && !in.eof())) fail(file, "cannot be read");
  return text;
}

ordered_json parse_json(const std::string& file, std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto callback = [&](int /*depth*/, ordered_json::parse_event_t event,
                            ordered_json& parsed) {
    using Event = ordered_json::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
      fail(file, "has " + in_quotes(parsed.get<std::string>()) + " twice");
    return true;
  };
  try {
    return ordered_json::parse(text, callback);
  } catch (const ordered_json::exception& error) {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at ..."
    const auto end = what.find("] ");
    std::string reason = end == std::string::npos ? what : what.substr(end + 2);
    for (char& c : reason)
      if (c < ' ' || c > '~') c = '?';
    fail(file, "is not JSON: " + reason);
  }
}

std::vector<Index> parse_shape(const std::string& file, const ordered_json& json) {
  const auto found = json.find("shape");
  if (found == json.end() || !found->is_array()) fail(file, "has a tensor without a shape");
  std::vector<Index> shape;
  for (const ordered_json& size : *found) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > std::uint64_t{kMaxDimension})
      fail(file, "has a shape with " + in_quotes(size.dump()) + "; allowed: 1 to 2^40");
    shape.push_back(static_cast<Index>(size.get<std::uint64_t>()));
  }
  return shape;
}

}  // namespace gradwire
