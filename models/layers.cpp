#include "models/layers.h"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <unsupported/Eigen/SpecialFunctions>
#include <utility>

#include "models/random.h"

namespace gradwire {

int NetworkBuilder::add(std::string name, Matrix value) {
  parameters_.push_back({std::move(name), std::move(value)});
  return static_cast<int>(parameters_.size()) - 1;
}

int NetworkBuilder::add_constant(const std::string& name, Index width, Scalar value) {
  return add(name, Matrix::Constant(1, width, value));
}

int NetworkBuilder::add_normal(const std::string& name, Index rows, Index width, double deviation) {
  Matrix value(rows, width);
  RandomStream(seed_, Purpose::kInitialParameters, parameters_.size(), 1).fill_normal(value);
  value *= static_cast<Scalar>(deviation);
  return add(name, std::move(value));
}

LinearMap NetworkBuilder::add_map(const std::string& name, Index positions, Index in, Index out,
                                  double limit) {
  Matrix weight(in, out);
  RandomStream(seed_, Purpose::kInitialParameters, maps_.size()).fill_uniform(weight);
  weight = ((2 * weight.array() - 1) * static_cast<Scalar>(limit)).matrix();
  LinearMap map{.name = name, .in = in, .out = out, .positions = positions};
  map.weight = add(name + ".weight", std::move(weight));
  if (bias_) map.bias = add(name + ".bias", Matrix::Zero(1, out));
  maps_.push_back(map);
  return map;
}

double he_limit(Index in) { return std::sqrt(6.0 / static_cast<double>(in)); }

double glorot_limit(Index in, Index out) { return std::sqrt(6.0 / static_cast<double>(in + out)); }

void BackwardRun::linear(int map, const Matrix& activation, const Matrix& delta) {
  sink_.linear({.map = map, .activation = activation, .delta = delta}, std::exchange(work_, {}));
}

void BackwardRun::direct(int parameter, const Matrix& gradient) {
  sink_.direct(parameter, gradient, std::exchange(work_, {}));
}

Linear::Linear(NetworkBuilder& builder, const std::string& name, Index positions, Index in,
               Index out, double limit)
    : parameters_(builder.parameters()),
      index_(builder.next_map()),
      map_(builder.add_map(name, positions, in, out, limit)) {}

const Matrix& Linear::weight() const {
  return parameters_[static_cast<std::size_t>(map_.weight)].value;
}

void Linear::add_bias(Matrix& z) const {
  if (map_.bias >= 0) z.rowwise() += parameters_[static_cast<std::size_t>(map_.bias)].value.row(0);
}

void Linear::forward(const Matrix& x, Matrix& z) const {
  z.noalias() = x * weight();
  add_bias(z);
}

void Linear::add_forward(const Matrix& x, Matrix& z) const {
  z.noalias() += x * weight();
  add_bias(z);
}

void Linear::backward(const Matrix& delta, Matrix& dx) const {
  dx.noalias() = delta * weight().transpose();
}

void Linear::add_backward(const Matrix& delta, Matrix& dx) const {
  dx.noalias() += delta * weight().transpose();
}

Work Linear::forward_work(Index rows) const {
  Work work = gemm_work(rows, map_.in, map_.out);
  if (map_.bias >= 0) work += pass_work(rows * map_.out, 1, 2);
  return work;
}

Work Linear::backward_work(Index rows) const { return gemm_work(rows, map_.out, map_.in); }

Activation parse_activation(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  if (name == "sigmoid") return Activation::kSigmoid;
  throw std::invalid_argument("activation: \"" + name +
                              "\" is not known; allowed: relu, tanh, sigmoid");
}

void activate(Activation activation, Matrix& z) {
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

void gelu(Matrix& z, Matrix& a) {
  constexpr auto kInverseRoot2 = static_cast<Scalar>(1 / std::numbers::sqrt2);
  constexpr auto kDensityAt0 = static_cast<Scalar>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  a.resize(z.rows(), z.cols());
  Eigen::Array<Scalar, 1, Eigen::Dynamic> slope(z.cols());
  for (Index i = 0; i < z.rows(); ++i) {  // row by row, so that intermediate results stay in cache
    auto zi = z.row(i).array();
    auto ai = a.row(i).array();
    slope = kDensityAt0 * (Scalar{-0.5} * zi.square()).exp();  // so far the density
    ai = Scalar{0.5} * (1 + (zi * kInverseRoot2).erf());
    slope = ai + zi * slope;
    ai *= zi;
    zi = slope;
  }
}

namespace {
constexpr double kVarianceFloor = 1e-5;  // PyTorch's eps
}

LayerNorm::LayerNorm(NetworkBuilder& builder, const std::string& name, Index width)
    : parameters_(builder.parameters()),
      gain_(builder.add_constant(name + ".gain", width, 1)),
      offset_(builder.add_constant(name + ".offset", width, 0)),
      width_(width) {}

const Matrix& LayerNorm::forward(const Matrix& x) {
  normalised_.resize(x.rows(), x.cols());
  output_.resize(x.rows(), x.cols());
  inverse_deviation_.resize(1, x.rows());
  const auto gain = parameters_[static_cast<std::size_t>(gain_)].value.row(0);
  const auto offset = parameters_[static_cast<std::size_t>(offset_)].value.row(0);
  for (Index i = 0; i < x.rows(); ++i) {
    auto n = normalised_.row(i);
    n = (x.row(i).array() - x.row(i).mean()).matrix();
    const Scalar variance = n.squaredNorm() / static_cast<Scalar>(width_);
    const Scalar inverse = 1 / std::sqrt(variance + static_cast<Scalar>(kVarianceFloor));
    inverse_deviation_(0, i) = inverse;
    n *= inverse;
    output_.row(i) = n.cwiseProduct(gain) + offset;
  }
  return output_;
}

void LayerNorm::backward(const Matrix& delta, BackwardRun& run, Matrix& dx) {
  const auto gain = parameters_[static_cast<std::size_t>(gain_)].value.row(0);
  Matrix gain_gradient = Matrix::Zero(1, width_);
  Matrix offset_gradient = Matrix::Zero(1, width_);
  Matrix scaled(1, width_);
  for (Index i = 0; i < delta.rows(); ++i) {
    const auto d = delta.row(i);
    const auto n = normalised_.row(i);
    offset_gradient += d;
    gain_gradient += d.cwiseProduct(n);
    scaled = d.cwiseProduct(gain);
    const Scalar mean = scaled.mean();
    const Scalar projection = scaled.row(0).dot(n) / static_cast<Scalar>(width_);
    dx.row(i).array() +=
        inverse_deviation_(0, i) * (scaled.array() - mean - n.array() * projection);
  }
  run.charge(backward_work(delta.rows()));
  run.direct(offset_, offset_gradient);
  run.direct(gain_, gain_gradient);
}

Work LayerNorm::forward_work(Index rows) const { return pass_work(rows * width_, 7, 3); }

Work LayerNorm::backward_work(Index rows) const { return pass_work(rows * width_, 12, 4); }

DenseChain::DenseChain(NetworkBuilder& builder, const std::string& prefix,
                       const std::vector<Index>& widths, Activation activation)
    : activation_(activation), inputs_(widths.size() - 1), deltas_(widths.size() - 1) {
  maps_.reserve(widths.size() - 1);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    maps_.emplace_back(builder, prefix + std::to_string(i + 1), 1, widths[i], widths[i + 1],
                       activation == Activation::kRelu ? he_limit(widths[i])
                                                       : glorot_limit(widths[i], widths[i + 1]));
}

Matrix DenseChain::forward() {
  for (std::size_t i = 0; i + 1 < maps_.size(); ++i) {
    maps_[i].forward(inputs_[i], inputs_[i + 1]);
    activate(activation_, inputs_[i + 1]);
  }
  Matrix scores;
  maps_.back().forward(inputs_.back(), scores);
  return scores;
}

void DenseChain::backward(const Matrix& delta, BackwardRun& run) {
  if (delta.rows() != inputs_.back().rows() || delta.cols() != maps_.back().out())
    throw std::logic_error("backward() needs the delta of the latest forward()'s scores");
  deltas_.back() = delta;
  for (std::size_t i = maps_.size(); i-- > 0;) {
    maps_[i].hand_out(inputs_[i], deltas_[i], run);
    if (i == 0) break;
    back_propagate(i, deltas_[i], inputs_[i], deltas_[i - 1]);
    run.charge(previous_delta_work(i, delta.rows()));
  }
}

void DenseChain::input_delta(BackwardRun& run, Matrix& dx) const {
  maps_.front().backward(deltas_.front(), dx);
  run.charge(input_delta_work(dx.rows()));
}

Matrix DenseChain::previous_delta(std::size_t map, const Matrix& delta,
                                  const Matrix& activation) const {
  Matrix previous;
  back_propagate(map, delta, activation, previous);
  return previous;
}

void DenseChain::back_propagate(std::size_t map, const Matrix& delta, const Matrix& activation,
                                Matrix& previous) const {
  maps_[map].backward(delta, previous);
  multiply_by_slope(activation_, activation, previous);
}

Work DenseChain::previous_delta_work(std::size_t map, Index rows) const {
  return maps_[map].backward_work(rows) + pass_work(rows * maps_[map].in(), 2, 3);
}

Work DenseChain::forward_work(Index rows) const {
  Work work;
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    work += maps_[i].forward_work(rows);
    if (i + 1 < maps_.size()) work += pass_work(rows * maps_[i].out(), 1, 2);
  }
  return work;
}

Work DenseChain::backward_work(Index rows) const {
  Work work;
  for (std::size_t i = 1; i < maps_.size(); ++i) work += previous_delta_work(i, rows);
  return work;
}

}  // namespace gradwire
