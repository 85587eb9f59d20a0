// What a network is to everyone else: parameters, a forward pass, and a backward pass that hands
// out LayerTraces, last layer first, as soon as each delta exists.  Knows nothing of workers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/copy_on_write.h"
#include "models/dataset.h"
#include "models/matrix.h"
#include "models/options.h"

namespace gradwire {

struct Parameter {
  std::string name;
  Matrix value;  // (in, out) for a weight, (1, n) for a vector
};

/// A model's parameters.  Bit-equal replicas may share one copy of them.
class ParameterSet {
 public:
  std::size_t size() const { return all_->size(); }
  const Parameter& operator[](std::size_t i) const { return (*all_)[i]; }
  auto begin() const { return all_->begin(); }
  auto end() const { return all_->end(); }
  void push_back(Parameter p) { all_.write().push_back(std::move(p)); }
  std::vector<Parameter>& write() { return all_.write(); }
  bool shares_with(const ParameterSet& other) const { return all_.shares_with(other.all_); }

 private:
  CopyOnWrite<std::vector<Parameter>> all_;
};

/// Z = A W + 1 b: a weight that back-propagation sees as A^T D.  A bias always belongs to a map.
struct LinearMap {
  std::string name;
  int weight = -1;  ///< index into Model::parameters(), value (in, out)
  int bias = -1;    ///< index into Model::parameters(), value (1, out); -1 if there is none
  Index in = 0;
  Index out = 0;
  Index positions = 1;  ///< rows of its traces per example: time steps, tokens, patches
};

/// gradient of the weight = activation^T delta, of the bias = column sums of delta.
/// Deltas are of the SUM of the losses over the batch: whoever averages divides once, by the global
/// batch.  The matrices live in the model and stay valid until its next forward().
struct LayerTrace {
  int map;                   ///< index into Model::linear_maps()
  const Matrix& activation;  ///< (rows, in)
  const Matrix& delta;       ///< (rows, out)
};

/// Receives a backward pass.  `work` is what back-propagation itself cost since the previous call
/// (deltas only: forming activation^T delta is the receiver's business).
struct BackwardSink {
  std::function<void(const LayerTrace& trace, const Work& work)> linear;
  /// Gradient (sum of losses) of a parameter that belongs to no linear map: norms, embeddings.
  std::function<void(int parameter, const Matrix& gradient, const Work& work)> direct;
};

class Model {
 public:
  virtual ~Model() = default;
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ParameterSet& parameters() const { return parameters_; }
  /// For writing; a copy of this model's own if it shared one.
  std::vector<Parameter>& mutable_parameters() { return parameters_.write(); }
  /// Shares the parameters of a replica.
  void adopt(const ParameterSet& parameters) { parameters_ = parameters; }
  const std::vector<LinearMap>& linear_maps() const { return maps_; }
  Index parameter_count() const;
  /// Whether losses and scores mean anything: not those of a cost-only model.
  virtual bool has_loss() const { return true; }

  /// Scores (rows, classes) of a batch; keeps what backward() needs.
  virtual Matrix forward(const Batch& batch) = 0;
  /// Numbers that a batch's passes hold: the traces' activations and deltas, attention weights.
  virtual double trace_size(Index rows) const;
  virtual Work forward_work(Index rows) const = 0;
  /// Deltas and weight gradients of a batch: what plain back-propagation costs.
  virtual Work backward_work(Index rows) const = 0;

  /// Back-propagates d(sum of losses)/d(scores) (rows, classes) of the latest forward().
  virtual void backward(const Matrix& delta, const BackwardSink& sink) = 0;

  /// edAD: the delta of map-1 from that of map and map's input activation, any number of rows.
  /// Throws std::invalid_argument where the network is not a chain of row-wise layers.
  virtual Matrix previous_delta(int map, const Matrix& delta, const Matrix& activation) const;

 protected:
  /// Forming A^T D and the column sums of D for every linear map: a part of backward_work().
  Work gradient_work(Index rows) const;

  ParameterSet parameters_;
  std::vector<LinearMap> maps_;
};

/// Zero gradients of the shapes of the model's parameters.
Gradients zero_gradients(const Model& model);

struct Loss {
  double sum = 0;  ///< sum over the rows
  Matrix delta;    ///< (rows, classes), d(sum)/d(scores)
};
Loss softmax_cross_entropy(const Matrix& scores, const std::vector<int>& labels);

/// A model by specification for data of the given shape:
/// - an MLP: a preset (`mlp-mnist`, `mlp-wide`, `mnistnet`) or `mlp:784-300-10`, with `activation`
///   relu, tanh or sigmoid.  Weights start uniform in +-sqrt(6/in) (relu, He et al. 2015) or
///   +-sqrt(6/(in+out)) (Glorot & Bengio 2010), biases at zero;
/// - a network of models/networks.h (`gru`, `transformer`, `vit`) or a preset of one, with options:
///   `vit:dim=128,depth=12`;
/// - a cost-only model (models/cost_only.h): `table:NAME`, `safetensors:FILE`.
/// Throws std::invalid_argument naming the allowed specifications, or what does not fit the data.
struct ModelSpec {
  std::string name = "mlp-mnist";
  std::string activation = "relu";  ///< of an MLP and of a GRU's head
  bool bias = true;                 ///< the rank-dAD authors' networks have none
  bool values = true;               ///< false: sizes alone, of cost-only models (`--math none`)
};
std::unique_ptr<Model> make_model(const ModelSpec& spec, const DataShape& shape,
                                  std::uint64_t seed);

struct ModelPreset {
  std::string name;
  std::string summary;
  std::vector<OptionSpec> options;  ///< that may follow the name
};
const std::vector<ModelPreset>& model_presets();

}  // namespace gradwire
