// Headers of safetensors files (huggingface.co/docs/safetensors): the length N of the header as 8
// bytes, least significant first; N bytes of JSON {name: {dtype, shape, data_offsets}} and
// "__metadata__"; then the numbers, which are not read.  N is at most 100 MB, as in the reference.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "models/table_file.h"

namespace gradwire {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kLengthBytes = 8;

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw std::invalid_argument("model: " + file + " " + what);
}

struct Dtype {
  double bytes = 0;
  bool floating = false;
};

Dtype dtype_of(const std::string& file, const std::string& name) {
  static const std::map<std::string, Dtype> known{
      {"F64", {8, true}},     {"F32", {4, true}},     {"F16", {2, true}},  {"BF16", {2, true}},
      {"F8_E4M3", {1, true}}, {"F8_E5M2", {1, true}}, {"I64", {8, false}}, {"U64", {8, false}},
      {"I32", {4, false}},    {"U32", {4, false}},    {"I16", {2, false}}, {"U16", {2, false}},
      {"I8", {1, false}},     {"U8", {1, false}},     {"BOOL", {1, false}}};
  const auto found = known.find(name);
  if (found == known.end()) fail(file, "has the unknown dtype " + in_quotes(name));
  return found->second;
}

struct HeaderTensor {
  TableTensor tensor;
  std::uint64_t begin = 0;
  bool floating = false;
};

HeaderTensor parse_tensor(const std::string& file, const std::string& name,
                          const ordered_json& json) {
  const std::string where = file + " at tensor " + in_quotes(name);
  const auto is_offset = [](const ordered_json& x) { return x.is_number_unsigned(); };
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string())
    fail(where, "has no dtype");
  const Dtype dtype = dtype_of(where, json["dtype"].get<std::string>());
  HeaderTensor result{.tensor = {.name = name, .shape = parse_shape(where, json)},
                      .floating = dtype.floating};
  const auto offsets = json.find("data_offsets");
  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2 ||
      !std::all_of(offsets->begin(), offsets->end(), is_offset))
    fail(where, "has no data_offsets of two whole numbers");
  result.begin = (*offsets)[0].get<std::uint64_t>();
  const auto end = (*offsets)[1].get<std::uint64_t>();
  double bytes = dtype.bytes;
  for (const Index n : result.tensor.shape) bytes *= static_cast<double>(n);
  if (end < result.begin || static_cast<double>(end - result.begin) != bytes)
    fail(where, "has data_offsets that do not fit its shape and dtype");
  return result;
}

// Of one file, in the order of the numbers.
std::vector<TableTensor> read_header(const std::string& file) {
  std::string text = read_file(file, kLengthBytes);
  if (text.size() < kLengthBytes)
    fail(file, "is truncated: " + std::to_string(text.size()) + " of 8 bytes of its length");
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    length = length << 8U | static_cast<unsigned char>(text[i]);
  if (length < 2 || length > kMaxHeader)
    fail(file, "says that its header has " + std::to_string(length) +
                   " bytes; allowed: 2 to 100000000 (is it a safetensors file?)");
  text = read_file(file, kLengthBytes + length);
  if (text.size() < kLengthBytes + length)
    fail(file, "is truncated: " + std::to_string(text.size() - kLengthBytes) + " of " +
                   std::to_string(length) + " bytes of its header");
  const ordered_json json = parse_json(file, std::string_view(text).substr(kLengthBytes));
  if (!json.is_object()) fail(file, "has a header that is not an object");
  std::vector<HeaderTensor> found;
  for (const auto& [name, tensor] : json.items())
    if (name != "__metadata__") found.push_back(parse_tensor(file, name, tensor));
  std::stable_sort(found.begin(), found.end(),
                   [](const HeaderTensor& a, const HeaderTensor& b) { return a.begin < b.begin; });
  std::vector<TableTensor> tensors;
  for (const HeaderTensor& t : found)
    if (t.floating) tensors.push_back(t.tensor);
  return tensors;
}

std::vector<TableTensor> read_index(const std::string& file) {
  const ordered_json json = parse_json(file, read_file(file));
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    fail(file, "is no index of shards: it has no \"weight_map\"");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string() || shard.get<std::string>().find('/') != std::string::npos)
      fail(file, "maps " + in_quotes(tensor) + " to something that is not a file name");
    shards.insert(shard.get<std::string>());
  }
  std::vector<TableTensor> tensors;
  for (const std::string& shard : shards) {
    const std::string path = (fs::path(file).parent_path() / shard).string();
    std::error_code error;
    if (!fs::is_regular_file(path, error))
      fail(file, "needs " + in_quotes(shard) +
                     " beside it; the first bytes of a shard are enough (head -c 10000000)");
    for (TableTensor& tensor : read_header(path)) {
      if (!json["weight_map"].contains(tensor.name))
        fail(path, "has a tensor " + in_quotes(tensor.name) + " that the index does not name");
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace

LayerTable load_safetensors(const std::string& arguments) {
  const TableArguments parsed = parse_table_arguments(arguments);
  const bool sharded = parsed.path.ends_with(".json");
  LayerTable table = make_table(
      parsed.path, sharded ? read_index(parsed.path) : read_header(parsed.path), parsed.options);
  table.source = "safetensors header";
  return table;
}

}  // namespace gradwire
