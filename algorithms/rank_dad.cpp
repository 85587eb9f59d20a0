// rank-dAD: low-rank factors of each layer's gradient, found from activations and deltas by
// structured power iterations and exchanged in its place (Baker et al., arXiv 2102.09631; authors'
// code: trendscenter/dad-torch, bbradt/catalyst-dad, bbradt/edad, trendscenter/coinstac-dinunet).
//
// Per linear map, last layer first: factors of A^T D by spi.h, exchanged on the second lane while
// back-propagation goes on (overlap=on) or after it, then G = (1/N) activation^T delta:
//   allgather  one-way: everyone rebuilds from everyone's factors, up to N r components
//   two-way    the same exchange, then every worker reduces the stack to rank r by a second SPI
//   star       worker 0, itself a worker, reduces the stack and returns r' <= r components; its
//              second SPI runs on its second lane, beside its own back-propagation
// The start vectors depend on (seed, step, layer, component) alone, so that replicas stay
// bit-equal; the authors' second SPI starts from each worker's own generator and lets them drift.
// iterations=3: G's error is then within 8 % of the least at its rank (Fashion-MNIST, mlp-mnist,
// first batch and after 300 steps, ranks 2 to 16); one iteration is 8 to 40 % off.
// Theirs has spi=authors, J=10, drop-last=2 (edad) or J=1..3, drop-last=1 (the others), and no
// division by N (authors-scale=on). Biases: exact (summed with what goes uncompressed), augmented
// (a column of ones on A, reduced jointly), authors (column sums of the reduced delta factor, which
// is not the bias gradient). Where factors are not smaller, r (in + out) >= in out with
// r = min(rank, R, in, out), the gradient itself goes uncompressed, its bias with it
// (fallback-dense=on).  All that is uncompressed, parameters outside linear maps included (not with
// direct=local, the authors' way), shares one all-reduce at the end (ring; star for star).  A
// worker whose batch diverged to NaN adds rank 0: the NaN shows in its loss and in exact biases.
//
// Sent per worker and step, with N workers, R rows each, L compressed maps, h = in + out (+ 1 if
// augmented), s bytes a number, r_l the largest local rank of map l, U uncompressed numbers:
//   allgather, two-way  messages: L (2(N-1) + those of all_reduce_max) + 2(N-1) if U > 0
//                       bytes: (N-1) s sum r_l h_l + those of all_reduce_max + 2(N-1)/N U s
//   star                messages: 2L + 1 if U > 0; bytes: sum (4 + r h s) + U s
//   star, worker 0      N-1 times as many messages; bytes: (N-1) (sum (4 + r' h s) + U s)
// (star_factors: rank 0 sends no factors.)
// Flops per map: SPI about R^2 in + r J 4 R out (spi.cpp chooses the cheaper form), rebuilding
// 2 N r in out, the second SPI as the first with N r rows.  State: none.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "algorithms/factor_exchange.h"
#include "algorithms/gloo_collectives.h"
#include "algorithms/gradient_parts.h"
#include "models/random.h"

namespace gradwire {

namespace {

enum class Exchange { kAllGather, kTwoWay, kStar };
enum class Bias { kExact, kAugmented, kAuthors };

// One compressed linear map of a step.
struct Layer {
  int map;
  Factors factors;  // this worker's, then what the gradient is rebuilt from
};

Matrix with_ones(const Communicator& comm, const Matrix& activation) {
  Matrix result(activation.rows(), activation.cols() + 1);
  if (!comm.carries_data()) return result;
  result.leftCols(activation.cols()) = activation;
  result.rightCols(1).setOnes();
  return result;
}

class RankDad final : public Algorithm {
 public:
  explicit RankDad(const Options& options)
      : spi_{.mode = options.choice("spi") == "authors" ? SpiMode::kAuthors : SpiMode::kRobust,
             .rank = options.integer("rank", 1, 1 << 20),
             .iterations = static_cast<int>(options.integer("iterations", 1, 1 << 20)),
             .theta = options.real("theta", 0, 1),
             .tolerance = options.real("tol", 0, 1),
             .drop_last = options.integer("drop-last", 0, 2)},
        fallback_dense_(options.flag("fallback-dense")),
        authors_scale_(options.flag("authors-scale")),
        direct_local_(options.choice("direct") == "local"),
        overlap_(options.flag("overlap")) {
    const std::string& exchange = options.choice("exchange");
    if (exchange == "gloo") {
      all_gather_ = gloo_all_gather;
      all_reduce_ = gloo_all_reduce;
    }
    if (exchange == "star") all_reduce_ = star_all_reduce;
    exchange_ = exchange == "star"      ? Exchange::kStar
                : exchange == "two-way" ? Exchange::kTwoWay
                                        : Exchange::kAllGather;
    const std::string& bias = options.choice("bias");
    bias_ = bias == "exact"       ? Bias::kExact
            : bias == "augmented" ? Bias::kAugmented
                                  : Bias::kAuthors;
    if (spi_.mode == SpiMode::kAuthors && spi_.drop_last >= spi_.rank)
      throw std::invalid_argument("algorithm rank-dad: drop-last=" + options.choice("drop-last") +
                                  " leaves nothing of rank=" + options.choice("rank") +
                                  "; allowed: drop-last below rank");
  }

  void step(Worker& worker) override {
    Gradients gradients(worker.model.parameters().size());
    std::vector<Layer> layers;
    layers.reserve(worker.model.linear_maps().size());  // jobs hold on to elements
    std::vector<Matrix*> uncompressed;
    Overlap overlap(worker.comm, overlap_);

    BackwardSink sink;
    sink.linear = [&](const LayerTrace& trace, const Work& /*work*/) {
      const LinearMap& map = map_of(worker.model, trace);
      Matrix& bias = gradients[static_cast<std::size_t>(std::max(map.bias, 0))];
      if (goes_dense(map, trace)) {
        form_gradients(worker.comm, map, trace.activation, trace.delta, 1, gradients);
        uncompressed.push_back(&gradients[static_cast<std::size_t>(map.weight)]);
        if (map.bias >= 0) uncompressed.push_back(&bias);
        return;
      }
      Layer& layer = layers.emplace_back(Layer{trace.map, compress(worker, map, trace)});
      overlap.start([this, &worker, &layer](Communicator& comm) { exchange(worker, comm, layer); });
      if (map.bias >= 0 && bias_ == Bias::kExact) {
        bias = column_sums(worker.comm, Phase::kBackward, trace.delta);
        uncompressed.push_back(&bias);
      }
    };
    sink.direct = [&](int parameter, const Matrix& gradient, const Work& /*work*/) {
      Matrix& mine = gradients[static_cast<std::size_t>(parameter)];
      mine = copy(worker.comm, gradient);
      if (!direct_local_) uncompressed.push_back(&mine);
    };
    backpropagate(worker, sink);
    overlap.start([&](Communicator& comm) { all_reduce_packed(comm, uncompressed, all_reduce_); });
    overlap.finish();

    for (Layer& layer : layers) rebuild(worker, layer, gradients);
    scale(worker.comm, uncompressed, factor(worker));
    if (direct_local_) mean_direct_gradients(worker, nullptr, gradients);
    gradwire::apply(worker, gradients);
  }

 private:
  bool goes_dense(const LinearMap& map, const LayerTrace& trace) const {
    const Index in = map.in + (augmented(map) ? 1 : 0);
    const Index r = std::min({spi_.rank, trace.delta.rows(), in, map.out});
    return fallback_dense_ && r * (in + map.out) >= in * map.out;
  }

  bool augmented(const LinearMap& map) const { return map.bias >= 0 && bias_ == Bias::kAugmented; }

  double factor(const Worker& worker) const {
    return 1 / static_cast<double>(authors_scale_ ? worker.batch_size : worker.global_batch);
  }

  Factors reduce(Worker& worker, Communicator& comm, const Matrix& activation, const Matrix& delta,
                 int map, Purpose purpose) const {
    if (!comm.carries_data()) {
      SpiResult result = spi_of_full_rank(activation, delta, spi_);
      comm.charge(Phase::kCompression, result.work);
      return std::move(result.factors);
    }
    SpiResult result =
        structured_power_iterations(activation, delta, spi_, [&](Index component, Matrix& x) {
          RandomStream(worker.seed, purpose, static_cast<std::uint64_t>(worker.step),
                       static_cast<std::uint64_t>(map), static_cast<std::uint64_t>(component))
              .fill_uniform(x);
        });
    comm.charge(Phase::kCompression, result.work);
    return std::move(result.factors);
  }

  Factors compress(Worker& worker, const LinearMap& map, const LayerTrace& trace) const {
    Factors factors = augmented(map)
                          ? reduce(worker, worker.comm, with_ones(worker.comm, trace.activation),
                                   trace.delta, trace.map, Purpose::kSpiStart)
                          : reduce(worker, worker.comm, trace.activation, trace.delta, trace.map,
                                   Purpose::kSpiStart);
    if (worker.comm.carries_data())
      worker.metrics["effective_rank/" + map.name] = static_cast<double>(factors.delta.rows());
    return factors;
  }

  void exchange(Worker& worker, Communicator& comm, Layer& layer) const {
    if (exchange_ == Exchange::kStar)
      layer.factors = star_factors(comm, layer.factors, [&](const Factors& stacked) {
        return reduce(worker, comm, stacked.activation, stacked.delta, layer.map,
                      Purpose::kSecondSpiStart);
      });
    else
      layer.factors = all_gather_factors(comm, layer.factors, all_gather_);
  }

  void rebuild(Worker& worker, Layer& layer, Gradients& gradients) const {
    const LinearMap& map = worker.model.linear_maps()[static_cast<std::size_t>(layer.map)];
    if (exchange_ == Exchange::kTwoWay)
      layer.factors = reduce(worker, worker.comm, layer.factors.activation, layer.factors.delta,
                             layer.map, Purpose::kSecondSpiStart);
    if (exchange_ != Exchange::kAllGather && worker.comm.carries_data())
      worker.metrics["effective_rank_aggregated/" + map.name] =
          static_cast<double>(layer.factors.delta.rows());
    const auto at = [&](int p) -> Matrix& { return gradients[static_cast<std::size_t>(p)]; };
    Matrix gradient = weight_gradient(worker.comm, Phase::kCompression, layer.factors.activation,
                                      layer.factors.delta, factor(worker));
    if (augmented(map)) at(map.bias) = gradient.bottomRows(1);
    if (map.bias >= 0 && bias_ == Bias::kAuthors)
      at(map.bias) =
          column_sums(worker.comm, Phase::kCompression, layer.factors.delta, factor(worker));
    if (gradient.rows() != map.in && worker.comm.carries_data())
      gradient = gradient.topRows(map.in).eval();
    at(map.weight) = std::move(gradient);
  }

  SpiOptions spi_;
  Exchange exchange_;
  AllGather all_gather_ = ring_all_gather;
  AllReduce all_reduce_ = ring_all_reduce;
  Bias bias_;
  bool fallback_dense_;
  bool authors_scale_;
  bool direct_local_;
  bool overlap_;
};

}  // namespace

AlgorithmRow rank_dad_row() {
  const std::vector<std::string> on_off{"on", "off"};
  return {
      .name = "rank-dad",
      .summary = "low-rank factors of the gradients by structured power iterations (rank-dAD)",
      .options =
          {{"rank", "4", "most components per layer, at least 1", {}},
           {"iterations", "3", "power iterations per component (J), at least 1", {}},
           {"theta", "1e-6", "stop where a singular value falls to this part of the first", {}},
           {"spi", "robust", "re-orthogonalised, or the authors' loop", {"robust", "authors"}},
           {"drop-last", "0", "spi=authors: components dropped from the end", {"0", "1", "2"}},
           {"tol", "1e-3", "spi=authors: stop where a direction repeats this closely", {}},
           {"exchange",
            "allgather",
            "one-way all-gather, with a second reduction on everyone, or through worker 0; gloo: "
            "one-way by Gloo's collectives",
            {"allgather", "two-way", "star", "gloo"}},
           {"bias",
            "exact",
            "summed apart, jointly reduced, or column sums of the reduced factor",
            {"exact", "augmented", "authors"}},
           {"fallback-dense", "on", "send gradients that factors do not make smaller", on_off},
           {"authors-scale", "off", "do not divide by the number of workers", on_off},
           direct_option(),
           {"overlap", "on", "exchange a layer while back-propagation goes on", on_off}},
      .sizes_only = true,
      .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
        return std::make_unique<RankDad>(options);
      }};
}

}  // namespace gradwire
