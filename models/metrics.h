// How good a classifier is: accuracy and macro one-vs-rest AUC (the rank-dAD paper's metric).
#pragma once

#include "models/model.h"

namespace gradwire {

double accuracy(const Matrix& scores, const std::vector<int>& labels);

/// Mean over the classes that have both positives and negatives of the area under the ROC curve
/// (Mann-Whitney statistic, ties count half), each class scored by softmax probability.
/// NaN when no class qualifies or a score is not finite.
double macro_auc(const Matrix& scores, const std::vector<int>& labels);

struct Evaluation {
  double loss = 0;
  double accuracy = 0;
  double macro_auc = 0;
};
Evaluation evaluate(Model& model, const Examples& examples, Index batch_size = 1000);

}  // namespace gradwire
