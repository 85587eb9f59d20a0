// DEFT (Yoon & Oh, ICPP 2023), after the authors' code: pieces of layers share out the k
// coordinates in proportion to their norms, and the workers share out the pieces, so that
// selections are disjoint and a worker's exact top-k covers about d / N values.
//
// Every step each worker takes the norms of all pieces of its own memory and the counts that follow
// (deft_counts): a pass over all d values, in the authors' code as well, that does not become
// cheaper with N as the selection does.  Worker step mod N packs the pieces into N bins by the cost
// size log2 count (lpt_bins) and broadcasts the bins: N + L int32.  Worker r selects in bin (step +
// r) mod N by its own counts.  Pieces that give all their values on the packing worker are in no
// bin: everyone sends them, without an index.
//
// Bytes per worker and step: the broadcast (binomial, 4(N + L) a message), (N-1)(8 + u max k_r),
// and 2(N-1)/N w |U| with U the union and the pieces sent whole.  State: d Scalars.  Flops: norms
// 2d, top-k of the bin.
#include <algorithm>
#include <cmath>

#include "algorithms/partition.h"
#include "algorithms/sparsifier.h"

namespace gradwire {

namespace {

class Deft final : public Sparsifier {
 public:
  explicit Deft(const Options& options)
      : Sparsifier(options, Exchange::kUnion),
        cost_(parse_selection_cost(options.choice("selection-cost"))) {}

 protected:
  Choice select(SparseContext& context, std::span<const Scalar> values) override {
    if (bounds_.empty()) bounds_ = deft_pieces(context.tensors, context.comm.size());
    const auto piece = [&](std::size_t p) {
      return values.subspan(bounds_[p], bounds_[p + 1] - bounds_[p]);
    };
    std::vector<double> norms;
    for (std::size_t p = 0; p + 1 < bounds_.size(); ++p) norms.push_back(norm(piece(p)));
    const auto counts = deft_counts(norms, bounds_, target(context, values.size()));
    context.comm.charge(Phase::kCompression, pass_work(static_cast<Index>(values.size()), 2, 1));

    const Plan plan = agree(context, counts);
    Choice choice;
    for (const std::size_t p : plan.mine) {
      const Selection best = top_k(piece(p), counts[p], cost_);
      append(choice.mine.indices, p, best.indices);
      choice.mine.work += best.work;
    }
    for (const std::size_t p : plan.whole)
      append(choice.common, p, top_k(piece(p), piece(p).size()).indices);
    return choice;
  }

 private:
  struct Plan {
    std::vector<std::size_t> mine;   // pieces that this worker selects from, ascending
    std::vector<std::size_t> whole;  // pieces that everyone sends whole
  };

  void append(Coordinates& out, std::size_t p, const Coordinates& within) const {
    for (const std::uint32_t i : within) out.push_back(static_cast<std::uint32_t>(bounds_[p]) + i);
  }

  // The packing worker's bins: their sizes, then their pieces, then -1.
  std::vector<std::int32_t> pack(const std::vector<std::size_t>& counts, int workers) const {
    std::vector<std::size_t> packed;
    std::vector<double> costs;
    for (std::size_t p = 0; p < counts.size(); ++p) {
      const std::size_t size = bounds_[p + 1] - bounds_[p];
      if (counts[p] == size) continue;
      packed.push_back(p);
      const double depth = counts[p] > 1 ? std::log2(static_cast<double>(counts[p])) : 1;
      costs.push_back(static_cast<double>(size) * depth);
    }
    std::vector<std::int32_t> message;
    message.reserve(static_cast<std::size_t>(workers) + counts.size());
    const auto bins = lpt_bins(costs, workers);
    for (const auto& bin : bins) message.push_back(static_cast<std::int32_t>(bin.size()));
    for (const auto& bin : bins)
      for (const std::size_t item : bin) message.push_back(static_cast<std::int32_t>(packed[item]));
    message.resize(static_cast<std::size_t>(workers) + counts.size(), -1);
    return message;
  }

  Plan agree(const SparseContext& context, const std::vector<std::size_t>& counts) const {
    const int workers = context.comm.size();
    const int packer = static_cast<int>(context.step % workers);
    std::vector<std::int32_t> message(static_cast<std::size_t>(workers) + counts.size());
    if (context.comm.rank() == packer) message = pack(counts, workers);
    tree_broadcast(context.comm, packer, writable_bytes_of(std::span(message)));

    Plan plan;
    std::vector<bool> packed(counts.size());
    const int own = owned_part(context.step, context.comm.rank(), workers);
    auto next = message.begin() + workers;
    for (int bin = 0; bin < workers; ++bin)
      for (std::int32_t i = 0; i < message[static_cast<std::size_t>(bin)]; ++i) {
        const auto p = static_cast<std::size_t>(*next++);
        packed.at(p) = true;
        if (bin == own) plan.mine.push_back(p);
      }
    for (std::size_t p = 0; p < packed.size(); ++p)
      if (!packed[p]) plan.whole.push_back(p);
    std::sort(plan.mine.begin(), plan.mine.end());
    return plan;
  }

  SelectionCost cost_;
  std::vector<std::size_t> bounds_;  // of the pieces
};

}  // namespace

AlgorithmRow deft_row() {
  return {.name = "deft",
          .summary = "layers share out k by their norms, workers share out the layers (DEFT)",
          .options = {density_option(), plain_index_option(), all_reduce_option(),
                      feedback_option(), selection_cost_option()},
          .make = make_sparse_algorithm<Deft>};
}

}  // namespace gradwire
