// A model that hands out the activations and deltas of a golden case whatever its input, so that
// algorithms which depend on the order of rows see exactly them.
#pragma once

#include <string>
#include <vector>

#include "tests/algorithms/training_runs.h"
#include "tests/golden.h"

namespace gradwire {

/// One worker's rows of each layer at the golden first step; deltas of the SUM of losses.
struct GoldenTraces {
  std::vector<Matrix> activations;  // by map
  std::vector<Matrix> deltas;
};

inline GoldenTraces golden_traces(const nlohmann::json& golden_case, int worker) {
  const auto& pass = golden_case.at("workers_fwd_bwd").at(0).at(static_cast<std::size_t>(worker));
  GoldenTraces traces;
  for (std::size_t i = 0; i < pass.at("D").size(); ++i) {
    traces.activations.push_back(golden_matrix(pass.at("A").at(i)));
    traces.deltas.emplace_back(golden_matrix(pass.at("D").at(i)) *
                               golden_case.at("batch_per_worker").get<Scalar>());
  }
  return traces;
}

class TraceModel final : public Model {
 public:
  explicit TraceModel(GoldenTraces traces) : traces_(std::move(traces)) {
    for (std::size_t i = 0; i < traces_.deltas.size(); ++i) {
      const Index in = traces_.activations[i].cols();
      const Index out = traces_.deltas[i].cols();
      const auto p = static_cast<int>(parameters_.size());
      const std::string name = "fc" + std::to_string(i + 1);
      maps_.push_back({.name = name, .weight = p, .bias = p + 1, .in = in, .out = out});
      parameters_.push_back({name + ".weight", Matrix::Zero(in, out)});
      parameters_.push_back({name + ".bias", Matrix::Zero(1, out)});
    }
  }
  Matrix forward(const Batch& batch) override { return Matrix::Zero(batch.inputs.rows(), 2); }
  Work forward_work(Index /*rows*/) const override { return {}; }
  Work backward_work(Index /*rows*/) const override { return {}; }
  void backward(const Matrix& /*delta*/, const BackwardSink& sink) override {
    for (auto i = static_cast<int>(maps_.size()); i-- > 0;)
      sink.linear({.map = i,
                   .activation = traces_.activations[static_cast<std::size_t>(i)],
                   .delta = traces_.deltas[static_cast<std::size_t>(i)]},
                  {});
  }

 private:
  GoldenTraces traces_;
};

/// Every worker's step on its golden traces, the same at any `step`; seed 1.
inline std::vector<StepRecord> step_on_golden_traces(const nlohmann::json& golden_case,
                                                     const std::string& algorithm,
                                                     std::int64_t step = 0) {
  const int workers = golden_case.at("workers").get<int>();
  const Index batch = golden_case.at("batch_per_worker").get<Index>();
  Dataset dataset{
      .name = "unused", .shape = {.features = 1, .classes = 2}, .train = {}, .test = {}};
  dataset.train = {Matrix::Zero(batch * workers, 1),
                   std::vector<int>(static_cast<std::size_t>(batch * workers), 0)};
  std::vector<StepRecord> steps(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    const auto instance = make_algorithm(parse_algorithm_spec(algorithm));
    TraceModel model(golden_traces(golden_case, comm.rank()));
    const auto optimizer = make_optimizer({.name = "sgd", .learning_rate = 1});
    BatchSource batches(dataset, batch, comm.rank(), workers, 1);
    Worker worker{.comm = comm,
                  .model = model,
                  .optimizer = *optimizer,
                  .batches = batches,
                  .seed = 1,
                  .batch_size = batch,
                  .global_batch = batch * workers,
                  .step = step,
                  .diagnose = true};
    instance->step(worker);
    steps[static_cast<std::size_t>(comm.rank())] = record_step(worker);
  });
  return steps;
}

}  // namespace gradwire
