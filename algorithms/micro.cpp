// MiCRO (Yoon & Oh, HiPC 2023) and its successor ExDyna (2024), after the authors' code: the
// gradient is cut into N parts, which go round the workers; each selects in its part alone what
// reaches a threshold, which one factor a step holds at the target density.  Selections are
// disjoint, so the union does not grow with N, and a worker scans d / N values.
//   micro   parts of equal size
//   exdyna  parts of whole blocks, which move between neighbours to even out the selections
// A worker that finds nothing sends one coordinate of its part (step mod size), as the authors do.
// The target k = floor(density d) is that of all workers together.  The union's entries are summed
// over all workers and leave every memory.
//
// start=authors: first threshold 1 / 2 sqrt(k).  start=fit (ours): the k-th largest magnitude of
// the worker's first gradient, so that short runs show the density of long ones; costs one top-k at
// step 0 (the authors' where that magnitude is 0 or not finite).
//
// Bytes per worker and step, with k_p selected in part p: (N-1)(8 + u max k_p) + 2(N-1)/N w sum
// k_p; 4(N-1) messages with a ring.  State: d Scalars.  Flops: a scan of d / N.  Metrics:
// threshold, and those of sparsifier.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "algorithms/partition.h"
#include "algorithms/sparsifier.h"

namespace gradwire {

namespace {

class Micro : public Sparsifier {
 public:
  explicit Micro(const Options& options)
      : Sparsifier(options, Exchange::kUnion),
        control_(options.choice("fine") == "symmetric"),
        fit_(options.choice("start") == "fit") {}

 protected:
  virtual std::vector<std::size_t> bounds(const SparseContext& context, std::size_t d) {
    return even_bounds(d, context.comm.size());
  }

  Choice select(SparseContext& context, std::span<const Scalar> values) final {
    Choice choice;
    target_ = target(context, values.size());
    if (!control_.started()) choice.mine.work += start(values);
    const auto parts = bounds(context, values.size());
    const auto p = static_cast<std::size_t>(
        owned_part(context.step, context.comm.rank(), context.comm.size()));
    const std::size_t begin = parts[p];
    const std::size_t size = parts[p + 1] - begin;
    Selection found = at_least(values.subspan(begin, size), control_.value());
    if (found.indices.empty() && size > 0)
      found.indices.push_back(
          static_cast<std::uint32_t>(static_cast<std::size_t>(context.step) % size));
    for (std::uint32_t& i : found.indices) i += static_cast<std::uint32_t>(begin);
    choice.mine.indices = std::move(found.indices);
    choice.mine.work += found.work;
    context.metrics["threshold"] = static_cast<double>(control_.value());
    return choice;
  }

  void learn(const SparseContext& /*context*/, const std::vector<std::size_t>& selected) override {
    double total = 0;
    for (const std::size_t k : selected) total += static_cast<double>(k);
    control_.update(total / static_cast<double>(target_));
  }

 private:
  Work start(std::span<const Scalar> values) {
    control_.start(static_cast<Scalar>(1 / (2 * std::sqrt(static_cast<double>(target_)))));
    if (!fit_) return {};
    const Selection largest = top_k(values, target_);
    Scalar smallest = std::numeric_limits<Scalar>::infinity();
    for (const std::uint32_t i : largest.indices)
      smallest = std::min(smallest, std::abs(values[i]));
    if (smallest > 0 && std::isfinite(smallest)) control_.start(smallest);
    return largest.work;
  }

  ThresholdControl control_;
  bool fit_;
  std::size_t target_ = 0;
};

class ExDyna final : public Micro {
 public:
  using Micro::Micro;

 private:
  std::vector<std::size_t> bounds(const SparseContext& context, std::size_t d) override {
    if (blocks_ == nullptr) blocks_ = std::make_unique<BlockPartition>(d, context.comm.size());
    if (!selected_.empty())
      blocks_->rebalance(selected_,
                         static_cast<double>(target(context, d)) / static_cast<double>(d));
    return blocks_->bounds();
  }
  void learn(const SparseContext& context, const std::vector<std::size_t>& selected) override {
    Micro::learn(context, selected);
    selected_.resize(selected.size());  // by part, from by rank
    const auto workers = static_cast<int>(selected.size());
    for (int w = 0; w < workers; ++w)
      selected_[static_cast<std::size_t>(owned_part(context.step, w, workers))] =
          selected[static_cast<std::size_t>(w)];
  }

  std::unique_ptr<BlockPartition> blocks_;
  std::vector<std::size_t> selected_;
};

std::vector<OptionSpec> options() {
  return {density_option(),
          plain_index_option(),
          all_reduce_option(),
          feedback_option(),
          {"start",
           "fit",
           "the first threshold: fit to the gradient, or the authors' constant",
           {"fit", "authors"}},
          {"fine",
           "authors",
           "threshold near the target: always up, as in the authors' code, or up and down",
           {"authors", "symmetric"}}};
}

}  // namespace

AlgorithmRow micro_row() {
  return {.name = "micro",
          .summary = "each worker selects by threshold in its own N-th of the gradient (MiCRO)",
          .options = options(),
          .make = make_sparse_algorithm<Micro>};
}

AlgorithmRow exdyna_row() {
  return {.name = "exdyna",
          .summary = "MiCRO with parts that adapt to the selections (ExDyna)",
          .options = options(),
          .make = make_sparse_algorithm<ExDyna>};
}

}  // namespace gradwire
