// edAD: dAD at about half the traffic (Baker et al., arXiv 2102.09631; the authors' code:
// bbradt/edad, a simulation in one process).  Workers exchange the input activations of every
// linear map, but the deltas of the last one only; each recomputes the other deltas for the stacked
// rows of all workers, D_{i-1} = (D_i W_i^T) * phi'(A_{i-1}), and forms A^T D over the global
// batch.
//
// Exact wherever the network is a chain of row-wise layers; refuses others.  One ring all-gather
// per linear map, last layer first, on the second lane while back-propagation goes on (overlap=on)
// or after it.  A worker's own back-propagation still runs, as in the authors' code, since it hands
// out the activations.  Parameters outside linear maps go by one ring all-reduce.
//
// Sent per worker and step, with N workers, R rows each, L maps, s bytes per number, C outputs of
// the last map: (N-1) L messages, (N-1) R s (sum(in) + C) bytes.  State: none.  Flops on every
// worker: 2 N R in out per map for the gradients and again, but for the first map, for the deltas;
// charged as back-propagation.
#include <utility>

#include "algorithms/gradient_parts.h"

namespace gradwire {

namespace {

class Edad final : public Algorithm {
 public:
  explicit Edad(const Options& options) : overlap_(options.flag("overlap")) {}

  void step(Worker& worker) override {
    refuse_unless_chain(worker.model);
    const std::size_t last = worker.model.linear_maps().size() - 1;
    Gradients gradients(worker.model.parameters().size());
    std::vector<std::vector<std::byte>> blocks(last + 1);  // mine, then everyone's, per map
    Overlap overlap(worker.comm, overlap_);
    BackwardSink sink;
    sink.linear = [&](const LayerTrace& trace, const Work& /*work*/) {
      const auto map = static_cast<std::size_t>(trace.map);
      append(blocks[map], trace.activation);
      if (map == last) append(blocks[map], trace.delta);
      worker.comm.charge(Phase::kReduction,
                         {.flops = 0, .memory_bytes = 2 * static_cast<double>(blocks[map].size())});
      overlap.start([&block = blocks[map]](Communicator& comm) {
        const std::vector<std::size_t> sizes(static_cast<std::size_t>(comm.size()), block.size());
        block = ring_all_gather(comm, block, sizes);
      });
    };
    sink.direct = [&](int parameter, const Matrix& gradient, const Work& /*work*/) {
      gradients[static_cast<std::size_t>(parameter)] = gradient;
    };
    backpropagate(worker, sink);
    overlap.finish();
    form(worker, blocks, gradients);
    mean_direct_gradients(worker, ring_all_reduce, gradients);
    gradwire::apply(worker, gradients);
  }

 private:
  // previous_delta() throws where the network is no chain, for no rows too.
  static void refuse_unless_chain(const Model& model) {
    for (std::size_t i = 1; i < model.linear_maps().size(); ++i) {
      const LinearMap& map = model.linear_maps()[i];
      model.previous_delta(static_cast<int>(i), Matrix(0, map.out), Matrix(0, map.in));
    }
  }

  // Takes the stacked rows of all workers back through the network.
  static void form(Worker& worker, const std::vector<std::vector<std::byte>>& blocks,
                   Gradients& gradients) {
    const std::vector<LinearMap>& maps = worker.model.linear_maps();
    const auto numbers = static_cast<Index>(blocks.back().size() / sizeof(Scalar));
    const Index rows = numbers / (maps.back().in + maps.back().out);  // of all workers
    const double factor = 1 / static_cast<double>(worker.global_batch);
    Matrix delta(rows, maps.back().out);
    for (std::size_t i = maps.size(); i-- > 0;) {
      Matrix activation(rows, maps[i].in);
      std::span<const std::byte> bytes = blocks[i];
      for (Index w = 0, n = worker.comm.size(); w < n; ++w) {
        take_rows(bytes, activation, w * rows / n, rows / n);
        if (i + 1 == maps.size()) take_rows(bytes, delta, w * rows / n, rows / n);
      }
      form_gradients(worker.comm, maps[i], activation, delta, factor, gradients);
      if (i == 0) break;
      delta = worker.model.previous_delta(static_cast<int>(i), delta, activation);
      worker.comm.charge(Phase::kBackward, gemm_work(rows, maps[i].out, maps[i].in) +
                                               pass_work(rows * maps[i].in, 2, 3));
    }
  }

  bool overlap_;
};

}  // namespace

AlgorithmRow edad_row() {
  return {.name = "edad",
          .summary = "exact gradients from exchanged activations; deltas are recomputed (edAD)",
          .options = {{"overlap",
                       "on",
                       "exchange a layer while back-propagation goes on to the next",
                       {"on", "off"}}},
          .exact = true,
          .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
            return std::make_unique<Edad>(options);
          }};
}

}  // namespace gradwire
