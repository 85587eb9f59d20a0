// Networks against PyTorch (tests/golden/networks.json, made by networks.py) and against central
// differences.
#include <catch2/catch.hpp>

#include "models/attention.h"
#include "models/model.h"
#include "models/random.h"
#include "tests/algorithms/training_runs.h"
#include "tests/golden.h"

namespace gradwire {
namespace {

using nlohmann::json;

const json& fixtures() {
  static const json values =
      json::parse(std::ifstream(GRADWIRE_SOURCE_DIR "/tests/golden/networks.json"));
  return values;
}

// networks.py's numbers.
Matrix formula(Index s, Index rows, Index cols) {
  Matrix m(rows, cols);
  for (Index k = 0; k < m.size(); ++k)
    m.data()[k] =
        static_cast<double>((7 * k * k + 13 * k + 29 * s * s + 3 * s * k + 5) % 101) / 101 - 0.5;
  return m;
}

Gradients gradients_of(Model& model, const Batch& batch) {
  const Loss loss = softmax_cross_entropy(model.forward(batch), batch.labels);
  Gradients gradients(model.parameters().size());
  const auto at = [&](int p) -> Matrix& { return gradients[static_cast<std::size_t>(p)]; };
  model.backward(loss.delta,
                 {.linear =
                      [&](const LayerTrace& trace, const Work&) {
                        const LinearMap& map =
                            model.linear_maps()[static_cast<std::size_t>(trace.map)];
                        at(map.weight) = trace.activation.transpose() * trace.delta;
                        if (map.bias >= 0) at(map.bias) = trace.delta.colwise().sum();
                      },
                  .direct = [&](int p, const Matrix& gradient, const Work&) { at(p) = gradient; }});
  return gradients;
}

DataShape shape_of(const json& shape) {
  return {.features = shape["features"],
          .classes = shape["classes"],
          .steps = shape.value("steps", Index{1}),
          .channels = shape.value("channels", Index{1}),
          .height = shape.value("height", Index{1}),
          .width = shape.value("width", Index{1}),
          .vocabulary = shape.value("vocabulary", Index{0})};
}

TEST_CASE("Networks' scores and gradients equal PyTorch's") {
  for (const json& c : fixtures()["networks"]) {
    CAPTURE(c["model"]);
    const auto model =
        make_model({.name = c["model"], .activation = "tanh"}, shape_of(c["shape"]), 1);
    Index s = 1;
    for (Parameter& p : model->mutable_parameters()) {
      p.value = formula(s++, p.value.rows(), p.value.cols());
      if (p.name.ends_with("gain")) p.value.array() += 1;
    }
    const Batch batch{golden_matrix(c["inputs"]), c["labels"]};
    CHECK(max_difference(model->forward(batch), golden_matrix(c["scores"])) < 1e-12);
    CHECK(softmax_cross_entropy(model->forward(batch), batch.labels).sum ==
          Approx(c["loss"].get<double>()).epsilon(1e-12));
    const Gradients gradients = gradients_of(*model, batch);
    REQUIRE(gradients.size() == c["gradients"].size());
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      const std::string& name = model->parameters()[p].name;
      CAPTURE(name);
      CHECK(max_difference(gradients[p], golden_matrix(c["gradients"].at(name))) < 1e-12);
    }
  }
}

TEST_CASE("Attention of several heads equals PyTorch's, rows that do not count left out") {
  const json& c = fixtures()["attention"];
  const Index steps = c["steps"];
  const Index dim = 6;
  const Lengths lengths = c["lengths"];
  const auto examples = static_cast<Index>(lengths.size());
  std::array<Matrix, 3> qkv;
  std::array<Matrix, 3> deltas;
  for (std::size_t i = 0; i < 3; ++i) {
    qkv[i] = 2 * formula(static_cast<Index>(i) + 1, examples * steps, dim);
    deltas[i] = Matrix::Zero(examples * steps, dim);
  }
  Attention attention({.steps = steps, .dim = dim, .heads = c["heads"]});
  const auto in = [&](std::size_t i) { return Attention::In{qkv[i].data(), dim}; };
  const auto out = [&](std::size_t i) { return Attention::Out{deltas[i].data(), dim}; };
  Matrix heads;
  attention.forward({in(0), in(1), in(2)}, lengths, heads);
  CHECK(max_difference(heads, golden_matrix(c["out"])) < 1e-13);
  attention.backward({in(0), in(1), in(2)}, lengths, formula(4, examples * steps, dim),
                     {out(0), out(1), out(2)});
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(max_difference(deltas[i], golden_matrix(c["deltas"][i])) < 1e-13);
}

TEST_CASE("LayerNorm and its gradients equal PyTorch's") {
  const json& c = fixtures()["layer_norm"];
  ParameterSet parameters;
  std::vector<LinearMap> maps;
  NetworkBuilder builder(parameters, maps, true, 1);
  LayerNorm norm(builder, "norm", 5);
  parameters.write()[0].value = 1 + formula(2, 1, 5).array();
  parameters.write()[1].value = formula(3, 1, 5);
  CHECK(max_difference(norm.forward(formula(1, 4, 5)), golden_matrix(c["y"])) < 1e-13);
  Matrix dx = Matrix::Ones(4, 5);  // which it adds to
  Gradients gradients(2);
  const BackwardSink sink{.linear = {}, .direct = [&](int p, const Matrix& g, const Work&) {
                            gradients[static_cast<std::size_t>(p)] = g;
                          }};
  BackwardRun run(sink);
  norm.backward(formula(4, 4, 5), run, dx);
  CHECK(max_difference(dx, golden_matrix(c["dx"]) + Matrix::Ones(4, 5)) < 1e-13);
  CHECK(max_difference(gradients[0], golden_matrix(c["gain"])) < 1e-13);
  CHECK(max_difference(gradients[1], golden_matrix(c["offset"])) < 1e-13);
}

TEST_CASE("GELU is z times the normal distribution function, with its slope") {
  Matrix z{{-3, -0.5, 0, 1, 2.5}};
  const Matrix z0 = z;
  Matrix a;
  gelu(z, a);
  CHECK(a(0, 3) == Approx(0.8413447460685429).epsilon(1e-14));
  for (Index i = 0; i < z.size(); ++i) {
    Matrix ends{{z0(0, i) - 1e-5, z0(0, i) + 1e-5}};
    Matrix values;
    gelu(ends, values);
    CHECK(z(0, i) == Approx((values(0, 1) - values(0, 0)) / 2e-5).margin(1e-9));
  }
}

struct Case {
  std::string model;
  DataShape shape;
  bool bias = true;
};

Batch random_batch(const DataShape& shape, Index rows, std::uint64_t seed) {
  Batch batch{.inputs = Matrix(rows, shape.features), .labels = {}};
  RandomStream stream(seed, Purpose::kSyntheticTensor);
  stream.fill_normal(batch.inputs);
  if (shape.vocabulary > 0)  // ends with padding, but for the first
    for (Index i = 0; i < rows; ++i)
      for (Index t = 0; t < shape.steps; ++t)
        batch.inputs(i, t) =
            t < shape.steps - i
                ? static_cast<double>(stream.below(static_cast<std::uint64_t>(shape.vocabulary)))
                : 0;
  for (Index i = 0; i < rows; ++i) batch.labels.push_back(static_cast<int>(i) % shape.classes);
  return batch;
}

TEST_CASE("Gradients of every parameter of every network equal central differences") {
  const DataShape sequences{.features = 12, .classes = 3, .steps = 4, .channels = 3};
  const DataShape texts{.features = 5, .classes = 2, .steps = 5, .vocabulary = 9};
  const DataShape images{.features = 72, .classes = 3, .channels = 2, .height = 6, .width = 6};
  const Case c = GENERATE_COPY(values<Case>(
      {{"gru:hidden=4,head=5", sequences},
       {"gru:hidden=3,head=none", sequences, false},
       {"transformer:dim=4,heads=2,depth=2", texts},
       {"transformer:dim=6,heads=3,depth=1,feed-forward=5,norm=first,qkv=fused,nonlinearity=gelu",
        texts, false},
       {"vit:dim=4,heads=2,depth=2,patch=3", images},
       {"vit:dim=4,heads=1,depth=1,patch=2,norm=last,nonlinearity=relu,bias=off", images}}));
  CAPTURE(c.model);
  const auto model =
      make_model({.name = c.model, .activation = "tanh", .bias = c.bias}, c.shape, 5);
  RandomStream stream(5, Purpose::kSyntheticTensor);
  for (Parameter& p : model->mutable_parameters())
    if (p.name == "tokens" || p.name == "positions") {
      stream.fill_normal(p.value);  // far from LayerNorm's singularity at zero
    } else if (p.value.rows() == 1 && !p.name.ends_with("gain")) {
      stream.fill_normal(p.value);
      p.value *= 0.3;
    }
  const Batch batch = random_batch(c.shape, 3, 5);
  const Gradients gradients = gradients_of(*model, batch);
  const auto loss = [&] { return softmax_cross_entropy(model->forward(batch), batch.labels).sum; };
  constexpr double kStep = 1e-5;
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    Parameter& parameter = model->mutable_parameters()[p];
    CAPTURE(parameter.name);
    REQUIRE(gradients[p].rows() == parameter.value.rows());
    REQUIRE(gradients[p].cols() == parameter.value.cols());
    const bool keys_bias = parameter.name.ends_with(".k.bias");  // softmax ignores it
    CHECK((gradients[p].cwiseAbs().maxCoeff() > 1e-4) == !keys_bias);
    for (Index i = 0; i < parameter.value.size(); ++i) {
      double& value = parameter.value.data()[i];
      const double before = value;
      value = before + kStep;
      const double above = loss();
      value = before - kStep;
      const double below = loss();
      value = before;
      REQUIRE(gradients[p].data()[i] == Approx((above - below) / (2 * kStep)).margin(1e-7));
    }
  }
}

TEST_CASE("Padding changes neither scores nor gradients of a text") {
  const DataShape longer{.features = 6, .classes = 2, .steps = 6, .vocabulary = 9};
  const DataShape shorter{.features = 4, .classes = 2, .steps = 4, .vocabulary = 9};
  const auto padded = make_model({.name = "transformer:dim=4,heads=2,depth=2"}, longer, 5);
  const auto exact = make_model({.name = "transformer:dim=4,heads=2,depth=2"}, shorter, 5);
  for (std::size_t p = 0; p < exact->parameters().size(); ++p)
    exact->mutable_parameters()[p].value =
        padded->parameters()[p].value.topRows(exact->parameters()[p].value.rows());
  const Batch short_batch{Matrix{{3, 1, 4, 1}, {5, 0, 2, 6}}, {0, 1}};
  Batch long_batch{Matrix::Zero(2, 6), {0, 1}};
  long_batch.inputs.leftCols(4) = short_batch.inputs;
  CHECK(max_difference(padded->forward(long_batch), exact->forward(short_batch)) < 1e-13);
  const Gradients a = gradients_of(*padded, long_batch);
  const Gradients b = gradients_of(*exact, short_batch);
  for (std::size_t p = 0; p < a.size(); ++p) {
    CHECK(max_difference(a[p].topRows(b[p].rows()), b[p]) < 1e-12);
    CHECK(a[p].bottomRows(a[p].rows() - b[p].rows()).isZero(0));
  }
}

TEST_CASE("One map to queries, keys and values computes what three do") {
  const DataShape images{.features = 32, .classes = 3, .channels = 2, .height = 4, .width = 4};
  const auto fused = make_model({.name = "vit:dim=4,heads=2,depth=1,patch=2,qkv=fused"}, images, 5);
  const auto split = make_model({.name = "vit:dim=4,heads=2,depth=1,patch=2"}, images, 5);
  const auto value = [](Model& model, const std::string& name) -> Matrix& {
    for (Parameter& p : model.mutable_parameters())
      if (p.name == name) return p.value;
    throw std::logic_error(name);
  };
  for (Parameter& p : split->mutable_parameters())
    if (const auto dot = p.name.find(".q."); dot == std::string::npos &&
                                             p.name.find(".k.") == std::string::npos &&
                                             p.name.find(".v.") == std::string::npos)
      p.value = value(*fused, p.name);
  Index first = 0;
  for (const char* part : {"q", "k", "v"}) {
    value(*split, std::string("block1.") + part + ".weight") =
        value(*fused, "block1.qkv.weight").middleCols(first, 4);
    first += 4;
  }
  const Batch batch = random_batch(images, 3, 5);
  CHECK(max_difference(fused->forward(batch), split->forward(batch)) < 1e-13);
}

TEST_CASE("rank-dAD at full rank trains every network as dAD does") {
  const auto [model, dataset] = GENERATE(table<const char*, const char*>(
      {{"gru:hidden=4,head=5", "synthetic-sequences:4x3x3"},
       {"transformer:dim=6,heads=2,depth=1", "synthetic-texts:5x50x2"},
       {"vit:dim=6,heads=2,depth=1,patch=3", "synthetic-images:2x6x6x3"}}));
  const std::string exchange = GENERATE(as<std::string>{}, "allgather", "two-way", "star");
  CAPTURE(model, exchange);
  const auto parameters = [&](const std::string& algorithm) {
    Scenario scenario = small_scenario(algorithm, 2);
    scenario.model.name = model;
    scenario.dataset = dataset;
    return run_training(scenario).parameters();
  };
  CHECK(relative_difference(
            parameters("rank-dad:rank=100,fallback-dense=off,theta=0,exchange=" + exchange),
            parameters("dad")) < 1e-6);
}

}  // namespace
}  // namespace gradwire
