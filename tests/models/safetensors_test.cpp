// Headers of safetensors files, whole, cut off and sharded, and what is refused.
#include <catch2/catch.hpp>
#include <stdexcept>

#include "models/layer_table.h"
#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 255U);
  return bytes;
}
std::string with_length(const std::string& header) { return length_bytes(header.size()) + header; }

const std::string kHeader =
    R"({"__metadata__": {"format": "pt"},
 "fc.weight": {"dtype": "F32", "shape": [4, 8], "data_offsets": [16, 144]},
 "fc.bias": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
 "steps": {"dtype": "I64", "shape": [], "data_offsets": [144, 152]}})";

struct SafetensorsFolder : TemporaryFolder {
  LayerTable load(const std::string& name = "m.safetensors") const {
    return load_safetensors(path(name).string());
  }
};

TEST_CASE("A safetensors header gives the tensors in the order of their numbers") {
  const SafetensorsFolder folder;
  folder.write("m.safetensors", with_length(kHeader) + std::string(152, '\0'));
  const LayerTable t = folder.load();
  CHECK(t.parameter_count() == 36);  // whole numbers are not parameters
  REQUIRE(t.parameters.size() == 2);
  CHECK(t.parameters.front().name == "fc.bias");
  REQUIRE(t.maps.size() == 1);
  CHECK(t.maps.front().in == 8);
  CHECK(t.maps.front().bias == 0);
}

TEST_CASE("The first bytes of a large safetensors file are enough") {
  const SafetensorsFolder folder;
  folder.write("m.safetensors", with_length(kHeader) + "head -c stopped he");
  CHECK(folder.load().parameter_count() == 36);
}

TEST_CASE("A sharded model is read through its index") {
  const SafetensorsFolder folder;
  folder.write(
      "model-1.safetensors",
      with_length(R"({"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}})"));
  folder.write("model-2.safetensors",
               with_length(R"({"b": {"dtype": "F16", "shape": [3, 5], "data_offsets": [0, 30]}})"));
  const std::string index =
      R"({"metadata": {"total_size": 42}, "weight_map": {"b": "model-2.safetensors", "a": )";
  folder.write("model.safetensors.index.json", index + R"("model-1.safetensors"}})");
  CHECK(folder.load("model.safetensors.index.json").parameter_count() == 21);
  folder.remove("model-2.safetensors");
  CHECK_THROWS_WITH(folder.load("model.safetensors.index.json"),
                    Contains("needs \"model-2.safetensors\" beside it"));
  folder.write("model.safetensors.index.json", index + R"("../elsewhere"}})");
  CHECK_THROWS_WITH(folder.load("model.safetensors.index.json"), Contains("not a file name"));
  folder.write("model.safetensors.index.json", "{}");
  CHECK_THROWS_WITH(folder.load("model.safetensors.index.json"), Contains("no \"weight_map\""));
}

std::string tensor(const std::string& fields) { return with_length("{\"a\": {" + fields + "}}"); }

TEST_CASE("A malformed safetensors file is refused with its name and what is wrong") {
  const auto [bytes, message] = GENERATE(table<std::string, std::string>({
      {"", "is truncated: 0 of 8 bytes of its length"},
      {"\1\2\3", "is truncated: 3 of 8 bytes of its length"},
      {length_bytes(0), "has 0 bytes; allowed: 2 to 100000000"},
      {length_bytes(std::uint64_t{1} << 63U) + "{}", "has 9223372036854775808 bytes"},
      {length_bytes(100'000'001) + "{}", "has 100000001 bytes"},
      {"PK\3\4 a pickle, not a tensor", "is it a safetensors file?"},
      {length_bytes(100) + "{}", "is truncated: 2 of 100 bytes of its header"},
      {with_length("nonsense"), "is not JSON"},
      {with_length("[1]"), "has a header that is not an object"},
      {with_length("{}"), "has no tensors"},
      {with_length(R"({"a": 3})"), "at tensor \"a\" has no dtype"},
      {with_length(R"({"a": {}, "a": {}})"), "has \"a\" twice"},
      {tensor(R"("dtype": "F31", "shape": [2, 2], "data_offsets": [0, 16])"), "dtype \"F31\""},
      {tensor(R"("dtype": "F32", "data_offsets": [0, 16])"), "without a shape"},
      {tensor(R"("dtype": "F32", "shape": [2, 2])"), "has no data_offsets"},
      {tensor(R"("dtype": "F32", "shape": [2, 2], "data_offsets": [0, -16])"), "no data_offsets"},
      {tensor(R"("dtype": "F32", "shape": [2, 2], "data_offsets": [0, 15])"), "do not fit"},
      {tensor(R"("dtype": "F32", "shape": [2, 2], "data_offsets": [16, 0])"), "do not fit"},
      {tensor(R"("dtype": "F32", "shape": [2, 0], "data_offsets": [0, 0])"), "not from 1 to 2^40"},
      {tensor(R"("dtype": "F32", "shape": [4], "data_offsets": [0, 16])"), "no matrix"},
  }));
  const SafetensorsFolder folder;
  folder.write("m.safetensors", bytes);
  CAPTURE(bytes, message);
  CHECK_THROWS_AS(folder.load(), std::invalid_argument);
  CHECK_THROWS_WITH(folder.load(), Contains("m.safetensors") && Contains(message));
}

}  // namespace
}  // namespace gradwire
