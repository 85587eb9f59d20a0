// A network that is no chain and has a parameter outside its linear maps:
// scores = X W + X V + 1 offset.
#pragma once

#include <memory>

#include "models/model.h"
#include "models/random.h"

namespace gradwire {

class TwoBranches final : public Model {
 public:
  /// Pretends that the deltas of its first backward passes are zero.
  TwoBranches(Index in, Index out, int silent_passes = 0) : silent_passes_(silent_passes) {
    parameters_.write() = {
        {"w", Matrix(in, out)}, {"offset", Matrix(1, out)}, {"v", Matrix(in, out)}};
    for (std::size_t p = 0; p < 3; ++p)
      RandomStream(1, Purpose::kInitialParameters, p).fill_normal(parameters_.write()[p].value);
    maps_ = {{.name = "w", .weight = 0, .in = in, .out = out},
             {.name = "v", .weight = 2, .in = in, .out = out}};
  }
  Matrix forward(const Batch& batch) override {
    inputs_ = batch.inputs;
    Matrix scores = inputs_ * (parameters_[0].value + parameters_[2].value);
    scores.rowwise() += parameters_[1].value.row(0);
    return scores;
  }
  Work forward_work(Index /*rows*/) const override { return {}; }
  Work backward_work(Index /*rows*/) const override { return {}; }
  void backward(const Matrix& delta, const BackwardSink& sink) override {
    delta_ = silent_passes_-- > 0 ? Matrix::Zero(delta.rows(), delta.cols()) : delta;
    sink.linear({.map = 1, .activation = inputs_, .delta = delta_}, {});
    sink.direct(1, delta_.colwise().sum(), {});
    sink.linear({.map = 0, .activation = inputs_, .delta = delta_}, {});
  }

 private:
  int silent_passes_;
  Matrix inputs_;
  Matrix delta_;
};

}  // namespace gradwire
