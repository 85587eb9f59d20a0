#include "algorithms/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "algorithms/collectives.h"
#include "algorithms/dry_run.h"
#include "algorithms/in_process.h"
#include "algorithms/memory.h"
#include "algorithms/replicas.h"
#include "models/cost_only.h"
#include "models/metrics.h"

namespace gradwire {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void broadcast_parameters(Communicator& comm, Model& model) {
  for (Parameter& p : model.mutable_parameters())
    tree_broadcast(comm, 0, writable_bytes_of(scalars(p.value)));
}

// What a figure about all workers needs of one of them.
struct Snapshot {
  std::vector<Matrix> values;
  Gradients applied;
};

std::vector<Matrix> parameter_values(const Model& model) {
  std::vector<Matrix> values;
  for (const Parameter& p : model.parameters()) values.push_back(p.value);
  return values;
}

// One figure per batch from snapshots of all workers, which reach a batch at different times.
class StepFigures {
 public:
  using Figure = std::function<double(const std::vector<Snapshot>& by_rank)>;
  StepFigures(const Scenario& scenario, Figure figure)
      : figure_(std::move(figure)),
        figures_(static_cast<std::size_t>(scenario.batches), kNaN),
        steps_(static_cast<std::size_t>(scenario.batches)),
        workers_(scenario.workers) {}

  void add(const Worker& worker, Snapshot snapshot) {
    const std::scoped_lock lock(mutex_);
    Step& step = steps_[static_cast<std::size_t>(worker.step)];
    step.by_rank.resize(static_cast<std::size_t>(workers_));
    step.by_rank[static_cast<std::size_t>(worker.comm.rank())] = std::move(snapshot);
    if (++step.arrived < workers_) return;
    figures_[static_cast<std::size_t>(worker.step)] = figure_(step.by_rank);
    step = {};
  }
  std::vector<double> take() { return std::move(figures_); }

 private:
  struct Step {
    std::vector<Snapshot> by_rank;
    int arrived = 0;
  };

  Figure figure_;
  std::mutex mutex_;
  std::vector<double> figures_;
  std::vector<Step> steps_;
  int workers_;
};

using Doubles = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<Doubles> sum_over_workers(const std::vector<Snapshot>& by_rank) {
  std::vector<Doubles> sum;
  for (const Matrix& m : by_rank.front().values) sum.emplace_back(m.cast<double>());
  for (std::size_t w = 1; w < by_rank.size(); ++w)
    for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += by_rank[w].values[p].cast<double>();
  return sum;
}

// Compares the exact mean of the gradients with what rank 0 applied.
double gradient_error(const std::vector<Snapshot>& by_rank, double global_batch) {
  const auto sum = sum_over_workers(by_rank);
  const Gradients& applied = by_rank.front().applied;
  double difference = 0;
  double norm = 0;
  for (std::size_t p = 0; p < applied.size(); ++p) {
    const Doubles exact = sum[p] / global_batch;
    difference += (applied[p].cast<double>() - exact).squaredNorm();
    norm += exact.squaredNorm();
  }
  return norm > 0 ? std::sqrt(difference / norm) : kNaN;
}

// Root mean square over the workers of the distance from the mean model.
double consensus_distance(const std::vector<Snapshot>& by_rank) {
  const auto sum = sum_over_workers(by_rank);
  const auto workers = static_cast<double>(by_rank.size());
  double squares = 0;
  for (const Snapshot& worker : by_rank)
    for (std::size_t p = 0; p < sum.size(); ++p)
      squares += (worker.values[p].cast<double>() - sum[p] / workers).squaredNorm();
  return std::sqrt(squares / workers);
}

}  // namespace

std::uint64_t parameter_hash(const Model& model) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a over 32-bit words
  for (const Parameter& p : model.parameters()) {
    const auto bytes = bytes_of(scalars(p.value));
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + i, 4);
      hash = (hash ^ word) * 1099511628211ULL;
    }
  }
  return hash;
}

WorkerOutcome train(Communicator& comm, const Scenario& scenario, const Dataset& dataset,
                    const StepHook& hook, Replicas* replicas, Start start) {
  const auto algorithm = make_algorithm(scenario.algorithm);
  const auto optimizer = make_optimizer(scenario.optimizer);
  // Each worker draws its own initial parameters: only the broadcast makes them equal.
  const auto rank = static_cast<std::uint64_t>(start == Start::kBroadcast ? comm.rank() : 0);
  const auto model = make_model(scenario.model, dataset.shape, scenario.seed + (rank << 32U));
  BatchSource batches(dataset, scenario.batch_size, comm.rank(), comm.size(), scenario.seed,
                      scenario.split);
  Worker worker{.comm = comm,
                .model = *model,
                .optimizer = *optimizer,
                .batches = batches,
                .seed = scenario.seed,
                .batch_size = scenario.batch_size,
                .global_batch = scenario.batch_size * comm.size(),
                .replicas = replicas,
                .diagnose = scenario.gradient_error};

  if (start == Start::kBroadcast) broadcast_parameters(comm, *model);
  if (replicas != nullptr) replicas->join(*model, *optimizer);
  comm.end_step();

  WorkerOutcome outcome;
  for (worker.step = 0; worker.step < scenario.batches; ++worker.step) {
    worker.metrics.clear();
    algorithm->step(worker);
    comm.end_step();
    if (model->has_loss())
      outcome.loss.push_back(worker.loss_sum / static_cast<double>(scenario.batch_size));
    for (const auto& [name, value] : worker.metrics) {
      auto& series = outcome.metrics[name];
      series.resize(static_cast<std::size_t>(worker.step), kNaN);
      series.push_back(value);
    }
    const std::int64_t done = worker.step + 1;
    if (comm.rank() == 0 && scenario.evaluate_every > 0 &&
        (done % scenario.evaluate_every == 0 || done == scenario.batches)) {
      const Evaluation e = evaluate(*model, dataset.test);
      outcome.evaluations.push_back(
          {.batch = done, .loss = e.loss, .accuracy = e.accuracy, .macro_auc = e.macro_auc});
    }
    if (hook) hook(worker);
  }
  if (scenario.model.values) outcome.parameter_hash = parameter_hash(*model);
  outcome.memory.state_bytes = algorithm->state_bytes();
  outcome.memory.total_bytes = worker_memory_bytes(scenario, *model) + outcome.memory.state_bytes;
  return outcome;
}

void check_model_use(const Scenario& scenario, const Model& model) {
  if (!model.has_loss() && scenario.evaluate_every > 0)
    throw std::invalid_argument("evaluate-every: " + scenario.model.name +
                                " is a cost-only model, which has nothing to evaluate");
  if (model.forward_work(1).seconds > 0 && scenario.compute.mode == ComputeSpec::Mode::kGiven)
    throw std::invalid_argument("compute: " + scenario.model.name +
                                " gives the times of its layers; allowed: flops");
  if (scenario.model.values) return;
  if (scenario.gradient_error)
    throw std::invalid_argument("gradient-error: there are no gradients with --math none");
  if (scenario.compute.mode == ComputeSpec::Mode::kMeasured)
    throw std::invalid_argument("compute: nothing can be measured with --math none");
  std::string able;
  for (const AlgorithmRow& row : algorithm_registry()) {
    if (!row.sizes_only) continue;
    if (row.name == scenario.algorithm.name) return;
    able += (able.empty() ? "" : ", ") + row.name;
  }
  throw std::invalid_argument("math: none is not implemented for " + scenario.algorithm.name +
                              "; sizes alone are for: " + able);
}

Rehearsal rehearse(const Scenario& scenario, const Dataset& dataset) {
  make_algorithm(scenario.algorithm);  // bad options and models fail here, before any thread starts
  const auto model = make_model_for_checks(scenario.model, dataset.shape);
  check_model_use(scenario, *model);
  Rehearsal rehearsal;
  rehearsal.recording.batch_work = {model->forward_work(scenario.batch_size),
                                    model->backward_work(scenario.batch_size)};
  rehearsal.workers.resize(static_cast<std::size_t>(std::max(scenario.workers, 0)));
  const auto global_batch = static_cast<double>(scenario.batch_size * scenario.workers);
  StepFigures errors(scenario, [&](const auto& all) { return gradient_error(all, global_batch); });
  StepFigures distances(scenario, consensus_distance);
  const bool gossip = !find_algorithm(scenario.algorithm.name).consensus;
  const StepHook hook = [&](Worker& worker) {
    if (scenario.gradient_error)
      errors.add(worker, {worker.local_gradient, worker.applied_gradient});
    if (gossip) distances.add(worker, {parameter_values(worker.model), {}});
  };
  // Measured times are of every worker's own updates; gossiping replicas differ.
  const bool measured = scenario.compute.mode == ComputeSpec::Mode::kMeasured;
  const bool shared = scenario.model.values && !measured && !gossip;
  Replicas replicas(scenario.workers);
  const auto train_one = [&](Communicator& comm) {
    rehearsal.workers[static_cast<std::size_t>(comm.rank())] =
        train(comm, scenario, dataset, hook, shared ? &replicas : nullptr);
  };
  if (!scenario.model.values) {
    for (int rank = 0; rank < scenario.workers; ++rank)
      rehearsal.recording.workers.push_back(record_dry(rank, scenario.workers, train_one));
    return rehearsal;
  }
  const KeptPages pages;
  run_in_process({.workers = scenario.workers,
                  .measure_cpu = measured,
                  .recordings = &rehearsal.recording.workers},
                 train_one);
  if (scenario.gradient_error) rehearsal.gradient_relative_error = errors.take();
  if (gossip) {
    const std::vector<double> all = distances.take();
    for (WorkerOutcome& worker : rehearsal.workers) worker.metrics["consensus_distance"] = all;
  }
  return rehearsal;
}

Summary summarize(std::vector<double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(n);
  summary.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.samples = std::move(samples);
  return summary;
}

void describe(const Rehearsal& rehearsal, Result& result) {
  const auto workers = static_cast<double>(rehearsal.workers.size());
  for (const WorkerOutcome& worker : rehearsal.workers) {
    result.loss.resize(worker.loss.size());
    for (std::size_t i = 0; i < worker.loss.size(); ++i) result.loss[i] += worker.loss[i] / workers;
    for (const auto& [name, series] : worker.metrics) {
      auto& mean = result.metrics[name];
      mean.resize(std::max(mean.size(), series.size()));
      for (std::size_t i = 0; i < series.size(); ++i) mean[i] += series[i] / workers;
    }
    if (worker.memory.total_bytes > result.memory.total_bytes) result.memory = worker.memory;
    if (worker.parameter_hash != rehearsal.workers.front().parameter_hash)
      result.replicas_equal = false;
  }
  result.parameter_hash = rehearsal.workers.front().parameter_hash;
  result.evaluations = rehearsal.workers.front().evaluations;
  result.gradient_relative_error = rehearsal.gradient_relative_error;
}

void describe_times(const std::vector<std::vector<Account>>& steps_by_worker, Result& result) {
  const auto total = [](const std::array<double, kPhases>& phase_s, Phase phase) {
    return phase_s[static_cast<std::size_t>(phase)];
  };
  const std::size_t steps = steps_by_worker.front().size();
  std::vector<double> batch, compute, optimizer, compression, reduction, exposed;
  double previous_end_s = 0;
  for (std::size_t s = 0; s < steps; ++s) {
    double end_s = 0;
    for (const auto& worker : steps_by_worker) end_s = std::max(end_s, worker[s].time_s);
    if (s == 0) {
      result.setup_time_s = end_s;
    } else {
      struct Split {
        double compute, optimizer, compression, reduction;
        double busy() const { return compute + compression + reduction; }
      };
      Split busiest{-1, 0, 0, 0};
      for (const auto& worker : steps_by_worker) {
        const auto spent = [&](Phase phase) {
          return total(worker[s].phase_s, phase) - total(worker[s - 1].phase_s, phase);
        };
        const Split split{
            spent(Phase::kForward) + spent(Phase::kBackward) + spent(Phase::kOptimizer),
            spent(Phase::kOptimizer), spent(Phase::kCompression), spent(Phase::kReduction)};
        if (split.busy() > busiest.busy()) busiest = split;
      }
      batch.push_back(end_s - previous_end_s);
      compute.push_back(busiest.compute);
      optimizer.push_back(busiest.optimizer);
      compression.push_back(busiest.compression);
      reduction.push_back(busiest.reduction);
      exposed.push_back(std::max(0.0, batch.back() - busiest.busy()));
    }
    previous_end_s = end_s;
  }
  for (EvaluationPoint& point : result.evaluations) {
    for (const auto& worker : steps_by_worker)
      point.time_s = std::max(point.time_s, worker[static_cast<std::size_t>(point.batch)].time_s);
    point.time_s -= result.setup_time_s;
  }
  result.bytes_sent_by_worker.clear();
  result.messages_sent_by_worker.clear();
  const auto batches = static_cast<double>(steps - 1);
  for (const auto& worker : steps_by_worker) {
    const Traffic& first = worker.front().traffic;
    const Traffic& last = worker.back().traffic;
    result.bytes_sent_by_worker.push_back(static_cast<double>(last.bytes_sent - first.bytes_sent) /
                                          batches);
    result.messages_sent_by_worker.push_back(
        static_cast<double>(last.messages_sent - first.messages_sent) / batches);
  }
  result.batch_time_s = summarize(std::move(batch));
  result.compute_time_s = summarize(std::move(compute));
  result.optimizer_time_s = summarize(std::move(optimizer));
  result.compression_time_s = summarize(std::move(compression));
  result.reduction_time_s = summarize(std::move(reduction));
  result.exposed_communication_time_s = summarize(std::move(exposed));
}

}  // namespace gradwire
