// Small training runs in process, and what tests look at afterwards.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/in_process.h"
#include "algorithms/training.h"

namespace gradwire {

/// One worker after one step.
struct StepRecord {
  Gradients local;    ///< this worker's exact gradient, sum of losses
  Gradients applied;  ///< mean gradient that the algorithm applied
  std::vector<Matrix> parameters;
  double loss_sum = 0;
};

struct TrainingRun {
  std::vector<std::vector<StepRecord>> steps;  ///< by worker, by step
  std::vector<std::vector<Account>> accounts;  ///< by worker: set-up, then one per step

  const std::vector<Matrix>& parameters() const { return steps.front().back().parameters; }
  std::int64_t peers() const { return static_cast<std::int64_t>(steps.size()) - 1; }
  /// What a worker sent in its last step.
  Traffic sent(std::size_t worker) const {
    const Traffic& before = accounts[worker][accounts[worker].size() - 2].traffic;
    const Traffic& after = accounts[worker].back().traffic;
    return {.bytes_sent = after.bytes_sent - before.bytes_sent,
            .messages_sent = after.messages_sent - before.messages_sent};
  }
  Traffic sent_by_all() const {
    Traffic total;
    for (std::size_t w = 0; w < accounts.size(); ++w) {
      total.bytes_sent += sent(w).bytes_sent;
      total.messages_sent += sent(w).messages_sent;
    }
    return total;
  }
};

inline StepRecord record_step(const Worker& worker) {
  StepRecord step{worker.local_gradient, worker.applied_gradient, {}, worker.loss_sum};
  for (const Parameter& p : worker.model.parameters()) step.parameters.push_back(p.value);
  return step;
}

/// Three batches of four rows on an MLP, plain SGD.
inline Scenario small_scenario(const std::string& algorithm, int workers,
                               const std::string& model = "mlp:7-5-3") {
  Scenario scenario;
  scenario.algorithm = parse_algorithm_spec(algorithm);
  scenario.workers = workers;
  scenario.model = {.name = model, .activation = "tanh"};
  const auto first = model.find(':') + 1;
  scenario.dataset = "synthetic:" + model.substr(first, model.find('-') - first) + "x" +
                     model.substr(model.rfind('-') + 1);
  scenario.optimizer = {.name = "sgd", .learning_rate = 0.1};
  scenario.batch_size = 4;
  scenario.gradient_error = true;
  return scenario;
}

inline const Dataset& small_dataset(const Scenario& scenario) {
  static std::map<std::string, Dataset> loaded;
  if (!loaded.contains(scenario.dataset))
    loaded[scenario.dataset] = load_dataset(scenario.dataset, 1);
  return loaded[scenario.dataset];
}

/// The same examples, all of one class: a softmax over it has loss 0 and no gradient at all.
inline Dataset single_class(Dataset dataset) {
  dataset.shape.classes = 1;
  for (Examples* part : {&dataset.train, &dataset.test})
    std::fill(part->labels.begin(), part->labels.end(), 0);
  return dataset;
}

inline TrainingRun run_training(const Scenario& scenario) {
  const auto workers = static_cast<std::size_t>(scenario.workers);
  TrainingRun run{std::vector<std::vector<StepRecord>>(workers),
                  std::vector<std::vector<Account>>(workers)};
  const Dataset& dataset = small_dataset(scenario);
  run_in_process({.workers = scenario.workers}, [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    train(comm, scenario, dataset,
          [&](const Worker& worker) { run.steps[rank].push_back(record_step(worker)); });
    run.accounts[rank] = comm.steps();
  });
  return run;
}

inline TrainingRun run_training(const std::string& algorithm, int workers,
                                const std::string& model = "mlp:7-5-3") {
  return run_training(small_scenario(algorithm, workers, model));
}

/// Steps of every worker on models and data of the test's own, no parameters broadcast; describes
/// the last one.
inline std::vector<StepRecord> run_steps(const std::string& algorithm, int workers,
                                         const Dataset& dataset, Index batch_size,
                                         const std::function<std::unique_ptr<Model>()>& make,
                                         int steps = 1) {
  std::vector<StepRecord> last(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    const auto instance = make_algorithm(parse_algorithm_spec(algorithm));
    const auto model = make();
    const auto optimizer = make_optimizer({.name = "sgd", .learning_rate = 0.1});
    BatchSource batches(dataset, batch_size, comm.rank(), workers, 1);
    Worker worker{.comm = comm,
                  .model = *model,
                  .optimizer = *optimizer,
                  .batches = batches,
                  .seed = 1,
                  .batch_size = batch_size,
                  .global_batch = batch_size * workers,
                  .diagnose = true};
    for (; worker.step < steps; ++worker.step) instance->step(worker);
    last[static_cast<std::size_t>(comm.rank())] = record_step(worker);
  });
  return last;
}

/// Mean over the global batch of the workers' exact gradients.
inline Gradients exact_mean(const std::vector<StepRecord>& workers, Index global_batch) {
  Gradients mean = workers.front().local;
  for (std::size_t w = 1; w < workers.size(); ++w)
    for (std::size_t p = 0; p < mean.size(); ++p) mean[p] += workers[w].local[p];
  for (Matrix& m : mean) m /= static_cast<Scalar>(global_batch);
  return mean;
}

/// Frobenius norm of the difference over that of `b`, all matrices together.
inline double relative_difference(const std::vector<Matrix>& a, const std::vector<Matrix>& b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t p = 0; p < b.size(); ++p) {
    difference += (a.at(p) - b[p]).cast<double>().squaredNorm();
    norm += b[p].cast<double>().squaredNorm();
  }
  return std::sqrt(difference / norm);
}

/// The largest, over the steps, of relative_difference(applied, exact mean of the gradients).
inline double gradient_error(const TrainingRun& run, Index batch_size = 4) {
  double error = 0;
  for (std::size_t s = 0; s < run.steps.front().size(); ++s) {
    std::vector<StepRecord> workers;
    for (const auto& steps : run.steps) workers.push_back(steps[s]);
    const Index global_batch = batch_size * static_cast<Index>(workers.size());
    error = std::max(
        error, relative_difference(workers.front().applied, exact_mean(workers, global_batch)));
  }
  return error;
}

/// Whether all workers have bit-equal parameters after every step.
inline bool replicas_equal(const TrainingRun& run) {
  for (const auto& steps : run.steps)
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (steps[s].parameters != run.steps.front()[s].parameters) return false;
  return true;
}

}  // namespace gradwire
