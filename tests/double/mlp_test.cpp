// Forward and backward passes against golden values and central differences.
#include <catch2/catch.hpp>

#include "models/model.h"
#include "models/random.h"
#include "tests/golden.h"

namespace gradwire {
namespace {

using nlohmann::json;

struct Pass {
  double loss = 0;
  std::vector<Matrix> activations;  // by map
  std::vector<Matrix> deltas;       // by map
  Gradients gradients;              // by parameter
};

Pass run(Model& model, const Batch& batch) {
  const Loss loss = softmax_cross_entropy(model.forward(batch), batch.labels);
  const std::size_t maps = model.linear_maps().size();
  Pass pass{.loss = loss.sum,
            .activations = std::vector<Matrix>(maps),
            .deltas = std::vector<Matrix>(maps),
            .gradients = zero_gradients(model)};
  model.backward(loss.delta, {.linear =
                                  [&](const LayerTrace& trace, const Work&) {
                                    const auto map = static_cast<std::size_t>(trace.map);
                                    pass.activations[map] = trace.activation;
                                    pass.deltas[map] = trace.delta;
                                    const LinearMap& m = model.linear_maps()[map];
                                    pass.gradients[static_cast<std::size_t>(m.weight)] =
                                        trace.activation.transpose() * trace.delta;
                                    if (m.bias >= 0)
                                      pass.gradients[static_cast<std::size_t>(m.bias)] =
                                          trace.delta.colwise().sum();
                                  },
                              .direct = {}});
  return pass;
}

std::unique_ptr<Model> golden_model(const json& c) {
  const auto sizes = c["sizes"].get<std::vector<Index>>();
  std::string name = "mlp:";
  for (const Index size : sizes) name.append(std::to_string(size)).push_back('-');
  name.pop_back();
  auto model =
      make_model({.name = name, .activation = c["activation"]},
                 {.features = sizes.front(), .classes = static_cast<int>(sizes.back())}, 1);
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const LinearMap& map = model->linear_maps()[i];
    model->mutable_parameters()[static_cast<std::size_t>(map.weight)].value =
        golden_matrix(c["inputs"]["W"][i]);
    model->mutable_parameters()[static_cast<std::size_t>(map.bias)].value =
        golden_matrix(c["inputs"]["b"][i]);
  }
  return model;
}

TEST_CASE("Forward and backward passes equal the golden values") {
  for (const json& c : golden()["cases"]) {
    const auto model = golden_model(c);
    const auto b = c["batch_per_worker"].get<double>();
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t w = 0; w < c["workers"].get<std::size_t>(); ++w) {
        CAPTURE(c["name"], t, w);
        const Pass pass = run(*model, {golden_matrix(c["inputs"]["X"][t][w]),
                                       c["inputs"]["y"][t][w].get<std::vector<int>>()});
        const json& expected = c["workers_fwd_bwd"][t][w];
        CHECK(pass.loss / b == Approx(expected["loss"].get<double>()).margin(1e-12).epsilon(0));
        for (std::size_t i = 0; i < pass.deltas.size(); ++i) {
          const LinearMap& map = model->linear_maps()[i];
          const auto gradient = [&](int p) -> Matrix {
            return pass.gradients[static_cast<std::size_t>(p)] / b;
          };
          CHECK(max_difference(pass.activations[i], golden_matrix(expected["A"][i])) < 1e-12);
          CHECK(max_difference(pass.deltas[i] / b, golden_matrix(expected["D"][i])) < 1e-12);
          CHECK(max_difference(gradient(map.weight), golden_matrix(expected["G"][i])) < 1e-12);
          CHECK(max_difference(gradient(map.bias), golden_matrix(expected["gb"][i])) < 1e-12);
        }
      }
  }
}

TEST_CASE("Gradients of every parameter equal central differences") {
  const auto* const activation = GENERATE("relu", "tanh", "sigmoid");
  const bool bias = GENERATE(true, false);
  CAPTURE(activation, bias);
  const auto model = make_model({.name = "mlp:5-7-6-4", .activation = activation, .bias = bias},
                                {.features = 5, .classes = 4}, 3);
  RandomStream stream(3, Purpose::kSyntheticTensor);
  for (Parameter& p : model->mutable_parameters())
    if (p.value.rows() == 1) stream.fill_normal(p.value);
  Batch batch{.inputs = Matrix(9, 5), .labels = {0, 1, 2, 3, 0, 1, 2, 3, 0}};
  stream.fill_normal(batch.inputs);

  const Gradients gradients = run(*model, batch).gradients;
  const auto loss = [&] { return softmax_cross_entropy(model->forward(batch), batch.labels).sum; };
  constexpr double kStep = 1e-6;  // error: step^2 from the third derivative, 1e-16 / step rounding
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    Matrix& value = model->mutable_parameters()[p].value;
    REQUIRE(gradients[p].cwiseAbs().maxCoeff() > 0.01);
    for (Index i = 0; i < value.size(); ++i) {
      const double before = value.data()[i];
      value.data()[i] = before + kStep;
      const double above = loss();
      value.data()[i] = before - kStep;
      const double below = loss();
      value.data()[i] = before;
      REQUIRE(gradients[p].data()[i] == Approx((above - below) / (2 * kStep)).margin(1e-7));
    }
  }
}

TEST_CASE("The delta of softmax cross-entropy equals central differences") {
  Matrix scores{{0.3, -1.2, 2.0}, {5.0, 4.0, -3.0}};
  const std::vector<int> labels{1, 2};
  const Matrix delta = softmax_cross_entropy(scores, labels).delta;
  for (Index i = 0; i < scores.size(); ++i) {
    const double before = scores.data()[i];
    scores.data()[i] = before + 1e-6;
    const double above = softmax_cross_entropy(scores, labels).sum;
    scores.data()[i] = before - 1e-6;
    const double below = softmax_cross_entropy(scores, labels).sum;
    scores.data()[i] = before;
    CHECK(delta.data()[i] == Approx((above - below) / 2e-6).margin(1e-8));
  }
}

TEST_CASE("A batch's gradient is the sum of its parts' gradients") {
  const auto model = make_model({.name = "mlp:5-7-4"}, {.features = 5, .classes = 4}, 3);
  Batch whole{.inputs = Matrix(6, 5), .labels = {0, 1, 2, 3, 0, 1}};
  RandomStream(3, Purpose::kSyntheticTensor).fill_normal(whole.inputs);
  const Gradients sum = run(*model, whole).gradients;
  const Gradients head = run(*model, {whole.inputs.topRows(2), {0, 1}}).gradients;
  const Gradients tail = run(*model, {whole.inputs.bottomRows(4), {2, 3, 0, 1}}).gradients;
  for (std::size_t p = 0; p < sum.size(); ++p)
    CHECK(max_difference(sum[p], head[p] + tail[p]) < 1e-13);
}

}  // namespace
}  // namespace gradwire
