#include "models/cost_only.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/random.h"

namespace gradwire {

namespace {

constexpr Index kDirections = 32;
constexpr std::string_view kTable = "table:";
constexpr std::string_view kSafetensors = "safetensors:";

double real(Index n) { return static_cast<double>(n); }

// (rows, cols) of normal numbers, each row or column of `length` numbers of length 1 in
// expectation.
Matrix random_directions(Index rows, Index cols, Index length, RandomStream stream) {
  Matrix m(rows, cols);
  stream.fill_normal(m);
  m *= static_cast<Scalar>(1 / std::sqrt(real(length)));
  return m;
}

class CostOnlyModel final : public Model {
 public:
  CostOnlyModel(LayerTable table, bool values, std::uint64_t seed)
      : table_(std::move(table)), values_(values), seed_(seed) {
    for (const TableParameter& p : table_.parameters)
      parameters_.push_back({p.name, empty(p.rows, p.cols)});
    for (const TableMap& m : table_.maps)
      maps_.push_back({.name = m.name,
                       .weight = m.weight,
                       .bias = m.bias,
                       .in = m.in,
                       .out = m.out,
                       .positions = m.rows});
    activations_.resize(maps_.size());
    deltas_.resize(maps_.size());
    std::vector<bool> in_map(parameters_.size(), false);
    for (const LinearMap& map : maps_) {
      in_map[static_cast<std::size_t>(map.weight)] = true;
      if (map.bias >= 0) in_map[static_cast<std::size_t>(map.bias)] = true;
    }
    for (std::size_t p = 0; p < in_map.size(); ++p)
      if (!in_map[p]) direct_.push_back(static_cast<int>(p));
  }

  bool has_loss() const override { return false; }

  Matrix forward(const Batch& batch) override {
    batch_ = batch.inputs.rows();
    ++passes_;
    return Matrix::Zero(batch_, 1);
  }

  Work forward_work(Index rows) const override {
    Work work;
    if (!table_.times_given()) work.flops = real(rows) * table_.other_forward_flops;
    for (const TableMap& map : table_.maps) {
      if (table_.times_given())
        work.seconds += map.forward_s;
      else
        work += gemm_work(rows * map.rows, map.in, map.out);
    }
    return work;
  }

  Work backward_work(Index rows) const override {
    Work work;
    for (std::size_t m = maps_.size(); m-- > 0;) {
      work += delta_work(m, rows);
      work += map_gradient_work(m, rows);
    }
    return work;
  }

  void backward(const Matrix& /*delta*/, const BackwardSink& sink) override {
    auto direct = direct_.rbegin();
    for (std::size_t m = maps_.size(); m-- > 0;) {
      for (; direct != direct_.rend() && *direct > maps_[m].weight; ++direct)
        give_direct(*direct, sink);
      fill(m);
      sink.linear({.map = static_cast<int>(m), .activation = activations_[m], .delta = deltas_[m]},
                  delta_work(m, batch_));
    }
    for (; direct != direct_.rend(); ++direct) give_direct(*direct, sink);
  }

 private:
  Matrix empty(Index rows, Index cols) const {
    Matrix m(rows, cols);
    if (values_) m.setZero();
    return m;
  }

  Work map_gradient_work(std::size_t map, Index rows) const {
    const TableMap& m = table_.maps[map];
    Work work = gemm_work(m.in, rows * m.rows, m.out);
    if (m.bias >= 0) work += pass_work(rows * m.rows * m.out, 1, 1);
    return work;
  }

  // Of one map's delta, with its share of what the table has outside maps (twice its forward
  // flops).  Where the table gives times, the gradient's own work, which the receiver charges, is
  // taken off.
  Work delta_work(std::size_t map, Index rows) const {
    const TableMap& m = table_.maps[map];
    if (table_.times_given()) {
      const Work gradient = map_gradient_work(map, rows);
      return {.flops = -gradient.flops,
              .memory_bytes = -gradient.memory_bytes,
              .seconds = m.backward_s};
    }
    Work work = map > 0 ? gemm_work(rows * m.rows, m.out, m.in) : Work{};
    work.flops +=
        2 * real(rows) * table_.other_forward_flops / real(static_cast<Index>(maps_.size()));
    return work;
  }

  RandomStream stream(std::size_t index, std::uint64_t what, std::uint64_t pass) const {
    return {pass == 0 ? 0 : seed_, Purpose::kSyntheticTensor, index, what, pass};
  }

  void fill(std::size_t map) {
    const TableMap& m = table_.maps[map];
    const Index rows = batch_ * m.rows;
    activations_[map].resize(rows, m.in);
    deltas_[map].resize(rows, m.out);
    if (!values_) return;
    const Index q = std::min({kDirections, rows, m.in, m.out});
    Matrix u = random_directions(rows, q, rows, stream(map, 0, passes_));
    activations_[map].noalias() = u * random_directions(q, m.in, m.in, stream(map, 1, 0));
    for (Index k = 0; k < q; ++k) u.col(k) *= static_cast<Scalar>(real(batch_) / real(k + 1));
    deltas_[map].noalias() = u * random_directions(q, m.out, m.out, stream(map, 2, 0));
  }

  void give_direct(int parameter, const BackwardSink& sink) {
    const auto p = static_cast<std::size_t>(parameter);
    const TableParameter& tensor = table_.parameters[p];
    Matrix gradient = empty(tensor.rows, tensor.cols);
    if (values_) {
      RandomStream numbers = stream(p, 3, passes_);
      const bool all = tensor.touched_rows == 0 || tensor.touched_rows * batch_ >= tensor.rows;
      const Index touched = all ? tensor.rows : tensor.touched_rows * batch_;
      for (Index i = 0; i < touched; ++i) {
        const Index row =
            all ? i : static_cast<Index>(numbers.below(static_cast<std::uint64_t>(tensor.rows)));
        for (Index j = 0; j < tensor.cols; ++j)
          gradient(row, j) = static_cast<Scalar>(numbers.normal());
      }
    }
    sink.direct(parameter, gradient, {});
  }

  LayerTable table_;
  bool values_;
  std::uint64_t seed_;
  Index batch_ = 0;
  std::uint64_t passes_ = 0;
  std::vector<int> direct_;  // parameters of no map
  std::vector<Matrix> activations_;
  std::vector<Matrix> deltas_;
};

}  // namespace

bool is_cost_only(const ModelSpec& spec) {
  return spec.name.starts_with(kTable) || spec.name.starts_with(kSafetensors);
}

LayerTable load_table(const ModelSpec& spec) {
  if (spec.name.starts_with(kTable)) return load_layer_table(spec.name.substr(kTable.size()));
  if (spec.name.starts_with(kSafetensors))
    return load_safetensors(spec.name.substr(kSafetensors.size()));
  throw std::invalid_argument("model: \"" + spec.name +
                              "\" is no cost-only model; allowed: table:NAME, safetensors:FILE");
}

std::unique_ptr<Model> make_cost_only_model(const ModelSpec& spec, std::uint64_t seed) {
  return std::make_unique<CostOnlyModel>(load_table(spec), spec.values, seed);
}

std::unique_ptr<Model> make_model_for_checks(ModelSpec spec, const DataShape& shape) {
  if (is_cost_only(spec)) spec.values = false;
  return make_model(spec, shape, 0);
}

Dataset no_dataset() {
  return {.name = "none",
          .synthetic = true,
          .unlimited = true,
          .shape = {.features = 0, .classes = 1},
          .train = {},
          .test = {}};
}

}  // namespace gradwire
