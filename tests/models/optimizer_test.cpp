// Update formulas against values worked out by hand.
#include "models/optimizer.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace gradwire {
namespace {

// The value of one scalar parameter after each gradient.
std::vector<double> trajectory(const OptimizerSpec& spec, double start,
                               const std::vector<double>& gradients) {
  const auto optimizer = make_optimizer(spec);
  std::vector<Parameter> parameters{
      {.name = "w", .value = Matrix::Constant(1, 1, static_cast<Scalar>(start))}};
  std::vector<double> values;
  for (const double g : gradients) {
    optimizer->step(parameters, {Matrix::Constant(1, 1, static_cast<Scalar>(g))});
    values.push_back(static_cast<double>(parameters[0].value(0, 0)));
  }
  return values;
}

TEST_CASE("SGD shrinks a quadratic's coordinate by 1 - rate per step") {
  const auto optimizer = make_optimizer({.name = "sgd", .learning_rate = 0.25});
  std::vector<Parameter> w{{.name = "w", .value = Matrix::Constant(1, 1, 8)}};
  for (int i = 0; i < 3; ++i) optimizer->step(w, {w[0].value});
  CHECK(w[0].value(0, 0) == 8 * 0.421875F);  // 0.75^3, exact in binary
}

TEST_CASE("Momentum adds half of the last velocity to each gradient") {
  // v = 1, 1.5, 0.75 and w = 1 - 0.1, - 0.15, - 0.075.
  const auto w =
      trajectory({.name = "momentum", .learning_rate = 0.1, .momentum = 0.5}, 1, {1, 1, 0});
  CHECK(w[0] == Approx(0.9));
  CHECK(w[1] == Approx(0.75));
  CHECK(w[2] == Approx(0.675));
}

TEST_CASE("Nesterov's momentum looks one step ahead") {
  // v = 1, 1.5 and w = 1 - 0.1 (1 + 0.5), - 0.1 (1 + 0.75).
  const auto w = trajectory({.name = "nesterov", .learning_rate = 0.1, .momentum = 0.5}, 1, {1, 1});
  CHECK(w[0] == Approx(0.85));
  CHECK(w[1] == Approx(0.675));
}

TEST_CASE("Zero momentum is SGD") {
  const std::vector<double> g{1, -2, 0.5};
  const auto sgd = trajectory({.name = "sgd", .learning_rate = 0.1}, 1, g);
  CHECK(trajectory({.name = "momentum", .learning_rate = 0.1, .momentum = 0}, 1, g) == sgd);
  CHECK(trajectory({.name = "nesterov", .learning_rate = 0.1, .momentum = 0}, 1, g) == sgd);
}

TEST_CASE("Adam moves by the learning rate while the gradient stays the same, whatever its size") {
  for (const double g : {1e-3, 1.0, -500.0}) {
    const auto w = trajectory({.name = "adam", .learning_rate = 0.01}, 0, {g, g, g});
    for (std::size_t t = 0; t < 3; ++t)
      CHECK(w[t] == Approx(-0.01 * static_cast<double>(t + 1) * (g > 0 ? 1 : -1)).epsilon(1e-4));
  }
}

TEST_CASE("Adam corrects the bias of both moments") {
  // g = 1, -1: mhat = (0.9 * 0.1 - 0.1) / 0.19 = -1/19, vhat = 1.
  const auto w = trajectory({.name = "adam", .learning_rate = 0.01}, 0, {1, -1});
  CHECK(w[1] == Approx(-0.01 + 0.01 / 19));
}

TEST_CASE("Adam leaves a parameter whose gradient is zero") {
  CHECK(trajectory({.name = "adam"}, 0.5, {0, 0})[1] == 0.5);
}

TEST_CASE("Every element of every parameter has its own state") {
  const auto* const name = GENERATE("sgd", "momentum", "nesterov", "adam");
  const OptimizerSpec spec{.name = name, .learning_rate = 0.1};
  const auto optimizer = make_optimizer(spec);
  std::vector<Parameter> parameters{{.name = "a", .value = Matrix::Ones(3, 701)},
                                    {.name = "b", .value = Matrix::Ones(1, 5)}};
  Gradients first{Matrix(3, 701), Matrix(1, 5)};
  for (Matrix& g : first)
    for (Index i = 0; i < g.size(); ++i) g.data()[i] = static_cast<Scalar>(i % 13) - 6;
  Gradients second = first;
  second[0] *= Scalar{0.5};
  second[1] *= -1;
  optimizer->step(parameters, first);
  optimizer->step(parameters, second);
  for (std::size_t p = 0; p < 2; ++p)
    for (Index i = 0; i < parameters[p].value.size(); ++i) {
      const auto alone = trajectory(
          spec, 1,
          {static_cast<double>(first[p].data()[i]), static_cast<double>(second[p].data()[i])});
      REQUIRE(static_cast<double>(parameters[p].value.data()[i]) == Approx(alone[1]).margin(1e-6));
    }
}

TEST_CASE("A step's memory traffic counts the state read and written") {
  const auto traffic = [](const char* name) {
    return make_optimizer({.name = name})->step_work(10).memory_bytes / (10 * sizeof(Scalar));
  };
  CHECK(traffic("sgd") == 3);
  CHECK(traffic("momentum") == 5);
  CHECK(traffic("adam") == 7);
}

TEST_CASE("A bad optimizer is refused with what is allowed") {
  CHECK_THROWS_WITH(make_optimizer({.name = "adagrad"}),
                    Catch::Contains("adagrad") && Catch::Contains("sgd, momentum, nesterov, adam"));
  CHECK_THROWS_WITH(make_optimizer({.learning_rate = 0}), Catch::Contains("learning-rate: 0"));
  CHECK_THROWS_AS(make_optimizer({.learning_rate = std::nan("")}), std::invalid_argument);
  CHECK_THROWS_AS(make_optimizer({.learning_rate = INFINITY}), std::invalid_argument);
  for (const double momentum : {-0.1, 1.0, std::nan("")})
    CHECK_THROWS_WITH(make_optimizer({.name = "momentum", .momentum = momentum}),
                      Catch::Contains("momentum: ") && Catch::Contains("below 1"));
}

TEST_CASE("Gradients of other shapes than the parameters are a broken invariant") {
  const auto optimizer = make_optimizer({.name = "sgd"});
  std::vector<Parameter> w{{.name = "w", .value = Matrix::Ones(2, 3)}};
  CHECK_THROWS_AS(optimizer->step(w, {}), std::logic_error);
  CHECK_THROWS_AS(optimizer->step(w, {Matrix::Ones(3, 2)}), std::logic_error);
}

TEST_CASE("A momentum for an optimiser that has none is refused") {
  const std::string name = GENERATE("sgd", "adam");
  CHECK_THROWS_WITH(make_optimizer({.name = name, .momentum = 0.5}),
                    "momentum: optimizer " + name + " has none; it is of momentum and nesterov");
  CHECK_NOTHROW(make_optimizer({.name = name}));
}

}  // namespace
}  // namespace gradwire
