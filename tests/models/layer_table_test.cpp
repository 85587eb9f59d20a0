// Layer tables: the shipped ones against published totals, users' JSON, and what is refused.
#include "models/layer_table.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;

TEST_CASE("The shipped tables have the published numbers of parameters and flops") {
  const auto [name, parameters, gflop] = GENERATE(table<const char*, double, double>({
      {"resnet18-cifar", 11173962, 1.11},
      {"resnet50", 25557032, 8.18},
      {"vgg16", 138357544, 30.9},
      {"bert-base", 109482240, 22.3},
      {"bert-large", 335141888, 78.9},
      {"gpt2", 124439808, 292},
      {"vit-b16", 86567656, 35.1},
      {"vit-s16", 22050664, 9.2},
      {"llama-7b", 6738415616, 29262},
  }));
  CAPTURE(name);
  const LayerTable t = load_layer_table(name);
  CHECK(t.parameter_count() == parameters);
  double flops = t.other_forward_flops;
  for (const TableMap& m : t.maps)
    flops += 2 * static_cast<double>(m.rows) * static_cast<double>(m.in * m.out);
  CHECK(flops / 1e9 == Approx(gflop).epsilon(0.005));
}

TEST_CASE("A convolution is a map of its unfolded kernel over the output's pixels") {
  const TableMap first = load_layer_table("resnet50").maps.front();
  CHECK(first.name == "conv1");
  CHECK(first.in == 147);
  CHECK(first.out == 64);
  CHECK(first.rows == 112 * 112);
  CHECK(first.bias == -1);
}

TEST_CASE("A bias tells whether a weight is stored as (in, out)") {
  const LayerTable t = load_layer_table("gpt2");
  const TableMap& attention = t.maps.front();
  CHECK(attention.in == 768);
  CHECK(attention.out == 2304);
  CHECK(attention.rows == 1024);
  REQUIRE(attention.bias >= 0);
  CHECK(t.parameters[static_cast<std::size_t>(attention.bias)].cols == 2304);
  CHECK(t.maps.size() == 48);  // the tied output layer adds flops, no map
  CHECK(t.parameters.front().name == "wte.weight");
  CHECK(t.parameters.front().touched_rows == 1024);
}

struct TableFolder : TemporaryFolder {
  LayerTable load(const std::string& text, const std::string& options = "") const {
    write("t.json", text);
    return load_layer_table(path("t.json").string() + options);
  }
};

TEST_CASE("PyTorch's names and shapes are enough") {
  const LayerTable t = TableFolder().load(
      R"([{"name": "emb.weight", "shape": [50, 8]}, {"name": "pos", "shape": [1, 1, 8]},
          {"name": "fc.weight", "shape": [4, 8]}, {"name": "fc.bias", "shape": [4]},
          {"name": "conv.weight", "shape": [6, 2, 3, 3]}, {"name": "scale", "shape": []}])",
      ",rows=5");
  CHECK(t.parameter_count() == 400 + 8 + 32 + 4 + 108 + 1);
  REQUIRE(t.maps.size() == 2);
  CHECK(t.maps[0].name == "fc");
  CHECK(t.maps[0].in == 8);
  CHECK(t.maps[0].out == 4);
  CHECK(t.maps[0].rows == 5);
  CHECK(t.maps[0].bias == 3);
  CHECK(t.maps[1].in == 18);
  CHECK(t.maps[1].out == 6);
  CHECK(t.parameters[0].touched_rows == 5);
  CHECK_FALSE(t.times_given());
}

TEST_CASE("A network over pixels or tokens without their number is not taken for one row each") {
  const TableFolder folder;
  for (const char* tensor :
       {R"({"name": "c", "shape": [6, 2, 3, 3]})", R"({"name": "emb.weight", "shape": [50, 8]})",
        R"({"name": "p", "shape": [6, 2], "kind": "conv"})"}) {
    const std::string layers = std::string("[") + tensor + R"(, {"name": "fc", "shape": [4, 8])";
    CHECK_THROWS_WITH(folder.load(layers + "}]"),
                      Contains("says nowhere on how many") && Contains(",rows=128"));
    CHECK(folder.load(layers + R"(, "rows": 3}])").maps.back().rows == 3);
    CHECK(folder.load(layers + "}]", ",rows=9").maps.back().rows == 9);
  }
  CHECK(folder.load(R"([{"name": "fc", "shape": [4, 8]}])").maps[0].rows == 1);
}

TEST_CASE("Positions and batch norm's statistics are no linear maps") {
  const LayerTable t = TableFolder().load(
      R"([{"name": "pos", "shape": [1, 197, 64]}, {"name": "bn.running_mean", "shape": [64]},
          {"name": "emb.weight", "shape": [50, 8], "rows": 2}, {"name": "fc", "shape": [4, 8]}])",
      ",rows=7");
  CHECK(t.maps.size() == 1);
  CHECK(t.parameter_count() == 197 * 64 + 400 + 32);
  CHECK(t.parameters[1].touched_rows == 2);
}

TEST_CASE("Rows and times may be given layer by layer") {
  const LayerTable t = TableFolder().load(
      R"({"tensors": [{"name": "a", "shape": [4, 8], "rows": 7, "fwd_us": 10, "bwd_us": 20},
                      {"name": "b", "shape": [2, 4], "fwd_us": 1, "bwd_us": 2}]})");
  CHECK(t.times_given());
  CHECK(t.maps[0].rows == 7);
  CHECK(t.maps[0].forward_s == Approx(10e-6));
  CHECK(t.maps[1].backward_s == Approx(2e-6));
}

TEST_CASE("A malformed layer table is refused with its name and what is wrong") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"", "is not JSON"},
      {"[", "is not JSON"},
      {"\xff\xfe", "is not JSON"},
      {"{}", "neither a list of tensors nor"},
      {"[]", "has no tensors"},
      {"[1]", "has a tensor that is not an object"},
      {R"([{"shape": [2, 2]}])", "has a tensor without a name"},
      {R"([{"name": 3, "shape": [2, 2]}])", "has a name that is not a text"},
      {R"([{"name": "a"}])", "has a tensor without a shape"},
      {R"([{"name": "a", "shape": [2, 0]}])", "\"a\" with a size that is not from 1"},
      {R"([{"name": "a", "shape": [2, -1]}])", "has a shape with \"-1\""},
      {R"([{"name": "a", "shape": [2, 1.5]}])", "has a shape with \"1.5\""},
      {R"([{"name": "a", "shape": [9223372036854775808, 2]}])", "has a shape with \"92233720"},
      {R"([{"name": "a", "shape": [2000000, 2000000]}])", "with a size that is not from 1"},
      {R"([{"name": "a", "shape": [2, 2]}, {"name": "a", "shape": [2, 2]}])",
       "has two tensors named \"a\""},
      {R"([{"name": "a", "name": "b", "shape": [2, 2]}])", "has \"name\" twice"},
      {R"([{"name": "a", "shape": [2]}])", "has no matrix that could be a linear map"},
      {R"([{"name": "a", "shape": [2, 2], "fwd_flops": -1}])", "negative or infinite cost"},
      {R"([{"name": "a", "shape": [2, 2], "fwd_flops": 1e29}])", "too many flops"},
      {R"([{"name": "a", "shape": [2, 2], "tied_to": "b"}])", "ties \"a\" to \"b\""},
      {R"([{"name": "a", "shape": [2, 2], "fwd_us": 1}])", "gives times"},
      {R"({"total_params": 5, "tensors": [{"name": "a", "shape": [2, 2]}]})",
       "says 5 parameters, but its tensors have 4"},
  }));
  const TableFolder folder;
  CAPTURE(text);
  CHECK_THROWS_AS(folder.load(text), std::invalid_argument);
  CHECK_THROWS_WITH(folder.load(text), Contains("t.json") && Contains(message));
}

TEST_CASE("An unknown table or option is refused with what is allowed") {
  CHECK_THROWS_WITH(load_layer_table("resnet51"), Contains("bert-base, bert-large, gpt2"));
  CHECK_THROWS_WITH(load_layer_table("resnet50,rows=0"),
                    Contains("allowed after the file: rows=1"));
  CHECK_THROWS_WITH(load_layer_table("resnet50,batch=3"), Contains("\"batch=3\""));
}

}  // namespace
}  // namespace gradwire
