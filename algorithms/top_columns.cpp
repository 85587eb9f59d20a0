// Top-columns: the rank-dAD paper's baseline that sends the first k columns of the transposed
// activations and deltas, i.e. the first k rows of the batch, not the largest (Baker et al., arXiv
// 2102.09631; authors' code: bbradt/catalyst-dad `topk`, k = 3).  For layers applied to several
// positions these are the first k rows of the flattened batch.
//
// Per linear map, last layer first, after back-propagation: rank-dAD's one-way exchange
// (factor_exchange.h) of the k rows, then G = (1/N) sum of A_k^T D_k; the bias gradient is the
// column sums of the D_k.  rescale=none keeps the authors' scale, deltas divided by the whole batch
// though only k rows count (k/B of an unbiased estimate); rescale=batch-over-k makes up for it.
// Parameters outside linear maps go by one ring all-reduce, or not at all (direct=local, as the
// authors').
//
// Sent per worker and step, with N workers, L maps, k' = min(k, rows), s bytes a number:
// L (2(N-1) + messages of all_reduce_max) messages, (N-1) k' s sum (in + out) bytes plus those of
// all_reduce_max.  Flops: 2 N k' in out per map.  State: none.
#include <algorithm>

#include "algorithms/factor_exchange.h"
#include "algorithms/gradient_parts.h"

namespace gradwire {

namespace {

class TopColumns final : public Algorithm {
 public:
  explicit TopColumns(const Options& options)
      : k_(options.integer("k", 1, 1 << 20)),
        rescale_(options.choice("rescale") == "batch-over-k"),
        authors_scale_(options.flag("authors-scale")),
        direct_(options.choice("direct") == "local" ? nullptr : ring_all_reduce) {}

  void step(Worker& worker) override {
    BackwardPass pass = collect_backward(worker);
    for (const LayerTrace& trace : pass.traces) {
      const Index k = std::min(k_, trace.delta.rows());
      const Factors all =
          all_gather_factors(worker.comm, {trace.activation.topRows(k), trace.delta.topRows(k)});
      double factor =
          1 / static_cast<double>(authors_scale_ ? worker.batch_size : worker.global_batch);
      if (rescale_) factor *= static_cast<double>(trace.delta.rows()) / static_cast<double>(k);
      form_gradients(worker.comm, map_of(worker.model, trace), all.activation, all.delta, factor,
                     pass.gradients);
    }
    mean_direct_gradients(worker, direct_, pass.gradients);
    gradwire::apply(worker, pass.gradients);
  }

 private:
  Index k_;
  bool rescale_;
  bool authors_scale_;
  AllReduce direct_;
};

}  // namespace

AlgorithmRow top_columns_row() {
  return {
      .name = "top-columns",
      .summary = "the batch's first k activations and deltas only (rank-dAD paper's baseline)",
      .options = {{"k", "3", "rows of the batch that are sent, at least 1", {}},
                  {"rescale",
                   "none",
                   "scale of the estimate: the authors', or unbiased",
                   {"none", "batch-over-k"}},
                  {"authors-scale", "off", "do not divide by the number of workers", {"on", "off"}},
                  direct_option()},
      .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
        return std::make_unique<TopColumns>(options);
      }};
}

}  // namespace gradwire
