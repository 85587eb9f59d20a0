// Accuracy by argmax (the first of equal scores), AUC by ranks in O(n log n) per class.
#include "models/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace gradwire {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void check_sizes(const Matrix& scores, const std::vector<int>& labels) {
  if (static_cast<std::size_t>(scores.rows()) != labels.size())
    throw std::logic_error("metrics need one label per row of scores");
}

// One element after the other: Eigen rounds the elements of a vector register and those of the
// remainder differently, which would part equal rows.
Eigen::MatrixXd softmax(const Matrix& scores) {
  Eigen::MatrixXd p = scores.cast<double>();
  for (Index i = 0; i < p.rows(); ++i) {
    const double highest = p.row(i).maxCoeff();
    double sum = 0;
    for (double& x : p.row(i)) sum += x = std::exp(x - highest);
    for (double& x : p.row(i)) x /= sum;
  }
  return p;
}

// (R - n(n+1)/2) / (n m) with R the sum of the n positives' ranks among all n + m, ties sharing
// their mean rank; NaN without positives or without negatives.
double one_vs_rest_auc(const Eigen::VectorXd& score, const std::vector<int>& labels, int positive) {
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto at = [&](std::size_t i) { return score[static_cast<Index>(order[i])]; };
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return score[static_cast<Index>(i)] < score[static_cast<Index>(j)];
  });
  double rank_sum = 0;
  double positives = 0;
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    double tied_positives = 0;
    for (; last < order.size() && at(last) == at(first); ++last)
      tied_positives += labels[order[last]] == positive ? 1 : 0;
    rank_sum += tied_positives * (static_cast<double>(first + last + 1) / 2);
    positives += tied_positives;
  }
  const double negatives = static_cast<double>(labels.size()) - positives;
  if (positives == 0 || negatives == 0) return kNaN;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

}  // namespace

double accuracy(const Matrix& scores, const std::vector<int>& labels) {
  check_sizes(scores, labels);
  if (labels.empty()) return kNaN;
  std::size_t correct = 0;
  for (Index i = 0; i < scores.rows(); ++i) {
    Index best = 0;
    scores.row(i).maxCoeff(&best);
    const bool known = !scores.row(i).hasNaN();
    correct += known && best == labels[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  return static_cast<double>(correct) / static_cast<double>(labels.size());
}

double macro_auc(const Matrix& scores, const std::vector<int>& labels) {
  check_sizes(scores, labels);
  if (labels.empty() || !scores.allFinite()) return kNaN;
  const Eigen::MatrixXd probability = softmax(scores);
  double sum = 0;
  int classes = 0;
  for (Index c = 0; c < scores.cols(); ++c) {
    const double auc = one_vs_rest_auc(probability.col(c), labels, static_cast<int>(c));
    if (std::isnan(auc)) continue;
    sum += auc;
    ++classes;
  }
  return classes > 0 ? sum / classes : kNaN;
}

Evaluation evaluate(Model& model, const Examples& examples, Index batch_size) {
  const Index n = examples.inputs.rows();
  if (n == 0) return {.loss = kNaN, .accuracy = kNaN, .macro_auc = kNaN};
  Matrix scores(n, model.linear_maps().back().out);
  for (Index first = 0; first < n; first += batch_size) {
    const Index rows = std::min(batch_size, n - first);
    scores.middleRows(first, rows) =
        model.forward({.inputs = examples.inputs.middleRows(first, rows), .labels = {}});
  }
  return {.loss = softmax_cross_entropy(scores, examples.labels).sum / static_cast<double>(n),
          .accuracy = accuracy(scores, examples.labels),
          .macro_auc = macro_auc(scores, examples.labels)};
}

}  // namespace gradwire
