// First-order optimisers over a model's parameters: SGD, momentum (heavy ball and Nesterov), Adam.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/copy_on_write.h"
#include "models/model.h"

namespace gradwire {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update with the mean gradient, parameter by parameter in the given order.
  virtual void step(std::vector<Parameter>& parameters, const Gradients& gradients) = 0;
  virtual Work step_work(Index parameter_count) const = 0;
  double learning_rate() const { return learning_rate_; }

  /// What it remembers from step to step, parameter by parameter: velocities, Adam's moments.
  struct State {
    std::int64_t steps = 0;
    std::vector<Matrix> first;
    std::vector<Matrix> second;
  };
  const CopyOnWrite<State>& state() const { return state_; }
  /// Shares the state of a replica's optimiser.
  void adopt(const CopyOnWrite<State>& state) { state_ = state; }

 protected:
  explicit Optimizer(double learning_rate) : learning_rate_(learning_rate) {}
  double learning_rate_;
  CopyOnWrite<State> state_;
};

/// `name`: sgd, momentum, nesterov (both with `momentum`), adam (Kingma & Ba 2015; beta 0.9, 0.999,
/// eps 1e-8).  Throws std::invalid_argument naming the allowed names or ranges.
struct OptimizerSpec {
  std::string name = "adam";
  double learning_rate = 1e-3;
  double momentum = 0.9;
};
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec);

}  // namespace gradwire
