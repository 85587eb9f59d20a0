#include "models/model.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/cost_only.h"
#include "models/networks.h"

// OpenBLAS only: another BLAS leaves the symbol unresolved, hence weak.
extern "C" [[gnu::weak]] void openblas_set_num_threads(int threads);

namespace gradwire {

namespace {

constexpr double kMaxParameters = 1 << 28;  // 1 GiB in float

// A specification by another name.
struct Alias {
  std::string name;
  std::string summary;
  std::string spec;
};

const std::vector<Alias>& mlps() {
  static const std::vector<Alias> all = {
      {"mlp-mnist", "MLP 784-512-256-10", "784-512-256-10"},
      {"mlp-wide", "MLP 784-1024-1024-10", "784-1024-1024-10"},
      {"mnistnet", "MLP 784-2048-1024-512-256-10, the rank-dAD authors' MNISTNet",
       "784-2048-1024-512-256-10"},
  };
  return all;
}

const std::vector<Alias>& variants() {
  static const std::vector<Alias> all = {
      {"transformer-small", "the transformer of one block, 32 wide, 4 heads",
       "transformer:depth=1,dim=32,heads=4"},
      {"vit-small", "the vision transformer of four blocks, 64 wide, 4 heads",
       "vit:depth=4,dim=64,heads=4"},
  };
  return all;
}

const std::vector<NetworkRow>& networks() {
  static const std::vector<NetworkRow> all = {gru_row(), transformer_row(), vit_row()};
  return all;
}

template <class Rows>
auto find(const Rows& rows, const std::string& name) {
  return std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
}

// The network of a specification and its options; null for a name that is not known.
const NetworkRow* find_network(const std::string& text, std::map<std::string, std::string>& given) {
  std::string name = text.substr(0, text.find(':'));
  Spec base;
  if (const auto variant = find(variants(), name); variant != variants().end()) {
    base = parse_spec("model", variant->spec);
    name = base.name;
  }
  const auto row = find(networks(), name);
  if (row == networks().end()) return nullptr;
  given = parse_spec("model", text).options;
  given.merge(base.options);
  return &*row;
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

Index Model::parameter_count() const {
  Index count = 0;
  for (const Parameter& p : parameters_) count += p.value.size();
  return count;
}

double Model::trace_size(Index rows) const {
  double size = 0;
  for (const LinearMap& map : maps_)
    size += static_cast<double>(rows) * static_cast<double>(map.positions) *
            static_cast<double>(map.in + map.out);
  return size;
}

Matrix Model::previous_delta(int /*map*/, const Matrix& /*delta*/,
                             const Matrix& /*activation*/) const {
  throw std::invalid_argument(
      "edad needs a network that is a chain of row-wise layers, such as an MLP");
}

Work Model::gradient_work(Index rows) const {
  Work work;
  for (const LinearMap& map : maps_) {
    work += gemm_work(map.in, rows * map.positions, map.out);
    if (map.bias >= 0) work += pass_work(rows * map.positions * map.out, 1, 1);
  }
  return work;
}

Gradients zero_gradients(const Model& model) {
  Gradients zeros;
  for (const Parameter& p : model.parameters())
    zeros.push_back(Matrix::Zero(p.value.rows(), p.value.cols()));
  return zeros;
}

std::unique_ptr<Model> make_model(const ModelSpec& spec, const DataShape& shape,
                                  std::uint64_t seed) {
  use_one_blas_thread();
  if (is_cost_only(spec)) return make_cost_only_model(spec, seed);
  if (!spec.values)
    throw std::invalid_argument(
        "math: none needs a cost-only model, table:NAME or safetensors:FILE, not " + spec.name);
  if (spec.name.starts_with("mlp:")) return make_mlp(spec.name.substr(4), spec, shape, seed);
  if (const auto mlp = find(mlps(), spec.name); mlp != mlps().end())
    return make_mlp(mlp->spec, spec, shape, seed);
  std::map<std::string, std::string> given;
  if (const NetworkRow* row = find_network(spec.name, given); row != nullptr)
    return row->make(Options("model " + row->name, row->options, given), spec, shape, seed);
  std::string allowed;
  for (const ModelPreset& preset : model_presets()) allowed += preset.name + ", ";
  throw std::invalid_argument("model: \"" + spec.name + "\" is not known; allowed: " + allowed +
                              "mlp:WIDTHS such as mlp:784-300-10, table:NAME, "
                              "safetensors:FILE");
}

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> list = [] {
    std::vector<ModelPreset> rows;
    for (const Alias& mlp : mlps()) rows.push_back({mlp.name, mlp.summary, {}});
    for (const NetworkRow& row : networks()) rows.push_back({row.name, row.summary, row.options});
    for (const Alias& variant : variants()) rows.push_back({variant.name, variant.summary, {}});
    return rows;
  }();
  return list;
}

void check_parameter_count(const std::string& name, double parameters) {
  if (parameters > kMaxParameters)
    throw std::invalid_argument("model: " + name + " has " +
                                std::to_string(std::llround(parameters)) +
                                " parameters; allowed: at most 2^28");
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
