// What the readers of layer tables and of safetensors headers share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/dataset_formats.h"
#include "models/layer_table.h"

namespace gradwire {

/// `PATH[,rows=R]`.
struct TableArguments {
  std::string path;
  TableOptions options;
};
TableArguments parse_table_arguments(const std::string& arguments);

/// As read_input(), the first `limit` bytes at most.
std::string read_file(const std::string& file, std::size_t limit = SIZE_MAX);

/// As parse_input().
nlohmann::ordered_json parse_json(const std::string& file, std::string_view text);

/// The list "shape" of whole numbers of an object.
std::vector<Index> parse_shape(const std::string& file, const nlohmann::ordered_json& json);

}  // namespace gradwire
