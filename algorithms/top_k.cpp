// Sparsifiers that select by magnitude, each worker on its own, with error feedback:
//   top-k       the k largest (Stich et al. 2018, "Sparsified SGD with memory"), of the whole
//               gradient or of every tensor (at least one each)
//   threshold   all that reach a fixed magnitude (Strom 2015)
//   gaussian-k  about k, by a Gaussian fit of the threshold (Shi et al. 2019)
//   gtop-k      the k largest of the sum, by a tree (Shi et al. 2019, gTop-k); what the tree drops
//               although it survives elsewhere is lost, as in the authors' code, or returned to the
//               memory of the worker that dropped it (leaked=return, ours)
//   dgc         Deep Gradient Compression (Lin et al. 2018): u = mu u + g accumulates in the memory
//               v; what is sent leaves v and, with masking, u.  Use with plain SGD.  We select the
//               exact top-k of every tensor where the authors sample a threshold, and clip nothing
//               unless asked (clip: largest norm of the worker's gradient, times N^-1/2).
//
// Bytes per worker and step (u bytes an index, w a value, U the union of the selections):
//   exchange=allgather  8(N-1) + the lists of all workers but the right neighbour's, k (u + w) each
//   exchange=union      (N-1)(8 + u max k) + 2(N-1)/N w |U|
//   gtop-k              k (u + w) up, but for worker 0, and as much to each child of the broadcast
// The union grows with N ("gradient build-up").  State: d Scalars (dgc: 2 d; without feedback
// none). Flops: selection.h.
#include <cmath>
#include <utility>

#include "algorithms/sparsifier.h"

namespace gradwire {

namespace {

class TopK : public Sparsifier {
 public:
  TopK(const Options& options, Exchange exchange)
      : Sparsifier(options, exchange),
        per_tensor_(options.choice("scope") == "tensor"),
        cost_(parse_selection_cost(options.choice("selection-cost"))) {}
  explicit TopK(const Options& options) : TopK(options, chosen_exchange(options)) {}

 protected:
  Choice select(SparseContext& context, std::span<const Scalar> values) override {
    if (!per_tensor_) return {top_k(values, target(context, values.size()), cost_)};
    Choice choice;
    for (std::size_t t = 0; t + 1 < context.tensors.size(); ++t) {
      const std::size_t begin = context.tensors[t];
      const auto tensor = values.subspan(begin, context.tensors[t + 1] - begin);
      const Selection best = top_k(tensor, target(context, tensor.size()), cost_);
      for (const std::uint32_t i : best.indices)
        choice.mine.indices.push_back(static_cast<std::uint32_t>(begin) + i);
      choice.mine.work += best.work;
    }
    return choice;
  }

 private:
  bool per_tensor_;
  SelectionCost cost_;
};

class GTopK final : public TopK {
 public:
  explicit GTopK(const Options& options) : TopK(options, Exchange::kTree) {}
};

class Dgc final : public TopK {
 public:
  explicit Dgc(const Options& options)
      : TopK(options),
        momentum_(static_cast<Scalar>(options.real("momentum", 0, 1))),
        masking_(options.flag("masking")),
        clip_(options.real("clip", 0, 1e30)) {}

  double state_bytes() const override { return TopK::state_bytes() + velocity_.bytes(); }

 protected:
  void accumulate(const SparseContext& context, std::span<const Scalar> gradient,
                  Scalar factor) override {
    std::vector<Scalar> g(gradient.begin(), gradient.end());
    const Scalar all = factor * clipping(gradient, context.comm.size());
    for (Scalar& x : g) x *= all;
    velocity_.decay_and_add(momentum_, g);
    memory_.add(velocity_.values(), 1);
  }
  void forget(const Coordinates& sent) override {
    memory_.clear(sent);
    if (masking_) velocity_.clear(sent);
  }

 private:
  Scalar clipping(std::span<const Scalar> gradient, int workers) const {
    if (clip_ == 0) return 1;
    const double length = norm(gradient);
    const double largest = clip_ / std::sqrt(static_cast<double>(workers));
    return length > largest ? static_cast<Scalar>(largest / length) : 1;
  }

  Scalar momentum_;
  bool masking_;
  double clip_;
  ErrorFeedback velocity_;
};

class Threshold final : public Sparsifier {
 public:
  explicit Threshold(const Options& options)
      : Sparsifier(options, chosen_exchange(options)),
        threshold_(static_cast<Scalar>(options.real("threshold", 0, 1e30))) {}

 protected:
  Choice select(SparseContext& context, std::span<const Scalar> values) override {
    context.metrics["threshold"] = static_cast<double>(threshold_);
    return {at_least(values, threshold_)};
  }

 private:
  Scalar threshold_;
};

class GaussianK final : public Sparsifier {
 public:
  explicit GaussianK(const Options& options) : Sparsifier(options, chosen_exchange(options)) {}

 protected:
  Choice select(SparseContext& context, std::span<const Scalar> values) override {
    GaussianSelection found = gaussian_k(values, target(context, values.size()));
    context.metrics["threshold"] = static_cast<double>(found.threshold);
    return {std::move(found.selection)};
  }
};

OptionSpec scope_option(std::string default_scope) {
  return {"scope",
          std::move(default_scope),
          "select from every tensor, or from the whole gradient",
          {"tensor", "global"}};
}

}  // namespace

AlgorithmRow top_k_row() {
  return {.name = "top-k",
          .summary = "each worker's k largest entries, with error feedback",
          .options = {density_option(), scope_option("global"), exchange_option(), index_option(),
                      all_reduce_option(), feedback_option(), selection_cost_option()},
          .make = make_sparse_algorithm<TopK>};
}

AlgorithmRow threshold_row() {
  return {.name = "threshold",
          .summary = "each worker's entries of at least a fixed magnitude, with error feedback",
          .options = {{"threshold", "0.001", "smallest magnitude to send, at least 0", {}},
                      exchange_option(),
                      index_option(),
                      all_reduce_option(),
                      feedback_option()},
          .make = make_sparse_algorithm<Threshold>};
}

AlgorithmRow gaussian_k_row() {
  return {.name = "gaussian-k",
          .summary = "about k entries, by a Gaussian estimate of their smallest magnitude",
          .options = {density_option(), exchange_option(), index_option(), all_reduce_option(),
                      feedback_option()},
          .make = make_sparse_algorithm<GaussianK>};
}

AlgorithmRow gtop_k_row() {
  return {.name = "gtop-k",
          .summary = "the k largest entries of the sum, merged in a tree (gTop-k)",
          .options = {density_option(),
                      scope_option("global"),
                      plain_index_option(),
                      feedback_option(),
                      selection_cost_option(),
                      warmup_option(),
                      {"leaked",
                       "drop",
                       "sums that a merge trims though others survive: drop, as in the authors' "
                       "code, or return to the memory",
                       {"drop", "return"}}},
          .make = make_sparse_algorithm<GTopK>};
}

AlgorithmRow dgc_row() {
  return {.name = "dgc",
          .summary = "Deep Gradient Compression: top-k of accumulated momentum; use optimizer sgd",
          .options = {density_option(),
                      scope_option("tensor"),
                      exchange_option(),
                      index_option(),
                      all_reduce_option(),
                      selection_cost_option(),
                      warmup_option(),
                      {"momentum", "0.9", "of the workers' velocities, from 0 to 1", {}},
                      {"masking", "on", "velocities of sent entries restart at 0", {"on", "off"}},
                      {"clip", "0", "largest gradient norm, divided by sqrt(N); 0: none", {}}},
          .make = make_sparse_algorithm<Dgc>};
}

}  // namespace gradwire
