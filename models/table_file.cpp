#include "models/table_file.h"

#include <charconv>
#include <stdexcept>

#include "models/input_file.h"

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
  return read_input("model: " + file, file, {.first_bytes = limit});
}

ordered_json parse_json(const std::string& file, std::string_view text) {
  return parse_input("model: " + file, text);
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
