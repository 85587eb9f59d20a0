// Parts that networks are built from: what they register, linear maps, activations, layer
// normalisation and chains of layers.  A part works on rows (examples, or examples times positions,
// all flattened), keeps what its backward pass needs until its next forward pass, and hands out
// traces, last layer first, through a BackwardRun.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace gradwire {

/// Registers what the parts of a network bring along, in the order in which they are built.  Both
/// are the model's.
class NetworkBuilder {
 public:
  NetworkBuilder(ParameterSet& parameters, std::vector<LinearMap>& maps, bool bias,
                 std::uint64_t seed)
      : parameters_(parameters), maps_(maps), bias_(bias), seed_(seed) {}

  const ParameterSet& parameters() const { return parameters_; }

  /// Parameters outside linear maps; their indices.
  int add_constant(const std::string& name, Index width, Scalar value);
  int add_normal(const std::string& name, Index rows, Index width, double deviation);

  /// A linear map with weights uniform in +-limit and, unless the network has none, zero biases;
  /// `positions` of its rows per example.
  LinearMap add_map(const std::string& name, Index positions, Index in, Index out, double limit);

  int next_map() const { return static_cast<int>(maps_.size()); }

 private:
  int add(std::string name, Matrix value);

  ParameterSet& parameters_;
  std::vector<LinearMap>& maps_;
  bool bias_;
  std::uint64_t seed_;
};

/// Bounds of uniform initial weights.
double he_limit(Index in);                 ///< sqrt(6/in), He et al. 2015
double glorot_limit(Index in, Index out);  ///< sqrt(6/(in+out)), Glorot & Bengio 2010

/// A backward pass under way: adds up work until the next part is handed out.
class BackwardRun {
 public:
  explicit BackwardRun(const BackwardSink& sink) : sink_(sink) {}
  void charge(const Work& work) { work_ += work; }
  void linear(int map, const Matrix& activation, const Matrix& delta);
  void direct(int parameter, const Matrix& gradient);

 private:
  const BackwardSink& sink_;
  Work work_;
};

/// Z = X W + 1 b.  Keeps nothing: whoever uses it owns X and the delta of Z.
class Linear {
 public:
  Linear(NetworkBuilder& builder, const std::string& name, Index positions, Index in, Index out,
         double limit);

  void forward(const Matrix& x, Matrix& z) const;            ///< z = x W + 1 b
  void add_forward(const Matrix& x, Matrix& z) const;        ///< z += x W + 1 b
  void backward(const Matrix& delta, Matrix& dx) const;      ///< dx = delta W^T
  void add_backward(const Matrix& delta, Matrix& dx) const;  ///< dx += delta W^T
  void hand_out(const Matrix& x, const Matrix& delta, BackwardRun& run) const {
    run.linear(index_, x, delta);
  }

  Work forward_work(Index rows) const;
  Work backward_work(Index rows) const;  ///< of dx
  Index in() const { return map_.in; }
  Index out() const { return map_.out; }

 private:
  const Matrix& weight() const;
  void add_bias(Matrix& z) const;

  const ParameterSet& parameters_;
  int index_;
  LinearMap map_;
};

enum class Activation : std::uint8_t { kRelu, kTanh, kSigmoid };

/// Throws std::invalid_argument naming the allowed ones.
Activation parse_activation(const std::string& name);

/// phi(z), in place.
void activate(Activation activation, Matrix& z);

/// delta *= phi'(z), where a = phi(z).
void multiply_by_slope(Activation activation, const Matrix& a, Matrix& delta);

/// GELU (Hendrycks & Gimpel 2016, the exact form): a = z Phi(z), with Phi the normal distribution
/// function; z becomes the slope Phi(z) + z phi(z).
void gelu(Matrix& z, Matrix& a);

/// y = gain (x - mean) / sqrt(variance + 1e-5) + offset, mean and variance (divided by the width)
/// per row (Ba, Kiros & Hinton 2016).
class LayerNorm {
 public:
  LayerNorm(NetworkBuilder& builder, const std::string& name, Index width);

  const Matrix& forward(const Matrix& x);
  /// Hands out the gradients of offset and gain; dx += the delta of x.
  void backward(const Matrix& delta, BackwardRun& run, Matrix& dx);

  Work forward_work(Index rows) const;
  Work backward_work(Index rows) const;  ///< gradients included
  const Matrix& output() const { return output_; }

 private:
  const ParameterSet& parameters_;
  int gain_;
  int offset_;
  Index width_;
  Matrix normalised_;
  Matrix output_;
  Matrix inverse_deviation_;  // (1, rows)
};

/// Linear maps with the same activation between them, none after the last: an MLP, and the head of
/// other networks.
class DenseChain {
 public:
  /// Maps PREFIX1, PREFIX2, ... from widths[0] inputs to widths.back() outputs.
  DenseChain(NetworkBuilder& builder, const std::string& prefix, const std::vector<Index>& widths,
             Activation activation);

  /// The chain's input, to be filled before forward(): (rows, widths[0]).
  Matrix& input() { return inputs_.front(); }
  Matrix forward();
  /// Takes the delta of the scores; stops at the first map's trace.
  void backward(const Matrix& delta, BackwardRun& run);
  /// The delta of input(), after backward().
  void input_delta(BackwardRun& run, Matrix& dx) const;

  /// The delta of map - 1 (of the chain) from that of map and map's input.
  Matrix previous_delta(std::size_t map, const Matrix& delta, const Matrix& activation) const;

  Work forward_work(Index rows) const;
  Work backward_work(Index rows) const;  ///< of the deltas of all maps but that of input()
  Work input_delta_work(Index rows) const { return maps_.front().backward_work(rows); }

 private:
  void back_propagate(std::size_t map, const Matrix& delta, const Matrix& activation,
                      Matrix& previous) const;
  Work previous_delta_work(std::size_t map, Index rows) const;

  Activation activation_;
  std::vector<Linear> maps_;
  std::vector<Matrix> inputs_;  // of each map: (rows, in)
  std::vector<Matrix> deltas_;  // of each map: (rows, out)
};

}  // namespace gradwire
