// Sparsifiers whose coordinates all workers draw from one seed, so that nobody sends an index and
// values are summed by an ordinary all-reduce (Stich et al. 2018; block-random as in Xie et al.
// 2020), with error feedback:
//   random-k      k coordinates drawn anew every step
//   random-block  k neighbouring coordinates from a start drawn anew every step
// Bytes per worker and step: those of an all-reduce of k values; ring: 2(N-1)/N k w, 2(N-1)
// messages. State: d Scalars.  Work: drawing k numbers.
#include "algorithms/sparsifier.h"

namespace gradwire {

namespace {

template <Selection (*draw)(std::size_t d, std::size_t k, RandomStream)>
class SharedRandom final : public Sparsifier {
 public:
  explicit SharedRandom(const Options& options) : Sparsifier(options, Exchange::kShared) {}

 protected:
  Choice select(SparseContext& context, std::span<const Scalar> values) override {
    const RandomStream stream(context.seed, Purpose::kSelection,
                              static_cast<std::uint64_t>(context.step));
    return {draw(values.size(), target(context, values.size()), stream)};
  }
};

}  // namespace

AlgorithmRow random_k_row() {
  return {.name = "random-k",
          .summary = "k entries at coordinates that all workers draw from one seed",
          .options = {density_option(), all_reduce_option(), feedback_option()},
          .make = make_sparse_algorithm<SharedRandom<random_k>>};
}

AlgorithmRow random_block_row() {
  return {.name = "random-block",
          .summary = "k neighbouring entries from a start that all workers draw from one seed",
          .options = {density_option(), all_reduce_option(), feedback_option()},
          .make = make_sparse_algorithm<SharedRandom<random_block>>};
}

}  // namespace gradwire
