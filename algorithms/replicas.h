// Workers in one process whose replicas are bit-equal share one copy of the parameters and of the
// optimiser's state, and one of them computes each update for all.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>

#include "models/optimizer.h"

namespace gradwire {

class Replicas {
 public:
  explicit Replicas(int workers) : workers_(workers) {}

  /// Every worker, once, after the initial broadcast: from here on it shares the parameters of a
  /// worker that has the same, bit for bit.
  void join(Model& model, Optimizer& optimizer);

  /// Every worker, once a step: the optimiser's step, computed once for all workers that shared
  /// their parameters before it and bring the same gradients, bit for bit.
  void step(std::int64_t step, Model& model, Optimizer& optimizer, const Gradients& gradients);

 private:
  struct Digest {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Digest&) const = default;
  };
  struct State {
    ParameterSet parameters;
    CopyOnWrite<Optimizer::State> optimizer;
  };
  struct Update {
    Digest input;
    State before;
    State after;
    enum { kComputing, kDone, kFailed } progress = kComputing;
  };
  struct Step {
    int left = 0;
    std::list<Update> updates;
  };

  template <typename Matrices, typename Get>
  static Digest digest(const Matrices& matrices, const Get& get);
  // Brings model and optimiser from `before` on: by `compute`, or as the first worker with the same
  // input and the same `before` (where both share it) did.
  void advance(std::int64_t step, const Digest& input, Model& model, Optimizer& optimizer,
               const std::function<void()>& compute);

  int workers_;
  std::mutex mutex_;
  std::condition_variable progressed_;
  std::map<std::int64_t, Step> steps_;
};

}  // namespace gradwire
