// Accuracy and AUC against hand counts and a pairwise count of the definition.
#include "models/metrics.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/random.h"

namespace gradwire {
namespace {

const Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();

Matrix matrix(std::initializer_list<std::initializer_list<Scalar>> rows) { return Matrix(rows); }

// The share of (positive, negative) pairs that the softmax probability orders rightly.
double pairwise_macro_auc(const Matrix& scores, const std::vector<int>& labels) {
  const Eigen::ArrayXXd weight = scores.cast<double>().array().exp();
  double sum = 0;
  int classes = 0;
  for (Index c = 0; c < scores.cols(); ++c) {
    double right = 0, pairs = 0;
    for (Index i = 0; i < scores.rows(); ++i)
      for (Index j = 0; j < scores.rows(); ++j) {
        if (labels[static_cast<std::size_t>(i)] != c || labels[static_cast<std::size_t>(j)] == c)
          continue;
        const double gap = weight(i, c) / weight.row(i).sum() - weight(j, c) / weight.row(j).sum();
        if (std::abs(gap) < 1e-12)
          right += 0.5;
        else if (gap > 0)
          right += 1;
        pairs += 1;
      }
    if (pairs == 0) continue;
    sum += right / pairs;
    ++classes;
  }
  return sum / classes;
}

TEST_CASE("Accuracy is the share of rows whose highest score has the label") {
  const Matrix scores = matrix({{1, 2, 0}, {3, 1, 2}, {0, 0, 5}, {1, 0, 0}});
  CHECK(accuracy(scores, {1, 0, 2, 2}) == 0.75);
}

TEST_CASE("A row with NaN is never accurate") {
  CHECK(accuracy(matrix({{kNaN, 1}, {1, kNaN}, {0, 1}}), {1, 0, 1}) == Approx(1.0 / 3));
}

TEST_CASE("AUC is 1, 1/2 and 0 for perfect, constant and reversed scores") {
  const std::vector<int> labels{0, 0, 1, 1};
  CHECK(macro_auc(matrix({{2, 0}, {1, 0}, {0, 1}, {0, 2}}), labels) == 1);
  CHECK(macro_auc(Matrix::Zero(4, 2), labels) == 0.5);
  CHECK(macro_auc(matrix({{0, 2}, {0, 1}, {1, 0}, {2, 0}}), labels) == 0);
}

TEST_CASE("Macro AUC equals the pairwise count, ties included") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomStream stream(seed, Purpose::kSyntheticTensor);
    const Index classes = 2 + static_cast<Index>(stream.below(4));
    Matrix scores(60, classes);
    std::vector<int> labels;
    stream.fill_normal(scores);
    for (Index i = 0; i < scores.rows(); ++i) {
      if (i % 3 != 0)  // a tie with an earlier row
        scores.row(i) =
            scores.row(static_cast<Index>(stream.below(static_cast<std::uint64_t>(1 + i / 3))) * 3)
                .eval();
      labels.push_back(static_cast<int>(stream.below(static_cast<std::uint64_t>(classes))));
    }
    CHECK(macro_auc(scores, labels) == Approx(pairwise_macro_auc(scores, labels)).margin(1e-12));
  }
}

TEST_CASE("Classes without positives or without negatives do not count in macro AUC") {
  const Matrix scores = matrix({{2, 0, 0}, {1, 0, 0}, {0, 1, 0}});
  CHECK(macro_auc(scores, {0, 0, 1}) == 1);
  CHECK(std::isnan(macro_auc(scores, {0, 0, 0})));
  CHECK(std::isnan(macro_auc(Matrix(0, 3), {})));
}

TEST_CASE("AUC of scores that are not finite is NaN") {
  CHECK(std::isnan(macro_auc(matrix({{kNaN, 0}, {0, 1}}), {0, 1})));
  CHECK(std::isnan(
      macro_auc(matrix({{std::numeric_limits<Scalar>::infinity(), 0}, {0, 1}}), {0, 1})));
}

TEST_CASE("Scores too large for exp still have an AUC") {
  CHECK(macro_auc(matrix({{2000, 0}, {1999, 0}, {0, 3000}}), {0, 0, 1}) == 1);
}

TEST_CASE("An evaluation does not depend on its batch size") {
  const auto model = make_model({.name = "mlp:6-5-3"}, {.features = 6, .classes = 3}, 1);
  const Examples examples = load_dataset("synthetic:6x3", 1).test;
  const Evaluation whole = evaluate(*model, examples, examples.inputs.rows());
  const Evaluation parts = evaluate(*model, examples, 7);
  CHECK(parts.loss == Approx(whole.loss));
  CHECK(parts.accuracy == Approx(whole.accuracy).margin(1e-3));
  CHECK(parts.macro_auc == Approx(whole.macro_auc));
  const Matrix scores = model->forward({examples.inputs, examples.labels});
  CHECK(whole.accuracy == accuracy(scores, examples.labels));
  CHECK(whole.loss == Approx(softmax_cross_entropy(scores, examples.labels).sum /
                             static_cast<double>(examples.labels.size())));
}

TEST_CASE("A diverged model has NaN loss and AUC, and accuracy 0") {
  const auto model = make_model({.name = "mlp:2-3-2"}, {.features = 2, .classes = 2}, 1);
  model->mutable_parameters()[0].value(0, 0) = kNaN;
  const Evaluation e = evaluate(*model, {matrix({{1, 0}, {0.5, 1}}), {0, 1}});
  CHECK(std::isnan(e.loss));
  CHECK(std::isnan(e.macro_auc));
  CHECK(e.accuracy == 0);
}

}  // namespace
}  // namespace gradwire
