// Gossip over a graph: every worker has a model of its own, takes an optimiser step with its own
// gradient and averages models with its peers.  Replicas differ; they only stay close.
//   d-psgd  x_i <- sum_j W_ij (x_j - lr g_j); with order=mix-first sum_j W_ij x_j - lr g_i,
//           exchanged while the gradient is computed (Lian et al. 2017)
//   sgp     stochastic gradient push (Assran et al. 2019): the same with column sums of 1 only, and
//           a push-sum weight w that is mixed like x; gradients are taken at z = x / w, which is
//           what the model holds; with order=mix-first the exchange overlaps with the gradient as
//           in overlap SGP, but all models that are mixed are of the same age
//
// Messages per worker and step: out_i, its peers (mixing.h; one-peer: 1, ring: 2, complete: N-1).
// Bytes: out_i d w, sgp: out_i (d + 1) w.  State: sgp the weight, besides the optimiser's.  Flops:
// 2 d per model mixed.  Metrics: push_weight (sgp); consensus_distance where all workers are in one
// process (training.cpp).
#include "algorithms/gradient_parts.h"
#include "algorithms/mixing.h"

namespace gradwire {

namespace {

Gradients local_mean_gradients(Worker& worker) {
  return local_gradients(worker, 1 / static_cast<double>(worker.batch_size));
}

OptionSpec order_option() {
  return {"order",
          "step-first",
          "mix-first averages the models before the step, during the gradient",
          {"step-first", "mix-first"}};
}

class DPsgd final : public Algorithm {
 public:
  explicit DPsgd(const Options& options)
      : graph_(parse_graph(options.choice("graph"))),
        mix_first_(options.choice("order") == "mix-first") {}

  void step(Worker& worker) override {
    if (mix_first_) {
      const std::vector<Scalar> mine = flat_parameters(worker.model);
      std::vector<Scalar> mixed;
      worker.comm.start([&](Communicator& lane) { mixed = mix(lane, mine, graph_, worker.step); });
      const Gradients gradients = local_mean_gradients(worker);
      worker.comm.finish();
      set_parameters(worker.model, mixed);
      gradwire::apply(worker, gradients);
    } else {
      gradwire::apply(worker, local_mean_gradients(worker));
      set_parameters(worker.model,
                     mix(worker.comm, flat_parameters(worker.model), graph_, worker.step));
    }
  }

 private:
  Graph graph_;
  bool mix_first_;
};

class Sgp final : public Algorithm {
 public:
  explicit Sgp(const Options& options)
      : graph_(parse_graph(options.choice("graph"))),
        mix_first_(options.choice("order") == "mix-first") {}

  void step(Worker& worker) override {
    std::vector<Scalar> mixed;
    const auto push = [&](Communicator& comm, const std::vector<Scalar>& x) {
      mixed = mix(comm, x, graph_, worker.step);
    };
    if (mix_first_) {
      const std::vector<Scalar> mine = pushed(worker);
      worker.comm.start([&](Communicator& lane) { push(lane, mine); });
      const Gradients gradients = local_mean_gradients(worker);
      worker.comm.finish();
      take(worker, mixed);
      gradwire::apply(worker, gradients);
    } else {
      const Gradients gradients = local_mean_gradients(worker);
      scale(worker, weight_);
      gradwire::apply(worker, gradients);
      std::vector<Scalar> mine = flat_parameters(worker.model);
      mine.push_back(weight_);
      push(worker.comm, mine);
      take(worker, mixed);
    }
    scale(worker, 1 / weight_);
    worker.metrics["push_weight"] = static_cast<double>(weight_);
  }

  double state_bytes() const override { return sizeof weight_; }

 private:
  // What is mixed, of a model that holds z: x = w z and, after it, w.
  std::vector<Scalar> pushed(Worker& worker) const {
    std::vector<Scalar> x = flat_parameters(worker.model);
    if (weight_ != 1) {
      for (Scalar& value : x) value *= weight_;
      worker.comm.charge(Phase::kReduction, pass_work(static_cast<Index>(x.size()), 1, 2));
    }
    x.push_back(weight_);
    return x;
  }

  void take(Worker& worker, std::vector<Scalar>& mixed) {
    weight_ = mixed.back();
    mixed.pop_back();
    set_parameters(worker.model, mixed);
  }

  // Between z, which the model holds, and x = w z, which is mixed.
  static void scale(Worker& worker, Scalar factor) {
    if (factor == 1) return;
    for (Parameter& p : worker.model.mutable_parameters()) p.value *= factor;
    worker.comm.charge(Phase::kReduction, pass_work(worker.model.parameter_count(), 1, 2));
  }

  Graph graph_;
  bool mix_first_;
  Scalar weight_ = 1;
};

}  // namespace

AlgorithmRow d_psgd_row() {
  return {.name = "d-psgd",
          .summary = "every worker averages its model with its neighbours' (D-PSGD)",
          .options = {{"graph",
                       "ring",
                       "who averages with whom",
                       {"ring", "torus", "exponential", "one-peer", "complete"}},
                      order_option()},
          .consensus = false,
          .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
            return std::make_unique<DPsgd>(options);
          }};
}

AlgorithmRow sgp_row() {
  return {.name = "sgp",
          .summary = "stochastic gradient push: models and push-sum weights go to changing peers",
          .options = {{"graph", "one-peer", "who sends to whom", graph_names()}, order_option()},
          .consensus = false,
          .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
            return std::make_unique<Sgp>(options);
          }};
}

}  // namespace gradwire
