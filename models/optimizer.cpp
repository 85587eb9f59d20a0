// PyTorch's update formulas (torch.optim.SGD without dampening, torch.optim.Adam), in blocks that
// stay in the first-level cache, so that each array crosses memory once per step.
#include "models/optimizer.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace gradwire {

namespace {

using Array = Eigen::Array<Scalar, Eigen::Dynamic, 1>;
using Block = Eigen::Map<Array>;
using ConstBlock = Eigen::Map<const Array>;

constexpr Index kBlock = 1024;

// Zeros of the parameters' shapes, at the first step.
void prepare(std::vector<Matrix>& memory, const std::vector<Parameter>& parameters) {
  if (!memory.empty()) return;
  for (const Parameter& p : parameters)
    memory.emplace_back(Matrix::Zero(p.value.rows(), p.value.cols()));
}

Block block(std::vector<Matrix>& memory, std::size_t parameter, Index at, Index length) {
  return {memory[parameter].data() + at, length};
}

// Calls update(parameter index, offset, length, value, gradient) for every block.
template <typename Update>
void for_each_block(std::vector<Parameter>& parameters, const Gradients& gradients,
                    const Update& update) {
  if (parameters.size() != gradients.size())
    throw std::logic_error("an optimizer needs one gradient per parameter");
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    Matrix& value = parameters[p].value;
    const Matrix& gradient = gradients[p];
    if (value.rows() != gradient.rows() || value.cols() != gradient.cols())
      throw std::logic_error("the gradient of " + parameters[p].name + " has another shape");
    for (Index at = 0; at < value.size(); at += kBlock) {
      const Index length = std::min(kBlock, value.size() - at);
      update(p, at, Block(value.data() + at, length), ConstBlock(gradient.data() + at, length));
    }
  }
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(double learning_rate) : Optimizer(learning_rate) {}

  void step(std::vector<Parameter>& parameters, const Gradients& gradients) override {
    const auto rate = static_cast<Scalar>(learning_rate_);
    for_each_block(parameters, gradients,
                   [&](std::size_t /*p*/, Index /*at*/, Block value, const ConstBlock& gradient) {
                     value -= rate * gradient;
                   });
  }
  Work step_work(Index parameter_count) const override { return pass_work(parameter_count, 2, 3); }
};

// v = mu v + g; then w -= rate * v, or with Nesterov w -= rate * (g + mu v).
class Momentum final : public Optimizer {
 public:
  Momentum(double learning_rate, double momentum, bool nesterov)
      : Optimizer(learning_rate), momentum_(momentum), nesterov_(nesterov) {}

  void step(std::vector<Parameter>& parameters, const Gradients& gradients) override {
    std::vector<Matrix>& velocity = state_.write().first;
    prepare(velocity, parameters);
    const auto rate = static_cast<Scalar>(learning_rate_);
    const auto mu = static_cast<Scalar>(momentum_);
    for_each_block(parameters, gradients,
                   [&](std::size_t p, Index at, Block value, const ConstBlock& gradient) {
                     Block v = block(velocity, p, at, value.size());
                     v = mu * v + gradient;
                     if (nesterov_)
                       value -= rate * (gradient + mu * v);
                     else
                       value -= rate * v;
                   });
  }
  Work step_work(Index parameter_count) const override {
    return pass_work(parameter_count, nesterov_ ? 6 : 4, 5);
  }

 private:
  double momentum_;
  bool nesterov_;
};

// m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, w -= rate * mhat / (sqrt(vhat) + eps), where
// mhat = m / (1-b1^t), vhat = v / (1-b2^t).
class Adam final : public Optimizer {
 public:
  explicit Adam(double learning_rate) : Optimizer(learning_rate) {}

  void step(std::vector<Parameter>& parameters, const Gradients& gradients) override {
    State& state = state_.write();
    prepare(state.first, parameters);
    prepare(state.second, parameters);
    ++state.steps;
    const auto b1 = static_cast<Scalar>(kBeta1);
    const auto b2 = static_cast<Scalar>(kBeta2);
    const auto one_minus_b1 = static_cast<Scalar>(1 - kBeta1);
    const auto one_minus_b2 = static_cast<Scalar>(1 - kBeta2);
    const auto eps = static_cast<Scalar>(kEpsilon);
    const auto t = static_cast<double>(state.steps);
    const auto rate = static_cast<Scalar>(learning_rate_ / (1 - std::pow(kBeta1, t)));
    const auto to_vhat = static_cast<Scalar>(1 / std::sqrt(1 - std::pow(kBeta2, t)));
    for_each_block(parameters, gradients,
                   [&](std::size_t p, Index at, Block value, const ConstBlock& gradient) {
                     Block m = block(state.first, p, at, value.size());
                     Block v = block(state.second, p, at, value.size());
                     m = b1 * m + one_minus_b1 * gradient;
                     v = b2 * v + one_minus_b2 * gradient.square();
                     value -= rate * m / (v.sqrt() * to_vhat + eps);
                   });
  }
  Work step_work(Index parameter_count) const override { return pass_work(parameter_count, 13, 7); }

 private:
  static constexpr double kBeta1 = 0.9;
  static constexpr double kBeta2 = 0.999;
  static constexpr double kEpsilon = 1e-8;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec) {
  if (!std::isfinite(spec.learning_rate) || spec.learning_rate <= 0) {
    std::ostringstream rate;
    rate << spec.learning_rate;
    throw std::invalid_argument("learning-rate: " + rate.str() +
                                " is not allowed; it must be a finite number above 0");
  }
  if ((spec.name == "sgd" || spec.name == "adam") && spec.momentum != OptimizerSpec().momentum)
    throw std::invalid_argument("momentum: optimizer " + spec.name +
                                " has none; it is of momentum and nesterov");
  if (spec.name == "sgd") return std::make_unique<Sgd>(spec.learning_rate);
  if (spec.name == "adam") return std::make_unique<Adam>(spec.learning_rate);
  if (spec.name != "momentum" && spec.name != "nesterov")
    throw std::invalid_argument("optimizer: \"" + spec.name +
                                "\" is not known; allowed: sgd, momentum, nesterov, adam");
  if (!(spec.momentum >= 0 && spec.momentum < 1))
    throw std::invalid_argument("momentum: " + std::to_string(spec.momentum) +
                                " is not allowed; it must be at least 0 and below 1");
  return std::make_unique<Momentum>(spec.learning_rate, spec.momentum, spec.name == "nesterov");
}

}  // namespace gradwire
