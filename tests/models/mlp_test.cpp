// The MLP's specification, shapes, work and hand-sized passes; gradients are checked in
// tests/double/mlp_test.cpp.
#include <catch2/catch.hpp>
#include <cmath>

#include "models/model.h"
#include "models/random.h"

namespace gradwire {
namespace {

using Catch::Contains;

const Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();

Matrix random_matrix(Index rows, Index cols) {
  Matrix m(rows, cols);
  RandomStream(9, Purpose::kSyntheticTensor).fill_normal(m);
  return m;
}

TEST_CASE("Presets have the layers of their names") {
  const auto count = [](const char* name, bool bias) {
    return make_model({.name = name, .bias = bias}, {.features = 784, .classes = 10}, 1)
        ->parameter_count();
  };
  CHECK(count("mlp-mnist", false) == 784L * 512 + 512L * 256 + 256L * 10);
  CHECK(count("mlp-mnist", true) - count("mlp-mnist", false) == 512 + 256 + 10);
  CHECK(count("mlp-wide", true) == 785L * 1024 + 1025L * 1024 + 1025L * 10);
  CHECK(count("mnistnet", true) ==
        785L * 2048 + 2049L * 1024 + 1025L * 512 + 513L * 256 + 257L * 10);
  CHECK(count("mlp:784-300-10", true) == 785L * 300 + 301L * 10);
  CHECK(count("mlp:784-10", true) == 785L * 10);
}

TEST_CASE("Linear maps point at their weight and bias") {
  const auto with = make_model({.name = "mlp:4-3-2"}, {.features = 4, .classes = 2}, 1);
  REQUIRE(with->linear_maps().size() == 2);
  for (const LinearMap& map : with->linear_maps()) {
    const Matrix& w = with->parameters()[static_cast<std::size_t>(map.weight)].value;
    const Matrix& b = with->parameters()[static_cast<std::size_t>(map.bias)].value;
    CHECK(w.rows() == map.in);
    CHECK(w.cols() == map.out);
    CHECK(b.rows() == 1);
    CHECK(b.cols() == map.out);
  }
  const auto without =
      make_model({.name = "mlp:4-3-2", .bias = false}, {.features = 4, .classes = 2}, 1);
  CHECK(without->parameters().size() == 2);
  CHECK(without->linear_maps()[1].bias == -1);
}

TEST_CASE("Initial weights fill the He or Glorot interval and biases are zero") {
  const auto [activation, limit] = GENERATE(table<const char*, double>(
      {{"relu", std::sqrt(6.0 / 100)}, {"tanh", std::sqrt(6.0 / 150)}, {"sigmoid", 0.2}}));
  const auto model = make_model({.name = "mlp:100-50-10", .activation = activation},
                                {.features = 100, .classes = 10}, 1);
  const Matrix& w = model->parameters()[0].value;
  CHECK(w.maxCoeff() == Approx(limit).epsilon(0.01));
  CHECK(w.minCoeff() == Approx(-limit).epsilon(0.01));
  CHECK(w.mean() == Approx(0).margin(5 * limit / std::sqrt(3 * 5000.0)));
  CHECK(model->parameters()[1].value.isZero(0));
}

TEST_CASE("Initial weights follow the seed and differ between layers") {
  const auto model = [](std::uint64_t seed) {
    return make_model({.name = "mlp:5-5-5"}, {.features = 5, .classes = 5}, seed);
  };
  CHECK(model(1)->parameters()[0].value == model(1)->parameters()[0].value);
  CHECK(model(1)->parameters()[0].value != model(2)->parameters()[0].value);
  CHECK(model(1)->parameters()[0].value != model(1)->parameters()[2].value);
}

TEST_CASE("A forward pass is the affine maps with the activation between") {
  const auto model = make_model({.name = "mlp:2-2-2"}, {.features = 2, .classes = 2}, 1);
  model->mutable_parameters()[0].value << 1, -1, 2, 1;
  model->mutable_parameters()[1].value << 1, 0;
  model->mutable_parameters()[2].value << 3, 0, 0, 5;
  model->mutable_parameters()[3].value << 0, -1;
  // z = (1, 1) W1 + b1 = (4, 0); (1, -1) W1 + b1 = (0, -2), so a = (4, 0), (0, 0).
  const Matrix scores = model->forward({Matrix{{1, 1}, {1, -1}}, {0, 0}});
  CHECK(scores == Matrix{{12, -1}, {0, -1}});
}

TEST_CASE("Traces come last layer first and deltas follow previous_delta") {
  const auto* const activation = GENERATE("relu", "tanh", "sigmoid");
  const auto model = make_model({.name = "mlp:6-5-4-3", .activation = activation},
                                {.features = 6, .classes = 3}, 1);
  const Matrix inputs = random_matrix(7, 6);
  const Matrix scores = model->forward({inputs, std::vector<int>(7)});
  const Matrix top = random_matrix(7, 3);
  std::vector<int> order;
  std::vector<const Matrix*> activations, deltas;
  model->backward(top, {.linear =
                            [&](const LayerTrace& trace, const Work&) {
                              order.push_back(trace.map);
                              activations.push_back(&trace.activation);
                              deltas.push_back(&trace.delta);
                            },
                        .direct = {}});
  REQUIRE(order == std::vector<int>{2, 1, 0});  // the matrices outlive the pass
  CHECK(*deltas[0] == top);
  CHECK(*activations[2] == inputs);
  CHECK(*deltas[1] == model->previous_delta(2, *deltas[0], *activations[0]));
  CHECK(*deltas[2] == model->previous_delta(1, *deltas[1], *activations[1]));
  CHECK(deltas[2]->rows() == 7);
  CHECK(deltas[2]->cols() == 5);
}

TEST_CASE("previous_delta takes the stacked rows of all workers") {
  const auto model = make_model({.name = "mlp:4-3-2"}, {.features = 4, .classes = 2}, 1);
  const Matrix delta = random_matrix(10, 2);
  const Matrix activation = random_matrix(10, 3);
  const Matrix all = model->previous_delta(1, delta, activation);
  const Matrix tail = model->previous_delta(1, delta.bottomRows(3), activation.bottomRows(3));
  CHECK(all.bottomRows(3).isApprox(tail, Scalar(1e-6)));
  CHECK_THROWS_AS(model->previous_delta(0, delta, activation), std::logic_error);
  CHECK_THROWS_AS(model->previous_delta(2, delta, activation), std::logic_error);
}

TEST_CASE("Work handed out and the weight gradients' make up the backward work") {
  const auto model =
      make_model({.name = "mlp:40-30-20-10", .bias = false}, {.features = 40, .classes = 10}, 1);
  model->forward({random_matrix(8, 40), std::vector<int>(8)});
  Work sum;
  std::vector<double> flops;
  model->backward(random_matrix(8, 10), {.linear =
                                             [&](const LayerTrace& trace, const Work& work) {
                                               flops.push_back(work.flops);
                                               sum += work;
                                               sum += gemm_work(trace.activation.cols(), 8,
                                                                trace.delta.cols());
                                             },
                                         .direct = {}});
  CHECK(flops[0] == 0);                             // the scores' delta is given
  CHECK(flops[1] == 2 * 8 * 10 * 20 + 2 * 8 * 20);  // D W^T, slope and product
  CHECK(sum.flops == model->backward_work(8).flops);
  CHECK(sum.memory_bytes == model->backward_work(8).memory_bytes);
}

TEST_CASE("A forward pass costs a multiply-add per row and weight, and the passes") {
  const auto model = make_model({.name = "mlp:40-30-10"}, {.features = 40, .classes = 10}, 1);
  CHECK(model->forward_work(8).flops ==
        2 * 8 * (40 * 30 + 30 * 10) + 8 * (30 + 10) /* biases */ + 8 * 30 /* relu */);
}

TEST_CASE("Cross-entropy of equal scores is log(classes), and its delta softmax minus one-hot") {
  const Loss loss = softmax_cross_entropy(Matrix::Constant(2, 4, 3), {1, 2});
  CHECK(loss.sum == Approx(2 * std::log(4.0)));
  CHECK(loss.delta == Matrix{{0.25, -0.75, 0.25, 0.25}, {0.25, 0.25, -0.75, 0.25}});
}

TEST_CASE("Cross-entropy neither overflows nor underflows") {
  const Loss loss = softmax_cross_entropy(Matrix{{1e4, 0}, {-1e4, 0}}, {1, 0});
  CHECK(loss.sum == Approx(2e4));
  CHECK(loss.delta == Matrix{{1, -1}, {-1, 1}});
}

TEST_CASE("A NaN in the network reaches the loss") {
  const auto* const activation = GENERATE("relu", "tanh", "sigmoid");
  const auto model =
      make_model({.name = "mlp:3-3-2", .activation = activation}, {.features = 3, .classes = 2}, 1);
  model->mutable_parameters()[0].value(1, 1) = kNaN;
  const Matrix scores = model->forward({Matrix::Ones(5, 3), {0, 1, 0, 1, 0}});
  CHECK(std::isnan(softmax_cross_entropy(scores, {0, 1, 0, 1, 0}).sum));
}

TEST_CASE("Labels outside the classes are a broken invariant") {
  CHECK_THROWS_AS(softmax_cross_entropy(Matrix::Zero(1, 3), {3}), std::logic_error);
  CHECK_THROWS_AS(softmax_cross_entropy(Matrix::Zero(1, 3), {-1}), std::logic_error);
  CHECK_THROWS_AS(softmax_cross_entropy(Matrix::Zero(2, 3), {0}), std::logic_error);
}

TEST_CASE("Batches and deltas of another shape are a broken invariant") {
  const auto model = make_model({.name = "mlp:3-2"}, {.features = 3, .classes = 2}, 1);
  CHECK_THROWS_AS(model->forward({Matrix::Zero(1, 4), {0}}), std::logic_error);
  model->forward({Matrix::Zero(1, 3), {0}});
  CHECK_THROWS_AS(model->backward(Matrix::Zero(2, 2), {}), std::logic_error);
}

TEST_CASE("An unknown model or activation is refused with the allowed names") {
  const DataShape shape{.features = 784, .classes = 10};
  CHECK_THROWS_WITH(make_model({.name = "resnet"}, shape, 1),
                    Contains("\"resnet\"") && Contains("mlp:WIDTHS") &&
                        Contains("mlp-mnist, mlp-wide, mnistnet, gru"));
  CHECK_THROWS_WITH(make_model({.activation = "gelu"}, shape, 1),
                    Contains("\"gelu\"") && Contains("relu, tanh, sigmoid"));
}

TEST_CASE("Malformed widths are refused") {
  const DataShape shape{.features = 784, .classes = 10};
  const auto* const name =
      GENERATE("mlp:", "mlp:784", "mlp:784-", "mlp:-784-10", "mlp:784--10", "mlp:784-0-10",
               "mlp:784-x-10", "mlp:784-1000001-10", "mlp:784 -10", "mlp:784-10 ", "mlp:784,10",
               "mlp:784-99999999999999999999-10", "mlp:784-+5-10", "mlp:784-3.5-10");
  CHECK_THROWS_WITH(make_model({.name = name}, shape, 1),
                    Contains(std::string("\"") + name + "\""));
}

TEST_CASE("A model that does not fit the data or the memory is refused with its sizes") {
  CHECK_THROWS_WITH(make_model({.name = "mlp-mnist"}, {.features = 100, .classes = 10}, 1),
                    Contains("784") && Contains("100 features"));
  CHECK_THROWS_WITH(make_model({.name = "mlp-mnist"}, {.features = 784, .classes = 26}, 1),
                    Contains("26 classes"));
  CHECK_THROWS_WITH(make_model({.name = "mlp:784-1000000-10"}, {.features = 784, .classes = 10}, 1),
                    Contains("795000010 parameters") && Contains("2^28"));
}

}  // namespace
}  // namespace gradwire
