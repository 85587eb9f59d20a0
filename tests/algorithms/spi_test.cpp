// Structured power iterations in the arithmetic of training: scale, noise, what they spend.
#include "algorithms/spi.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/random.h"

using namespace gradwire;

namespace {

Matrix normal(Index rows, Index cols, std::uint64_t id) {
  Matrix m(rows, cols);
  RandomStream(3, Purpose::kSyntheticTensor, id).fill_normal(m);
  return m;
}

void start(Index component, Matrix& x) {
  RandomStream(3, Purpose::kSpiStart, 0, 0, static_cast<std::uint64_t>(component)).fill_uniform(x);
}

SpiResult reduce(const Matrix& activation, const Matrix& delta, const SpiOptions& options) {
  return structured_power_iterations(activation, delta, options, start);
}

double relative_error(const Matrix& activation, const Matrix& delta, const Factors& factors) {
  const Matrix exact = activation.transpose() * delta;
  const Matrix found = factors.activation.transpose() * factors.delta;
  return static_cast<double>((found - exact).norm() / exact.norm());
}

}  // namespace

TEST_CASE("Scaling a layer scales its components, however small or large its deltas") {
  const Matrix activation = normal(6, 20, 1);
  const Matrix delta = normal(6, 15, 2);
  for (const SpiMode mode : {SpiMode::kRobust, SpiMode::kAuthors}) {
    const SpiOptions options{.mode = mode, .rank = 3, .iterations = 10};
    const SpiResult reference = reduce(activation, delta, options);
    REQUIRE(reference.rank() == 3);
    for (const Scalar factor : {Scalar(0x1p-50), Scalar(0x1p50)}) {  // squares leave float
      const SpiResult scaled = reduce(activation, factor * delta, options);
      REQUIRE(scaled.rank() == 3);
      for (std::size_t k = 0; k < 3; ++k)
        CHECK(scaled.sigma[k] == Approx(reference.sigma[k] * static_cast<double>(factor)));
      CHECK(scaled.factors.activation == reference.factors.activation);
    }
  }
}

TEST_CASE("SPI finds the rank of a layer and stops there") {
  const Matrix activation = normal(8, 2, 1) * normal(2, 20, 2);  // rank 2
  const Matrix delta = normal(8, 15, 3);
  const SpiResult result = reduce(activation, delta, {.rank = 5});
  CHECK(result.rank() == 2);
  CHECK(result.stop == SpiStop::kNull);
  CHECK(relative_error(activation, delta, result.factors) < 1e-5);
}

TEST_CASE("SPI says why it stopped") {
  const Matrix activation = normal(8, 20, 1);
  Matrix delta = normal(8, 15, 2);
  CHECK(reduce(activation, delta, {.rank = 2}).stop == SpiStop::kMaxRank);
  CHECK(reduce(activation, delta, {.rank = 4, .theta = 1}).stop == SpiStop::kTheta);
  CHECK(reduce(activation, Matrix::Zero(8, 15), {}).stop == SpiStop::kNull);
  CHECK(reduce(Matrix(0, 20), Matrix(0, 15), {}).stop == SpiStop::kNull);
  const SpiResult repeated = reduce(
      activation, delta, {.mode = SpiMode::kAuthors, .rank = 4, .iterations = 1, .tolerance = 10});
  CHECK(repeated.stop == SpiStop::kTolerance);
  CHECK(repeated.rank() == 1);  // the third repeats the second: both go
  delta(1, 1) = std::numeric_limits<Scalar>::quiet_NaN();
  CHECK(reduce(activation, delta, {}).stop == SpiStop::kNotFinite);
  CHECK(reduce(activation, delta, {}).rank() == 0);
}

TEST_CASE("A layer whose norms overflow ends with finite factors") {
  const Scalar huge = std::sqrt(std::numeric_limits<Scalar>::max());
  const Matrix activation = huge * normal(6, 20, 1);
  const SpiResult result = reduce(activation, normal(6, 15, 2), {});
  CHECK(result.stop == SpiStop::kNotFinite);
  CHECK(result.rank() == 0);
}

TEST_CASE("Factors are rows of unit length and of length sigma, orthogonal to each other") {
  const SpiResult result = reduce(normal(16, 20, 1), normal(16, 15, 2), {.rank = 6});
  REQUIRE(result.rank() == 6);
  for (Index k = 0; k < 6; ++k) {
    const double sigma = result.sigma[static_cast<std::size_t>(k)];
    CHECK(result.factors.activation.row(k).norm() == Approx(1));
    CHECK(result.factors.delta.row(k).norm() == Approx(sigma));
    for (Index l = 0; l < k; ++l) {
      const Scalar overlap = result.factors.delta.row(k).dot(result.factors.delta.row(l));
      CHECK(std::abs(overlap) < 1e-5 * sigma * result.sigma[static_cast<std::size_t>(l)]);
    }
  }
}

TEST_CASE("SPI spends work that is linear in the widths for few rows, and never forms G there") {
  const auto flops = [](Index rows, Index width, SpiMode mode) {
    return reduce(normal(rows, width, 1), normal(rows, width, 2), {.mode = mode, .rank = 2})
        .work.flops;
  };
  const SpiMode robust = SpiMode::kRobust;
  CHECK(flops(8, 400, robust) < 2.1 * flops(8, 200, robust));
  CHECK(flops(8, 400, robust) < 2.0 * 8 * 400 * 400);
  // Many rows of a narrow layer: the gradient (16, 16), not the Gram matrix (200, 200).
  CHECK(flops(200, 16, robust) < 200.0 * 200 * 16);
  CHECK(flops(200, 16, robust) > 2.0 * 200 * 16 * 16);
}
