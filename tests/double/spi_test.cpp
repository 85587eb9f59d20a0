#include "algorithms/spi.h"

#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <limits>

#include "models/random.h"
#include "tests/golden.h"

namespace gradwire {
namespace {

// The golden file's generator.
Scalar v(std::int64_t s, std::int64_t k) {
  return static_cast<Scalar>((7 * k * k + 13 * k + 29 * s * s + 3 * s * k + 5) % 101) / 101.0 - 0.5;
}

void golden_start(Index component, Matrix& x) {
  for (Index j = 0; j < x.cols(); ++j) x(0, j) = v(500 + component, j) + 0.5;
}

Matrix product(const Factors& f) { return f.activation.transpose() * f.delta; }

Matrix golden_product(const nlohmann::json& run) {  // L (out, r), R (in, r)
  return golden_matrix(run["R"]) * golden_matrix(run["L"]).transpose();
}

TEST_CASE("both SPI modes equal every golden run", "[spi]") {
  int compared = 0;
  for (const auto& c : golden()["cases"]) {
    const auto& layers = c["rankdad"]["per_worker"];
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      for (std::size_t w = 0; w < layers[layer].size(); ++w) {
        const auto& pass = c["workers_fwd_bwd"][0][w];
        const Matrix activation = golden_matrix(pass["A"][layer]);
        const Matrix delta = golden_matrix(pass["D"][layer]);
        for (const auto& run : layers[layer][w]["runs"])
          for (const char* mode : {"robust", "hotelling"}) {
            if (run[mode].is_null()) continue;
            const SpiResult result = structured_power_iterations(
                activation, delta,
                {.mode = mode == std::string("hotelling") ? SpiMode::kAuthors : SpiMode::kRobust,
                 .rank = run["rank"],
                 .iterations = run["iters"],
                 .theta = 1e-6,
                 .tolerance = 0},
                golden_start);
            CAPTURE(layer, w, mode, run["rank"], run["iters"]);
            REQUIRE(result.sigma.size() == run[mode]["sigma"].size());
            if (result.sigma.empty()) continue;
            CHECK(max_difference(product(result.factors), golden_product(run[mode])) < 1e-9);
            for (std::size_t k = 0; k < result.sigma.size(); ++k)
              CHECK(result.sigma[k] == Approx(run[mode]["sigma"][k].get<double>()).margin(1e-9));
            ++compared;
          }
      }
  }
  CHECK(compared > 200);
}

TEST_CASE("robust SPI handles the golden edge cases", "[spi]") {
  for (const auto& edge : golden()["edge_cases"]) {
    CAPTURE(edge["name"]);
    const SpiResult result = structured_power_iterations(
        golden_matrix(edge["A"]), golden_matrix(edge["D"]),
        {.rank = edge["rank"], .iterations = edge["iters"], .theta = 1e-6}, golden_start);
    CHECK(result.rank() == edge["effective_rank"].get<Index>());
    CHECK(max_difference(product(result.factors), golden_matrix(edge["G_hat"])) < 1e-9);
  }
}

TEST_CASE("the authors' loop gives the golden result where it forms the gradient", "[spi]") {
  for (const auto& edge : golden()["edge_cases"]) {
    if (!edge.contains("hotelling_G_hat")) continue;
    const SpiResult result = structured_power_iterations(
        golden_matrix(edge["A"]), golden_matrix(edge["D"]),
        {.mode = SpiMode::kAuthors, .rank = edge["rank"], .iterations = edge["iters"]},
        golden_start);
    CHECK(max_difference(product(result.factors), golden_matrix(edge["hotelling_G_hat"])) < 1e-9);
  }
}

struct Layer {
  Matrix activation, delta;
};

Layer random_layer(Index rows, Index in, Index out) {
  Layer layer{Matrix(rows, in), Matrix(rows, out)};
  RandomStream(5, Purpose::kSyntheticTensor, 1).fill_normal(layer.activation);
  RandomStream(5, Purpose::kSyntheticTensor, 2).fill_normal(layer.delta);
  for (Index i = 0; i < rows; ++i) layer.delta.row(i) *= std::pow(0.7, static_cast<Scalar>(i));
  return layer;
}

void uniform_start(Index component, Matrix& x) {
  RandomStream(9, Purpose::kSpiStart, 0, 0, static_cast<std::uint64_t>(component)).fill_uniform(x);
}

double relative_error(const Layer& layer, const SpiOptions& options) {
  const Matrix g = layer.activation.transpose() * layer.delta;
  const auto result =
      structured_power_iterations(layer.activation, layer.delta, options, uniform_start);
  return (g - product(result.factors)).norm() / g.norm();
}

double optimal_error(const Layer& layer, Index rank) {
  const Eigen::MatrixXd g = layer.activation.transpose() * layer.delta;
  const auto sigma = Eigen::JacobiSVD<Eigen::MatrixXd>(g).singularValues();
  return sigma.tail(sigma.size() - rank).norm() / sigma.norm();
}

TEST_CASE("robust SPI's error falls with the rank and tends to the SVD's", "[spi]") {
  // Gram, factored and full-gradient operators: few rows, many rows, one iteration.
  for (const Layer& layer :
       {random_layer(8, 30, 20), random_layer(60, 20, 12), random_layer(10, 12, 40)}) {
    for (const int iterations : {1, 3, 300}) {
      double previous = 1;
      for (Index rank = 1; rank <= 8; ++rank) {
        const double error = relative_error(layer, {.rank = rank, .iterations = iterations});
        const double best = optimal_error(layer, rank);
        CHECK(error <= previous + 1e-12);
        CHECK(error >= best - 1e-12);
        if (iterations == 300) CHECK(error == Approx(best).margin(1e-6));
        previous = error;
      }
    }
  }
}

TEST_CASE("robust SPI never returns more components than the gradient's rank", "[spi]") {
  const auto components = [](Index rows, Index in, Index out) {
    const Layer layer = random_layer(rows, in, out);
    return structured_power_iterations(layer.activation, layer.delta, {.rank = 50, .iterations = 5},
                                       uniform_start)
        .rank();
  };
  CHECK(components(3, 20, 10) == 3);
  CHECK(components(40, 4, 10) == 4);
  CHECK(components(40, 20, 1) == 1);
}

TEST_CASE("a NaN or an infinity in the input ends SPI with finite factors", "[spi]") {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const bool authors : {false, true}) {
      Layer layer = random_layer(6, 9, 7);
      layer.delta(2, 3) = bad;
      const auto result = structured_power_iterations(
          layer.activation, layer.delta,
          {.mode = authors ? SpiMode::kAuthors : SpiMode::kRobust, .rank = 3, .iterations = 4},
          uniform_start);
      CHECK(result.factors.delta.allFinite());
      CHECK(result.factors.activation.allFinite());
    }
  }
}

TEST_CASE("the authors' loop drops components from the end", "[spi]") {
  const Layer layer = random_layer(8, 30, 20);
  for (const Index drop : {0, 1, 2}) {
    const auto result = structured_power_iterations(
        layer.activation, layer.delta,
        {.mode = SpiMode::kAuthors, .rank = 4, .iterations = 50, .drop_last = drop}, uniform_start);
    CHECK(result.rank() == 4 - drop);
    CHECK(relative_error(
              layer, {.mode = SpiMode::kAuthors, .rank = 4, .iterations = 50, .drop_last = drop}) ==
          Approx(optimal_error(layer, 4 - drop)).margin(1e-3));
  }
}

TEST_CASE("the authors' loop double-counts unconverged components", "[spi]") {
  const Layer layer = random_layer(8, 30, 20);
  CHECK(relative_error(layer, {.mode = SpiMode::kAuthors, .rank = 8, .iterations = 1}) > 1);
  CHECK(relative_error(layer, {.rank = 8, .iterations = 1}) < 1e-6);
}

}  // namespace
}  // namespace gradwire
