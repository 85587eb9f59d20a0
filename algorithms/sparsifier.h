// The frame of all sparsifiers: add the gradient to the error-feedback memory, select coordinates,
// sum the selected entries over the workers, forget what was sent, let the optimiser step with the
// mean.  A sparsifier adds how it selects; sparse_exchange.h has the bytes.
//
// Gradients are means over the worker's own batch, so that thresholds mean the same for any batch
// size.  State per worker: d Scalars.  Work besides selection and exchange: passes over d.
//
// Metrics per step: density (coordinates applied / d) and target_density, union_size (the number
// applied), selected (by this worker, with an index), padding_waste (exchange=union),
// residual_norm.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/error_feedback.h"
#include "algorithms/gradient_parts.h"
#include "algorithms/sparse_exchange.h"

namespace gradwire {

/// What a sparsifier may know besides the gradient.
struct SparseContext {
  Communicator& comm;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  const std::vector<std::size_t>& tensors;  ///< tensor p is [tensors[p], tensors[p + 1])
  std::map<std::string, double>& metrics;
};

class Sparsifier {
 public:
  /// How selections meet.
  enum class Exchange { kAllGather, kUnion, kShared, kTree };

  virtual ~Sparsifier() = default;

  /// Adds `factor` times the gradient to the memory and returns the sum over the workers of what
  /// they send: the same on all.
  SparseList reduce(SparseContext& context, std::span<const Scalar> gradient, Scalar factor = 1);

  /// What has not been sent.
  const ErrorFeedback& memory() const { return memory_; }
  /// As of an Algorithm.
  virtual double state_bytes() const { return feedback_ ? memory_.bytes() : 0; }

 protected:
  struct Choice {
    Selection mine;
    Coordinates common = {};  ///< sent by all, known to all (exchange=union only)
  };

  /// Reads those of the options below that are declared.
  Sparsifier(const Options& options, Exchange exchange);

  virtual Choice select(SparseContext& context, std::span<const Scalar> values) = 0;
  /// Hears how many coordinates each worker selected.
  virtual void learn(const SparseContext& /*context*/,
                     const std::vector<std::size_t>& /*selected*/) {}
  virtual void accumulate(const SparseContext& context, std::span<const Scalar> gradient,
                          Scalar factor);
  virtual void forget(const Coordinates& sent);

  /// max(1, floor(density d)), or more in the warm-up.
  std::size_t target(const SparseContext& context, std::size_t d) const;

  ErrorFeedback memory_;

 private:
  SparseSum exchange(SparseContext& context, const Choice& choice);

  Exchange exchange_;
  double density_;  ///< 0: has no target
  std::int64_t warmup_steps_ = 0;
  bool feedback_ = true;
  bool return_leaked_ = false;
  IndexCode index_ = IndexCode::kInt32;
  AllReduce all_reduce_ = ring_all_reduce;
};

/// A training algorithm around a sparsifier.
class SparseAlgorithm final : public Algorithm {
 public:
  SparseAlgorithm(std::unique_ptr<Sparsifier> sparsifier, const Options& options);
  void step(Worker& worker) override;
  double state_bytes() const override { return sparsifier_->state_bytes(); }

  std::unique_ptr<Sparsifier> take_sparsifier() { return std::move(sparsifier_); }

 private:
  std::unique_ptr<Sparsifier> sparsifier_;
  bool rate_inside_;
};

/// The bare sparsifier of a specification.  Throws std::invalid_argument if it is none.
std::unique_ptr<Sparsifier> make_sparsifier(const AlgorithmSpec& spec);

template <class S>
std::unique_ptr<Algorithm> make_sparse_algorithm(const Options& options) {
  return std::make_unique<SparseAlgorithm>(std::make_unique<S>(options), options);
}

/// Offsets of the model's parameters in a flat buffer; the last one is its size.
std::vector<std::size_t> tensor_offsets(const Model& model);

// Options that several sparsifiers declare.
OptionSpec density_option();
OptionSpec feedback_option();
OptionSpec exchange_option();     ///< allgather or union
OptionSpec index_option();        ///< any code
OptionSpec plain_index_option();  ///< int32 or int64
OptionSpec all_reduce_option();
OptionSpec selection_cost_option();
OptionSpec warmup_option();

/// The exchange that exchange_option() gave.
Sparsifier::Exchange chosen_exchange(const Options& options);

}  // namespace gradwire
