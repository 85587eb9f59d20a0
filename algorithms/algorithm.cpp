#include "algorithms/algorithm.h"

#include "algorithms/replicas.h"

namespace gradwire {

void backpropagate(Worker& worker, const BackwardSink& sink) {
  const Batch batch = worker.batches.at(worker.step);
  const Matrix scores = worker.model.forward(batch);
  worker.comm.charge(Phase::kForward, worker.model.forward_work(batch.inputs.rows()));
  const Loss loss = softmax_cross_entropy(scores, batch.labels);
  worker.loss_sum = loss.sum;
  if (worker.diagnose) worker.local_gradient = zero_gradients(worker.model);

  BackwardSink charged;
  charged.linear = [&](const LayerTrace& trace, const Work& work) {
    worker.comm.charge(Phase::kBackward, work);
    if (worker.diagnose) {
      const LinearMap& map = worker.model.linear_maps()[static_cast<std::size_t>(trace.map)];
      worker.local_gradient[static_cast<std::size_t>(map.weight)].noalias() =
          trace.activation.transpose() * trace.delta;
      if (map.bias >= 0)
        worker.local_gradient[static_cast<std::size_t>(map.bias)] = trace.delta.colwise().sum();
    }
    sink.linear(trace, work);
  };
  charged.direct = [&](int parameter, const Matrix& gradient, const Work& work) {
    worker.comm.charge(Phase::kBackward, work);
    if (worker.diagnose) worker.local_gradient[static_cast<std::size_t>(parameter)] = gradient;
    sink.direct(parameter, gradient, work);
  };
  worker.model.backward(loss.delta, charged);
}

void apply(Worker& worker, const Gradients& mean_gradient) {
  if (worker.comm.carries_data()) {
    if (worker.replicas != nullptr)
      worker.replicas->step(worker.step, worker.model, worker.optimizer, mean_gradient);
    else
      worker.optimizer.step(worker.model.mutable_parameters(), mean_gradient);
  }
  worker.comm.charge(Phase::kOptimizer, worker.optimizer.step_work(worker.model.parameter_count()));
  if (worker.diagnose) worker.applied_gradient = mean_gradient;
}

}  // namespace gradwire
