// Networks' specifications, shapes, orders of traces and work; their mathematics is checked in
// tests/double/networks_test.cpp.
#include "models/networks.h"

#include <catch2/catch.hpp>
#include <set>

#include "models/random.h"

namespace gradwire {
namespace {

using Catch::Contains;

const DataShape kSequences{.features = 93 * 13, .classes = 10, .steps = 93, .channels = 13};
const DataShape kTexts{.features = 16, .classes = 2, .steps = 16, .vocabulary = 100};
const DataShape kImages{
    .features = 3 * 32 * 32, .classes = 10, .channels = 3, .height = 32, .width = 32};
const DataShape kPhotos{
    .features = 3 * 224 * 224, .classes = 1000, .channels = 3, .height = 224, .width = 224};

std::unique_ptr<Model> make(const std::string& name, const DataShape& shape, bool bias = true) {
  return make_model({.name = name, .bias = bias}, shape, 1);
}

Index weights(const Model& model) {
  Index count = 0;
  for (const LinearMap& map : model.linear_maps()) count += map.in * map.out;
  return count;
}

struct Case {
  std::string model;
  DataShape shape;
};
const std::vector<Case>& small_cases() {
  static const std::vector<Case> all{
      {"gru:hidden=5,head=4", {.features = 12, .classes = 3, .steps = 4, .channels = 3}},
      {"transformer:dim=4,heads=2,depth=2",
       {.features = 6, .classes = 2, .steps = 6, .vocabulary = 9}},
      {"vit:dim=4,heads=2,depth=2,patch=2",
       {.features = 32, .classes = 3, .channels = 2, .height = 4, .width = 4}},
      {"vit:dim=4,heads=2,depth=1,patch=2,norm=last,qkv=fused,bias=off",
       {.features = 16, .classes = 3, .channels = 1, .height = 4, .width = 4}}};
  return all;
}

Batch ones(const DataShape& shape, Index rows) {
  return {Matrix::Ones(rows, shape.features), std::vector<int>(static_cast<std::size_t>(rows), 1)};
}

TEST_CASE("Networks have as many weights as the authors' and parameters as published") {
  CHECK(weights(*make("gru", kSequences)) == 3195840);
  DataShape authors = kPhotos;
  authors.classes = 10;
  const auto vit = make("vit:patch=32", authors);
  CHECK(vit->linear_maps().size() == 74);
  CHECK(weights(*vit) == 2753792);
  CHECK(make("vit:dim=384,heads=6,patch=16", kPhotos)->parameter_count() == 22050664);  // ViT-S/16
  // 7 tensors beside the blocks' 6 maps and 4 norm vectors: nothing is missing or double.
  CHECK(make("transformer:dim=8,depth=1", kTexts)->parameter_count() ==
        (100 + 16) * 8 + 4 * (64 + 8) + (8 * 32 + 32) + (32 * 8 + 8) + 4 * 8 + (8 * 2 + 2));
}

TEST_CASE("Networks without biases have none and a GRU's head may be one map") {
  const std::string spec = GENERATE(as<std::string>{}, "gru:head=none,bias=off", "gru:head=none");
  const auto model = make(spec, kSequences, spec == "gru:head=none,bias=off");
  for (const LinearMap& map : model->linear_maps()) CHECK(map.bias == -1);
  CHECK(model->linear_maps().size() == 3);
  CHECK(model->linear_maps().back().in == 93 * 64);
}

TEST_CASE("Every preset makes a model of data of its kind") {
  const DataShape digits{.features = 784, .classes = 10, .height = 28, .width = 28};
  for (const ModelPreset& preset : model_presets()) {
    const DataShape& shape = preset.name.starts_with("gru")           ? kSequences
                             : preset.name.starts_with("transformer") ? kTexts
                                                                      : digits;
    CHECK(make(preset.name, shape)->parameter_count() > 0);
  }
}

TEST_CASE("A preset of a network takes that network's options") {
  CHECK(make("vit-small", kImages)->linear_maps().size() == 4 * 6 + 2);
  CHECK(make("vit-small:depth=2", kImages)->linear_maps().size() == 2 * 6 + 2);
  CHECK(make("transformer-small:dim=16", kTexts)->linear_maps().front().in == 16);
}

TEST_CASE("Every map and every other parameter is handed out once, maps last first") {
  for (const Case& c : small_cases()) {
    CAPTURE(c.model);
    const auto model = make(c.model, c.shape);
    model->forward(ones(c.shape, 3));
    std::vector<int> maps;
    std::set<int> parameters;
    model->backward(
        Matrix::Ones(3, c.shape.classes),
        {.linear =
             [&](const LayerTrace& trace, const Work&) {
               const LinearMap& map = model->linear_maps()[static_cast<std::size_t>(trace.map)];
               CHECK(trace.activation.rows() == 3 * map.positions);
               CHECK(trace.delta.rows() == 3 * map.positions);
               CHECK(trace.activation.cols() == map.in);
               CHECK(trace.delta.cols() == map.out);
               maps.push_back(trace.map);
               CHECK(parameters.insert(map.weight).second);
               if (map.bias >= 0) CHECK(parameters.insert(map.bias).second);
             },
         .direct =
             [&](int p, const Matrix& gradient, const Work&) {
               CHECK(parameters.insert(p).second);
               const Matrix& value = model->parameters()[static_cast<std::size_t>(p)].value;
               CHECK(gradient.rows() == value.rows());
               CHECK(gradient.cols() == value.cols());
             }});
    CHECK(parameters.size() == model->parameters().size());
    CHECK(maps.size() == model->linear_maps().size());
    CHECK(std::is_sorted(maps.rbegin(), maps.rend()));
  }
}

TEST_CASE("Traces stay as they were handed out until the next forward pass") {
  for (const Case& c : small_cases()) {
    CAPTURE(c.model);
    const auto model = make(c.model, c.shape);
    model->forward(ones(c.shape, 3));
    std::vector<std::array<const Matrix*, 2>> traces;
    std::vector<std::array<Matrix, 2>> copies;
    model->backward(Matrix::Ones(3, c.shape.classes),
                    {.linear =
                         [&](const LayerTrace& t, const Work&) {
                           traces.push_back({&t.activation, &t.delta});
                           copies.push_back({t.activation, t.delta});
                         },
                     .direct = [](int, const Matrix&, const Work&) {}});
    for (std::size_t i = 0; i < traces.size(); ++i)
      for (std::size_t part = 0; part < 2; ++part) CHECK(*traces[i][part] == copies[i][part]);
  }
}

TEST_CASE("Networks' work handed out and the weight gradients' make up the backward work") {
  for (const Case& c : small_cases()) {
    CAPTURE(c.model);
    const auto model = make(c.model, c.shape);
    model->forward(ones(c.shape, 3));
    Work sum;
    model->backward(Matrix::Ones(3, c.shape.classes),
                    {.linear =
                         [&](const LayerTrace& t, const Work& work) {
                           sum += work;
                           sum += gemm_work(t.activation.cols(), t.delta.rows(), t.delta.cols());
                           if (model->linear_maps()[static_cast<std::size_t>(t.map)].bias >= 0)
                             sum += pass_work(t.delta.size(), 1, 1);
                         },
                     .direct = [&](int, const Matrix&, const Work& work) { sum += work; }});
    CHECK(sum.flops == Approx(model->backward_work(3).flops).epsilon(1e-12));
    CHECK(sum.memory_bytes == Approx(model->backward_work(3).memory_bytes).epsilon(1e-12));
  }
}

TEST_CASE("Published flops of a ViT are the forward work's") {
  // ViT-S/16 at 224: 9.2 Gflop in products; norms, softmax and GELU are the rest.
  const double flops = make("vit:dim=384,heads=6,patch=16", kPhotos)->forward_work(1).flops;
  CHECK(flops > 9.2e9);
  CHECK(flops < 9.2e9 * 1.02);
}

TEST_CASE("Work grows in proportion to the batch") {
  for (const Case& c : small_cases()) {
    const auto model = make(c.model, c.shape);
    CHECK(model->forward_work(6).flops == Approx(2 * model->forward_work(3).flops));
  }
}

TEST_CASE("A gated unit keeps its state where z is one and takes the candidate where it is zero") {
  const DataShape shape{.features = 2, .classes = 2, .steps = 2, .channels = 1};
  const auto model = make("gru:hidden=1,head=none", shape);
  for (Parameter& p : model->mutable_parameters()) p.value.setZero();
  model->mutable_parameters()[1].value << 0, -50, 50;  // x2h.bias: z = 0, n = 1
  model->mutable_parameters()[4].value.setIdentity();  // scores are the states
  const Matrix taken = model->forward(ones(shape, 1));
  CHECK(taken == Matrix{{1, 1}});
  model->mutable_parameters()[1].value << 0, 50, 50;  // z = 1: the zero state stays
  CHECK(model->forward(ones(shape, 1)) == Matrix{{0, 0}});
}

TEST_CASE("A NaN in a network reaches its scores") {
  for (const Case& c : small_cases()) {
    const auto model = make(c.model, c.shape);
    Matrix& value = model->mutable_parameters()[c.model.starts_with("gru") ? 0 : 1].value;
    value(0, 0) = std::numeric_limits<Scalar>::quiet_NaN();
    CAPTURE(c.model);
    CHECK(model->forward(ones(c.shape, 2)).hasNaN());
  }
}

TEST_CASE("Networks refuse data of another kind") {
  CHECK_THROWS_WITH(make("gru", kImages), Contains("gru takes sequences"));
  CHECK_THROWS_WITH(make("gru", kTexts), Contains("gru takes sequences"));
  CHECK_THROWS_WITH(make("transformer", kSequences), Contains("transformer takes texts"));
  CHECK_THROWS_WITH(make("vit", kSequences), Contains("vit takes images"));
  CHECK_THROWS_WITH(make("vit:patch=5", kImages),
                    "model vit: patch=5 does not divide images of 32x32");
}

TEST_CASE("Networks refuse options that make no sense, naming what is allowed") {
  CHECK_THROWS_WITH(make("vit:dim=30", kImages), "model vit: dim=30 is no multiple of heads=8");
  CHECK_THROWS_WITH(make("vit:deep=3", kImages),
                    Contains("model vit: unknown option deep=3; allowed: dim, depth, heads"));
  CHECK_THROWS_WITH(make("vit-small:qkv=both", kImages), Contains("allowed: split, fused"));
  CHECK_THROWS_WITH(make("transformer:depth=0", kTexts), Contains("an integer from 1 to 1000"));
  CHECK_THROWS_WITH(make("gru:head=5-", kSequences), Contains("head=5- needs widths"));
  CHECK_THROWS_WITH(make("gru:hidden", kSequences), Contains("is not key=value"));
  CHECK_THROWS_WITH(make("vit:dim=8192,depth=100", kImages), Contains("at most 2^28"));
  CHECK_THROWS_WITH(make("gru:hidden=16384", kSequences), Contains("at most 2^28"));
  CHECK_THROWS_WITH(make("lstm", kSequences), Contains("mnistnet, gru, transformer, vit"));
}

TEST_CASE("Batches of another width and deltas of another shape break an invariant") {
  for (const Case& c : small_cases()) {
    const auto model = make(c.model, c.shape);
    CHECK_THROWS_AS(model->forward({Matrix::Ones(1, c.shape.features + 1), {0}}), std::logic_error);
    model->forward(ones(c.shape, 2));
    CHECK_THROWS_AS(model->backward(Matrix::Ones(3, c.shape.classes), {}), std::logic_error);
  }
  const auto model = make("transformer-small", kTexts);
  CHECK_THROWS_AS(model->forward({Matrix::Constant(1, 16, 100), {0}}), std::logic_error);
}

}  // namespace
}  // namespace gradwire
