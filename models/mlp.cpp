// Multi-layer perceptrons: Z_i = A_{i-1} W_i + 1 b_i, A_i = phi(Z_i), the last layer linear.  With
// D_i = d(sum of losses)/dZ_i: D_i = (D_{i+1} W_{i+1}^T) * phi'(Z_i), phi' taken from the output.
#include <charconv>
#include <stdexcept>

#include "models/layers.h"
#include "models/networks.h"

namespace gradwire {

namespace {

constexpr Index kMaxWidth = 1'000'000;

class Mlp final : public Model {
 public:
  Mlp(const std::vector<Index>& widths, Activation activation, bool bias, std::uint64_t seed)
      : builder_(parameters_, maps_, bias, seed), chain_(builder_, "fc", widths, activation) {}

  Matrix forward(const Batch& batch) override {
    if (batch.inputs.cols() != maps_.front().in)
      throw std::logic_error("a batch has " + std::to_string(batch.inputs.cols()) +
                             " features, the model takes " + std::to_string(maps_.front().in));
    chain_.input() = batch.inputs;
    return chain_.forward();
  }

  Work forward_work(Index rows) const override { return chain_.forward_work(rows); }

  Work backward_work(Index rows) const override {
    return chain_.backward_work(rows) + gradient_work(rows);
  }

  void backward(const Matrix& delta, const BackwardSink& sink) override {
    BackwardRun run(sink);
    chain_.backward(delta, run);
  }

  Matrix previous_delta(int map, const Matrix& delta, const Matrix& activation) const override {
    if (map < 1 || static_cast<std::size_t>(map) >= maps_.size())
      throw std::logic_error("linear map " + std::to_string(map) + " has no previous delta");
    return chain_.previous_delta(static_cast<std::size_t>(map), delta, activation);
  }

 private:
  NetworkBuilder builder_;
  DenseChain chain_;
};

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
  check_parameter_count(name, parameters);
}

}  // namespace

std::vector<Index> parse_widths(const std::string& subject, const std::string& text) {
  std::vector<Index> widths;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();; ++at) {
    Index width = 0;
    const auto [after, error] = std::from_chars(at, end, width);
    if (error != std::errc{} || width < 1 || width > kMaxWidth || (after != end && *after != '-'))
      throw std::invalid_argument(subject +
                                  " needs widths from 1 to 1000000 joined by '-', such as "
                                  "784-300-10");
    widths.push_back(width);
    at = after;
    if (at == end) break;
  }
  return widths;
}

std::unique_ptr<Model> make_mlp(const std::string& widths, const ModelSpec& spec,
                                const DataShape& shape, std::uint64_t seed) {
  const Activation activation = parse_activation(spec.activation);
  const std::vector<Index> parsed = parse_widths("model: \"" + spec.name + "\"", widths);
  if (parsed.size() < 2)
    throw std::invalid_argument("model: \"" + spec.name +
                                "\" needs at least two widths, such as mlp:784-10");
  check_fit(spec.name, parsed, shape);
  return std::make_unique<Mlp>(parsed, activation, spec.bias, seed);
}

}  // namespace gradwire
