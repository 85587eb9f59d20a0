#include "models/model.h"

#include <stdexcept>

namespace gradwire {

Index Model::parameter_count() const {
  Index count = 0;
  for (const Parameter& p : parameters_) count += p.value.size();
  return count;
}

Matrix Model::previous_delta(int /*map*/, const Matrix& /*delta*/,
                             const Matrix& /*activation*/) const {
  throw std::invalid_argument(
      "edad needs a network that is a chain of row-wise layers, such as an MLP");
}

Gradients zero_gradients(const Model& model) {
  Gradients zeros;
  for (const Parameter& p : model.parameters())
    zeros.push_back(Matrix::Zero(p.value.rows(), p.value.cols()));
  return zeros;
}

}  // namespace gradwire
