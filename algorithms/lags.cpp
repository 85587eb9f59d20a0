// Sparsification overlapped with back-propagation: as soon as a bucket's gradients exist, its
// largest entries are selected (with error feedback) and the second lane gathers them while
// back-propagation goes on.
//   lags  one bucket per layer: a linear map's weight and bias (LAGS-SGD, Shi et al. 2019)
//   omgs  neighbouring layers merge where that is predicted to be faster (OMGS-SGD, Shi et al.
//         2020; bucket_plan.h), for a link and a device given as options
// Parameters outside linear maps have a bucket of their own each.  The k of a bucket is
// max(1, floor(density size)); LAGS' adaptation of k to the layer, a stub in the authors' code, is
// left out.
//
// Bytes per worker and step: for every bucket those of top-k with exchange=allgather:
// 8(N-1) + the lists of all workers but the right neighbour's, k (u + w) each; 2(N-1) messages.
// State: d Scalars.  Flops: top-k of every bucket.
// Metrics: density, target_density, union_size, residual_norm, buckets.
#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/bucket_plan.h"
#include "algorithms/sparsifier.h"

namespace gradwire {

namespace {

// What the exchange is taken to cost when buckets are planned.
struct Link {
  double latency_s;
  double byte_per_s;
  double flop_per_s;
};

struct Bucket {
  std::vector<std::size_t> parameters;  // in the order of the buffer
  ErrorFeedback memory;
  std::size_t missing = 0;  // parameters that this step has not seen
  SparseSum sum;
};

class OverlappedTopK : public Algorithm {
 public:
  explicit OverlappedTopK(const Options& options)
      : density_(options.real("density", 1e-9, 1)),
        index_(parse_index_code(options.choice("index"))),
        cost_(parse_selection_cost(options.choice("selection-cost"))),
        overlap_(options.flag("overlap")) {}

  void step(Worker& worker) final {
    if (buckets_.empty()) make_buckets(worker);
    for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
    local_gradients(worker, 1 / static_cast<double>(worker.batch_size),
                    [&](int parameter, Matrix& gradient) {
                      arrived(worker, static_cast<std::size_t>(parameter), gradient);
                    });
    if (overlap_) worker.comm.finish();
    gradwire::apply(worker, collect(worker));
  }

  double state_bytes() const final {
    double sum = 0;
    for (const Bucket& bucket : buckets_) sum += bucket.memory.bytes();
    return sum;
  }

 protected:
  /// How many layers each bucket takes, last layer first.
  virtual BucketPlan plan(const Worker& worker, const std::vector<LinearMap>& maps) const = 0;

  std::size_t target(std::size_t size) const {
    const double k = std::floor(density_ * static_cast<double>(size) * (1 + 1e-12));
    return std::max<std::size_t>(1, static_cast<std::size_t>(k));
  }
  IndexCode index() const { return index_; }
  SelectionCost cost() const { return cost_; }

 private:
  struct Place {
    std::size_t bucket;
    std::size_t begin;
  };

  void make_buckets(const Worker& worker) {
    const auto& parameters = worker.model.parameters();
    const auto size = [&](std::size_t p) {
      return static_cast<std::size_t>(parameters[p].value.size());
    };
    const std::vector<LinearMap> maps(worker.model.linear_maps().rbegin(),
                                      worker.model.linear_maps().rend());
    places_.resize(parameters.size());
    std::vector<bool> placed(parameters.size());
    const auto place = [&](int parameter, std::size_t& end) {
      if (parameter < 0) return;
      const auto p = static_cast<std::size_t>(parameter);
      buckets_.back().parameters.push_back(p);
      places_[p] = {buckets_.size() - 1, end};
      placed[p] = true;
      end += size(p);
    };
    auto map = maps.begin();
    for (const std::size_t count : plan(worker, maps)) {
      buckets_.emplace_back();
      std::size_t end = 0;
      for (std::size_t i = 0; i < count; ++i, ++map) {
        place(map->bias, end);
        place(map->weight, end);
      }
      buckets_.back().memory.resize(end);
    }
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (placed[p]) continue;
      buckets_.emplace_back();
      std::size_t end = 0;
      place(static_cast<int>(p), end);
      buckets_.back().memory.resize(end);
    }
  }

  void arrived(Worker& worker, std::size_t parameter, const Matrix& gradient) {
    const Place place = places_[parameter];
    Bucket& bucket = buckets_[place.bucket];
    bucket.memory.add(scalars(gradient), 1, place.begin);
    worker.comm.charge(Phase::kCompression, pass_work(gradient.size(), 2, 3));
    if (--bucket.missing > 0) return;

    const auto values = bucket.memory.values();
    const Selection best = top_k(values, target(values.size()), cost_);
    SparseList list = pick(values, best.indices);
    bucket.memory.clear(best.indices);
    worker.comm.charge(Phase::kCompression, best.work);
    const auto gather = [this, &bucket, list = std::move(list)](Communicator& comm) {
      bucket.sum = all_gather_sum(comm, list, index_, bucket.memory.values().size());
    };
    if (overlap_)
      worker.comm.start(gather);
    else
      gather(worker.comm);
  }

  // Everyone's sums, as mean gradients of the parameters' shapes.
  Gradients collect(Worker& worker) {
    Gradients mean = zero_gradients(worker.model);
    const auto share = static_cast<Scalar>(1.0 / worker.comm.size());
    double union_size = 0;
    double residual = 0;
    for (const Bucket& bucket : buckets_) {
      const SparseList& sum = bucket.sum.sum;
      std::size_t next = 0;
      for (const std::size_t p : bucket.parameters) {
        const std::size_t begin = places_[p].begin;
        const std::size_t end = begin + static_cast<std::size_t>(mean[p].size());
        for (; next < sum.indices.size() && sum.indices[next] < end; ++next)
          mean[p].data()[sum.indices[next] - begin] = share * sum.values[next];
      }
      union_size += static_cast<double>(sum.indices.size());
      residual += bucket.memory.norm() * bucket.memory.norm();
    }
    worker.comm.charge(Phase::kReduction, pass_work(worker.model.parameter_count(), 0, 1) +
                                              pass_work(static_cast<Index>(union_size), 1, 3));
    worker.metrics["union_size"] = union_size;
    worker.metrics["density"] = union_size / static_cast<double>(worker.model.parameter_count());
    worker.metrics["target_density"] = density_;
    worker.metrics["residual_norm"] = std::sqrt(residual);
    worker.metrics["buckets"] = static_cast<double>(buckets_.size());
    return mean;
  }

  double density_;
  IndexCode index_;
  SelectionCost cost_;
  bool overlap_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter
};

class Lags final : public OverlappedTopK {
 public:
  using OverlappedTopK::OverlappedTopK;

 private:
  BucketPlan plan(const Worker& /*worker*/, const std::vector<LinearMap>& maps) const override {
    BucketPlan one_each(maps.size(), 1);
    return one_each;
  }
};

class Omgs final : public OverlappedTopK {
 public:
  explicit Omgs(const Options& options)
      : OverlappedTopK(options),
        link_{options.real("latency-s", 0, 1e3), options.real("bandwidth-bit-per-s", 1, 1e15) / 8,
              options.real("device-flop-per-s", 1, 1e18)} {}

 private:
  BucketPlan plan(const Worker& worker, const std::vector<LinearMap>& maps) const override {
    std::vector<LayerTime> layers;
    layers.reserve(maps.size());
    for (const LinearMap& map : maps)  // delta and weight gradient: two products
      layers.push_back(
          {static_cast<std::size_t>((map.in + (map.bias < 0 ? 0 : 1)) * map.out),
           2 * gemm_work(worker.batch_size, map.in, map.out).flops / link_.flop_per_s});
    const auto others = static_cast<double>(worker.comm.size() - 1);
    const double pair_bytes =
        static_cast<double>(sizeof(Scalar)) + (index() == IndexCode::kInt64 ? 8 : 4);
    return plan_buckets(
        layers, {.select_s =
                     [&](std::size_t size) {
                       return top_k_work(size, target(size), cost()).flops / link_.flop_per_s;
                     },
                 .exchange_s =
                     [&](std::size_t size) {
                       const double bytes = 8 + pair_bytes * static_cast<double>(target(size));
                       return others * (2 * link_.latency_s + bytes / link_.byte_per_s);
                     }});
  }

  Link link_;
};

std::vector<OptionSpec> common_options() {
  return {density_option(),
          index_option(),
          selection_cost_option(),
          {"overlap", "on", "gather while back-propagation goes on", {"on", "off"}}};
}

}  // namespace

AlgorithmRow lags_row() {
  return {.name = "lags",
          .summary = "top-k of every layer, gathered while back-propagation goes on (LAGS-SGD)",
          .options = common_options(),
          .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
            return std::make_unique<Lags>(options);
          }};
}

AlgorithmRow omgs_row() {
  std::vector<OptionSpec> options = common_options();
  options.push_back({"latency-s", "5e-5", "of a message, seconds, to plan the buckets", {}});
  options.push_back({"bandwidth-bit-per-s", "1e9", "of a worker's link, to plan the buckets", {}});
  options.push_back({"device-flop-per-s", "5e10", "of a worker, to plan the buckets", {}});
  return {.name = "omgs",
          .summary = "LAGS-SGD with layers merged where that is predicted faster (OMGS-SGD)",
          .options = options,
          .make = [](const Options& given) -> std::unique_ptr<Algorithm> {
            return std::make_unique<Omgs>(given);
          }};
}

}  // namespace gradwire
