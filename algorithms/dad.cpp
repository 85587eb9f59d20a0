// dAD: exact gradients from everyone's activations and deltas (Baker et al., arXiv 2102.09631; the
// authors' code: bbradt/edad, trendscenter/dad-torch).  With the rows of all workers stacked, the
// gradient of a weight over the global batch is A^T D, that of a bias the column sums of D.
//
// Per linear map, last layer first, one block [A | D] per worker (the authors send A and D in two
// collectives), on the second lane while back-propagation goes on (overlap=on) or after it:
//   allgather     ring all-gather of the blocks
//   star          blocks to worker 0, which sends all of them to everyone (dad-torch's option)
//   star-reduced  blocks to worker 0, which sends the gradients, all in one message
// Parameters outside linear maps go by one all-reduce (ring; star for both stars); direct=local
// leaves them unsynchronised, as the authors do.  authors-scale=on leaves out the division by N, as
// dad-torch does. Note that the first layer's activations are the raw training examples.
//
// Sent per worker and step, with N workers, R rows each, L maps, s bytes per number,
// u = R s sum(in + out), g = s sum(in out + out), no parameters outside linear maps:
//   allgather     (N-1) L messages   (N-1) u bytes
//   star          L                  u       worker 0: (N-1) L, (N-1) N u
//   star-reduced  L                  u       worker 0: N-1, (N-1) g
// State: none.  Flops: 2 N R in out per map on every worker (star-reduced: on worker 0), which is N
// times those of a local weight gradient; charged as back-propagation.
#include "algorithms/gloo_collectives.h"
#include "algorithms/gradient_parts.h"

namespace gradwire {

namespace {

// The rows of one linear map: this worker's, then everyone's.
struct Rows {
  int map;
  Index rows;  // of one worker
  std::vector<std::byte> block;
};

class Dad final : public Algorithm {
 public:
  explicit Dad(const Options& options)
      : star_(options.choice("exchange").starts_with("star")),
        blocks_(star_                                  ? BlockExchange::kStar
                : options.choice("exchange") == "gloo" ? BlockExchange::kGloo
                                                       : BlockExchange::kAllGather),
        reduced_(options.choice("exchange") == "star-reduced"),
        authors_scale_(options.flag("authors-scale")),
        overlap_(options.flag("overlap")),
        direct_(options.choice("direct") == "local" ? nullptr
                : star_                             ? star_all_reduce
                : blocks_ == BlockExchange::kGloo   ? gloo_all_reduce
                                                    : ring_all_reduce) {}

  void step(Worker& worker) override {
    Gradients gradients(worker.model.parameters().size());
    const std::vector<Rows> rows = exchange(worker, gradients);
    const double factor =
        1 / static_cast<double>(authors_scale_ ? worker.batch_size : worker.global_batch);
    if (!reduced_ || worker.comm.rank() == 0)
      for (const Rows& r : rows) form(worker, r, factor, gradients);
    if (reduced_) send_gradients(worker, rows, gradients);
    mean_direct_gradients(worker, direct_, gradients);
    gradwire::apply(worker, gradients);
  }

 private:
  // Back-propagates and exchanges blocks; also fills the gradients outside linear maps.
  std::vector<Rows> exchange(Worker& worker, Gradients& gradients) const {
    std::vector<Rows> rows;
    rows.reserve(worker.model.linear_maps().size());  // jobs hold on to elements
    Overlap overlap(worker.comm, overlap_);
    BackwardSink sink;
    sink.linear = [&](const LayerTrace& trace, const Work& /*work*/) {
      Rows& mine = rows.emplace_back(Rows{trace.map, trace.delta.rows(), {}});
      append(mine.block, trace.activation);
      append(mine.block, trace.delta);
      worker.comm.charge(Phase::kReduction,
                         pass_work(trace.activation.size() + trace.delta.size(), 0, 2));
      overlap.start([this, &mine](Communicator& comm) { exchange_block(comm, mine.block); });
    };
    sink.direct = [&](int parameter, const Matrix& gradient, const Work& /*work*/) {
      gradients[static_cast<std::size_t>(parameter)] = gradient;
    };
    backpropagate(worker, sink);
    overlap.finish();
    return rows;
  }

  void exchange_block(Communicator& comm, std::vector<std::byte>& block) const {
    const std::vector<std::size_t> sizes(static_cast<std::size_t>(comm.size()), block.size());
    if (reduced_)
      block = gather(comm, 0, block, sizes);
    else
      block = exchange_blocks(comm, blocks_, block, sizes);
  }

  static void form(Worker& worker, const Rows& rows, double factor, Gradients& gradients) {
    const LinearMap& map = worker.model.linear_maps()[static_cast<std::size_t>(rows.map)];
    const Index workers = worker.comm.size();
    Matrix activation(workers * rows.rows, map.in);
    Matrix delta(workers * rows.rows, map.out);
    std::span<const std::byte> bytes = rows.block;
    for (Index w = 0; w < workers; ++w) {
      take_rows(bytes, activation, w * rows.rows, rows.rows);
      take_rows(bytes, delta, w * rows.rows, rows.rows);
    }
    form_gradients(worker.comm, map, activation, delta, factor, gradients);
  }

  // Worker 0's gradients of all linear maps to everyone.
  static void send_gradients(Worker& worker, const std::vector<Rows>& rows, Gradients& gradients) {
    std::vector<Matrix*> parts;
    for (const Rows& r : rows) {
      const LinearMap& map = worker.model.linear_maps()[static_cast<std::size_t>(r.map)];
      for (const int p : {map.weight, map.bias}) {
        if (p < 0) continue;
        Matrix& gradient = gradients[static_cast<std::size_t>(p)];
        const Matrix& value = worker.model.parameters()[static_cast<std::size_t>(p)].value;
        gradient.resize(value.rows(), value.cols());  // keeps what worker 0 has formed
        parts.push_back(&gradient);
      }
    }
    std::vector<std::byte> block;
    for (const Matrix* part : parts) append(block, *part);
    star_broadcast(worker.comm, 0, block);
    std::span<const std::byte> bytes = block;
    for (Matrix* part : parts) take_rows(bytes, *part, 0, part->rows());
  }

  bool star_;
  BlockExchange blocks_;
  bool reduced_;
  bool authors_scale_;
  bool overlap_;
  AllReduce direct_;
};

}  // namespace

AlgorithmRow dad_row() {
  return {.name = "dad",
          .summary = "exact gradients from exchanged activations and deltas (dAD)",
          .options = {{"exchange",
                       "allgather",
                       "ring all-gather, Gloo's own, or through worker 0, which returns all blocks "
                       "(star) or the gradients (star-reduced)",
                       {"allgather", "gloo", "star", "star-reduced"}},
                      {"authors-scale",
                       "off",
                       "do not divide by the number of workers, as in dad-torch",
                       {"on", "off"}},
                      direct_option(),
                      {"overlap",
                       "on",
                       "exchange a layer while back-propagation goes on to the next",
                       {"on", "off"}}},
          .exact = true,
          .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
            return std::make_unique<Dad>(options);
          }};
}

}  // namespace gradwire
