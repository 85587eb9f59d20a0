// Multi-layer perceptrons and the loss: Z_i = A_{i-1} W_i + 1 b_i, A_i = phi(Z_i), the last layer
// linear and followed by softmax cross-entropy.  With D_i = d(sum of losses)/dZ_i:
// D_L = softmax(Z_L) - onehot, D_i = (D_{i+1} W_{i+1}^T) * phi'(Z_i), phi' taken from the output.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/model.h"
#include "models/random.h"

// OpenBLAS only: another BLAS leaves the symbol unresolved, hence weak.
extern "C" [[gnu::weak]] void openblas_set_num_threads(int threads);

namespace gradwire {

namespace {

constexpr Index kMaxWidth = 1'000'000;
constexpr double kMaxParameters = 1 << 28;  // 1 GiB in float

enum class Activation { kRelu, kTanh, kSigmoid };

Activation parse_activation(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  if (name == "sigmoid") return Activation::kSigmoid;
  throw std::invalid_argument("activation: \"" + name +
                              "\" is not known; allowed: relu, tanh, sigmoid");
}

// phi(z + 1 b) in place; bias may be null.
void add_bias_and_activate(Activation activation, const Matrix* bias, Matrix& z) {
  if (bias != nullptr) z.rowwise() += bias->row(0);
  switch (activation) {
    case Activation::kRelu:  // a diverged NaN must stay visible
      z = z.unaryExpr([](Scalar x) { return x < 0 ? Scalar{0} : x; });
      break;
    case Activation::kTanh:
      z = z.array().tanh();
      break;
    case Activation::kSigmoid:
      z = (1 + (-z.array()).exp()).inverse();
      break;
  }
}

// delta *= phi'(z), where a = phi(z).
void multiply_by_slope(Activation activation, const Matrix& a, Matrix& delta) {
  switch (activation) {
    case Activation::kRelu:
      delta.array() *= (a.array() > 0).cast<Scalar>();
      break;
    case Activation::kTanh:
      delta.array() *= 1 - a.array().square();
      break;
    case Activation::kSigmoid:
      delta.array() *= a.array() * (1 - a.array());
      break;
  }
}

class Mlp final : public Model {
 public:
  Mlp(const std::vector<Index>& widths, Activation activation, bool bias, std::uint64_t seed)
      : activation_(activation), inputs_(widths.size() - 1), deltas_(widths.size() - 1) {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      const std::string name = "fc" + std::to_string(i + 1);
      LinearMap map{.name = name, .in = widths[i], .out = widths[i + 1]};
      map.weight = add_parameter(name + ".weight", initial_weight(map.in, map.out, i, seed));
      if (bias) map.bias = add_parameter(name + ".bias", Matrix::Zero(1, map.out));
      maps_.push_back(map);
    }
  }

  Matrix forward(const Batch& batch) override {
    if (batch.inputs.cols() != maps_.front().in)
      throw std::logic_error("a batch has " + std::to_string(batch.inputs.cols()) +
                             " features, the model takes " + std::to_string(maps_.front().in));
    inputs_.front() = batch.inputs;
    const std::size_t last = maps_.size() - 1;
    for (std::size_t i = 0; i < last; ++i) {
      inputs_[i + 1].noalias() = inputs_[i] * weight(i);
      add_bias_and_activate(activation_, bias(i), inputs_[i + 1]);
    }
    Matrix scores = inputs_[last] * weight(last);
    if (bias(last) != nullptr) scores.rowwise() += bias(last)->row(0);
    return scores;
  }

  Work forward_work(Index rows) const override {
    Work work;
    for (std::size_t i = 0; i < maps_.size(); ++i) {
      const bool hidden = i + 1 < maps_.size();
      work += gemm_work(rows, maps_[i].in, maps_[i].out);
      if (bias(i) != nullptr) work += pass_work(rows * maps_[i].out, 1, 2);
      if (hidden) work += pass_work(rows * maps_[i].out, 1, 2);
    }
    return work;
  }

  Work backward_work(Index rows) const override {
    Work work;
    for (std::size_t i = 0; i < maps_.size(); ++i) {
      if (i > 0) work += previous_delta_work(i, rows);
      work += gemm_work(maps_[i].in, rows, maps_[i].out);
      if (bias(i) != nullptr) work += pass_work(rows * maps_[i].out, 1, 1);
    }
    return work;
  }

  void backward(const Matrix& delta, const BackwardSink& sink) override {
    if (delta.rows() != inputs_.back().rows() || delta.cols() != maps_.back().out)
      throw std::logic_error("backward() needs the delta of the latest forward()'s scores");
    deltas_.back() = delta;
    Work work;
    for (std::size_t i = maps_.size(); i-- > 0;) {
      sink.linear({.map = static_cast<int>(i), .activation = inputs_[i], .delta = deltas_[i]},
                  work);
      if (i == 0) break;
      back_propagate(i, deltas_[i], inputs_[i], deltas_[i - 1]);
      work = previous_delta_work(i, delta.rows());
    }
  }

  Matrix previous_delta(int map, const Matrix& delta, const Matrix& activation) const override {
    if (map < 1 || static_cast<std::size_t>(map) >= maps_.size())
      throw std::logic_error("linear map " + std::to_string(map) + " has no previous delta");
    Matrix previous;
    back_propagate(static_cast<std::size_t>(map), delta, activation, previous);
    return previous;
  }

 private:
  int add_parameter(std::string name, Matrix value) {
    parameters_.push_back({std::move(name), std::move(value)});
    return static_cast<int>(parameters_.size()) - 1;
  }

  Matrix initial_weight(Index in, Index out, std::size_t layer, std::uint64_t seed) const {
    Matrix w(in, out);
    RandomStream(seed, Purpose::kInitialParameters, layer).fill_uniform(w);
    const Index fan = activation_ == Activation::kRelu ? in : in + out;
    const auto limit = static_cast<Scalar>(std::sqrt(6.0 / static_cast<double>(fan)));
    w = ((2 * w.array() - 1) * limit).matrix();
    return w;
  }

  const Matrix& weight(std::size_t map) const {
    return parameters_[static_cast<std::size_t>(maps_[map].weight)].value;
  }
  const Matrix* bias(std::size_t map) const {
    const int index = maps_[map].bias;
    return index < 0 ? nullptr : &parameters_[static_cast<std::size_t>(index)].value;
  }

  void back_propagate(std::size_t map, const Matrix& delta, const Matrix& activation,
                      Matrix& previous) const {
    previous.noalias() = delta * weight(map).transpose();
    multiply_by_slope(activation_, activation, previous);
  }

  Work previous_delta_work(std::size_t map, Index rows) const {
    return gemm_work(rows, maps_[map].out, maps_[map].in) + pass_work(rows * maps_[map].in, 2, 3);
  }

  Activation activation_;
  std::vector<Matrix> inputs_;  // of each map: (rows, in)
  std::vector<Matrix> deltas_;  // of each map: (rows, out)
};

struct PresetWidths {
  ModelPreset preset;
  std::string widths;
};

const std::vector<PresetWidths>& presets() {
  static const std::vector<PresetWidths> all = {
      {{"mlp-mnist", "MLP 784-512-256-10"}, "784-512-256-10"},
      {{"mlp-wide", "MLP 784-1024-1024-10"}, "784-1024-1024-10"},
      {{"mnistnet", "MLP 784-2048-1024-512-256-10, the rank-dAD authors' MNISTNet"},
       "784-2048-1024-512-256-10"},
  };
  return all;
}

std::string widths_of(const std::string& name) {
  std::string allowed;
  for (const auto& [preset, widths] : presets()) {
    if (name == preset.name) return widths;
    allowed += preset.name + ", ";
  }
  if (name.starts_with("mlp:")) return name.substr(4);
  throw std::invalid_argument("model: \"" + name + "\" is not known; allowed: " + allowed +
                              "mlp:WIDTHS such as mlp:784-300-10");
}

std::vector<Index> parse_widths(const std::string& name, const std::string& text) {
  std::vector<Index> widths;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();; ++at) {
    Index width = 0;
    const auto [after, error] = std::from_chars(at, end, width);
    if (error != std::errc{} || width < 1 || width > kMaxWidth || (after != end && *after != '-'))
      throw std::invalid_argument("model: \"" + name +
                                  "\" needs widths from 1 to 1000000 joined by '-', such as "
                                  "mlp:784-300-10");
    widths.push_back(width);
    at = after;
    if (at == end) break;
  }
  if (widths.size() < 2)
    throw std::invalid_argument("model: \"" + name +
                                "\" needs at least two widths, such as mlp:784-10");
  return widths;
}

void check_fit(const std::string& name, const std::vector<Index>& widths, const DataShape& shape) {
  if (widths.front() != shape.features || widths.back() != shape.classes)
    throw std::invalid_argument("model: " + name + " takes " + std::to_string(widths.front()) +
                                " features and gives " + std::to_string(widths.back()) +
                                " classes, but the data have " + std::to_string(shape.features) +
                                " features and " + std::to_string(shape.classes) +
                                " classes; use for example mlp:" + std::to_string(shape.features) +
                                "-100-" + std::to_string(shape.classes));
  double parameters = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    parameters += static_cast<double>(widths[i] + 1) * static_cast<double>(widths[i + 1]);
  if (parameters > kMaxParameters)
    throw std::invalid_argument("model: " + name + " has " +
                                std::to_string(std::llround(parameters)) +
                                " parameters; allowed: at most 2^28");
}

// Workers are threads or processes already: more BLAS threads would only fight for their cores.
void use_one_blas_thread() {
  static const bool done = [] {
    if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const DataShape& shape,
                                  std::uint64_t seed) {
  const Activation activation = parse_activation(spec.activation);
  const std::vector<Index> widths = parse_widths(spec.name, widths_of(spec.name));
  check_fit(spec.name, widths, shape);
  use_one_blas_thread();
  return std::make_unique<Mlp>(widths, activation, spec.bias, seed);
}

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> list = [] {
    std::vector<ModelPreset> rows;
    for (const auto& [preset, widths] : presets()) rows.push_back(preset);
    return rows;
  }();
  return list;
}

Loss softmax_cross_entropy(const Matrix& scores, const std::vector<int>& labels) {
  if (static_cast<std::size_t>(scores.rows()) != labels.size())
    throw std::logic_error("softmax_cross_entropy: one label per row");
  Loss loss{.delta = Matrix(scores.rows(), scores.cols())};
  for (Index i = 0; i < scores.rows(); ++i) {
    const Index label = labels[static_cast<std::size_t>(i)];
    if (label < 0 || label >= scores.cols())
      throw std::logic_error("softmax_cross_entropy: label " + std::to_string(label) + " of " +
                             std::to_string(scores.cols()) + " classes");
    const Scalar highest = scores.row(i).maxCoeff();
    double sum = 0;
    for (Index j = 0; j < scores.cols(); ++j) {
      loss.delta(i, j) = std::exp(scores(i, j) - highest);
      sum += static_cast<double>(loss.delta(i, j));
    }
    loss.delta.row(i) /= static_cast<Scalar>(sum);
    loss.delta(i, label) -= 1;
    loss.sum += std::log(sum) - static_cast<double>(scores(i, label) - highest);
  }
  return loss;
}

}  // namespace gradwire
