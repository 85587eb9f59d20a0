// A training step of the MLP presets on one core: forward, loss, backward and the gradients.
#include <benchmark/benchmark.h>

#include "models/dataset.h"
#include "models/model.h"

namespace {

using namespace gradwire;

void forward_backward(benchmark::State& state, const std::string& name) {
  const auto dataset = load_dataset("synthetic", 1);
  const auto model = make_model({.name = name}, dataset.shape, 1);
  const Batch batch = BatchSource(dataset, 64, 0, 1, 1).at(0);
  Gradients gradients = zero_gradients(*model);
  BackwardSink sink;
  sink.linear = [&](const LayerTrace& trace, const Work&) {
    const LinearMap& map = model->linear_maps()[static_cast<std::size_t>(trace.map)];
    gradients[static_cast<std::size_t>(map.weight)].noalias() =
        trace.activation.transpose() * trace.delta;
    if (map.bias >= 0)
      gradients[static_cast<std::size_t>(map.bias)].noalias() = trace.delta.colwise().sum();
  };
  for (auto _ : state) {
    const Loss loss = softmax_cross_entropy(model->forward(batch), batch.labels);
    model->backward(loss.delta, sink);
    benchmark::DoNotOptimize(gradients.data());
  }
}
BENCHMARK_CAPTURE(forward_backward, mlp_wide, std::string("mlp-wide"))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward_backward, mlp_mnist, std::string("mlp-mnist"))
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
