// A transformer encoder that classifies texts (Vaswani et al. 2017; in the shape of the rank-dAD
// authors', after P. Bloem's "former"): token and position embeddings, `depth` blocks, the largest
// value of each feature over the text, one linear map to the classes.  Padding (token 0 from the
// end of a text on) neither attends, is attended to, nor takes part in the maximum; its rows of the
// linear maps' deltas are zero.  A text without tokens counts as one padding token.
#include <stdexcept>

#include "models/attention.h"
#include "models/networks.h"

namespace gradwire {

namespace {

class Transformer final : public Model {
 public:
  Transformer(const DataShape& data, const EncoderShape& shape, Index depth, bool bias,
              std::uint64_t seed)
      : vocabulary_(data.vocabulary),
        shape_(shape),
        builder_(parameters_, maps_, bias, seed),
        tokens_(builder_.add_normal("tokens", vocabulary_, shape.dim, kDeviation)),
        positions_(builder_.add_normal("positions", shape.steps, shape.dim, kDeviation)),
        encoder_(builder_, shape, depth),
        head_(builder_, "head", 1, shape.dim, data.classes, glorot_limit(shape.dim, data.classes)) {
  }

  Matrix forward(const Batch& batch) override {
    embed(batch.inputs);
    pool(encoder_.forward(embedded_, lengths_));
    Matrix scores;
    head_.forward(pooled_, scores);
    return scores;
  }

  void backward(const Matrix& delta, const BackwardSink& sink) override {
    if (delta.rows() != pooled_.rows() || delta.cols() != head_.out())
      throw std::logic_error("backward() needs the delta of the latest forward()'s scores");
    BackwardRun run(sink);
    head_delta_ = delta;
    head_.hand_out(pooled_, head_delta_, run);
    Matrix pooled_delta;
    head_.backward(head_delta_, pooled_delta);
    output_delta_.setZero(embedded_.rows(), shape_.dim);
    for (Index i = 0; i < pooled_delta.rows(); ++i)
      for (Index j = 0; j < shape_.dim; ++j) output_delta_(largest_(i, j), j) = pooled_delta(i, j);
    run.charge(head_.backward_work(delta.rows()) + pass_work(output_delta_.size(), 0, 1));
    embed_back(encoder_.backward(output_delta_, run), run);
  }

  double trace_size(Index rows) const override {
    return Model::trace_size(rows) + encoder_.weights_size(rows);
  }

  Work forward_work(Index rows) const override {
    const Index numbers = rows * shape_.steps * shape_.dim;
    return pass_work(numbers, 1, 3) + encoder_.forward_work(rows) + pass_work(numbers, 1, 1) +
           head_.forward_work(rows);
  }

  Work backward_work(Index rows) const override {
    return head_.backward_work(rows) + pass_work(rows * shape_.steps * shape_.dim, 0, 1) +
           encoder_.backward_work(rows) + embed_back_work(rows) + gradient_work(rows);
  }

 private:
  static constexpr double kDeviation = 0.02;  // BERT's: what is learnt soon outgrows it

  void embed(const Matrix& inputs) {
    if (inputs.cols() != shape_.steps)
      throw std::logic_error("a batch has texts of " + std::to_string(inputs.cols()) +
                             " tokens, the model takes " + std::to_string(shape_.steps));
    ids_ = inputs.cast<Index>();
    lengths_.assign(static_cast<std::size_t>(inputs.rows()), 1);
    embedded_.resize(inputs.size(), shape_.dim);
    for (Index i = 0; i < inputs.rows(); ++i)
      for (Index t = 0; t < shape_.steps; ++t) {
        const Index id = ids_(i, t);
        if (id < 0 || id >= vocabulary_)
          throw std::logic_error("token " + std::to_string(id) + " of a vocabulary of " +
                                 std::to_string(vocabulary_));
        if (id > 0) lengths_[static_cast<std::size_t>(i)] = t + 1;
        embedded_.row(i * shape_.steps + t) = value(tokens_).row(id) + value(positions_).row(t);
      }
  }

  void embed_back(const Matrix& delta, BackwardRun& run) {
    Matrix positions = Matrix::Zero(shape_.steps, shape_.dim);
    Matrix tokens = Matrix::Zero(vocabulary_, shape_.dim);
    for (Index i = 0; i < ids_.rows(); ++i)
      for (Index t = 0; t < lengths_[static_cast<std::size_t>(i)]; ++t) {
        positions.row(t) += delta.row(i * shape_.steps + t);
        tokens.row(ids_(i, t)) += delta.row(i * shape_.steps + t);
      }
    run.charge(embed_back_work(ids_.rows()));
    run.direct(positions_, positions);
    run.direct(tokens_, tokens);
  }

  Work embed_back_work(Index rows) const {
    return pass_work(rows * shape_.steps * shape_.dim, 2, 3) +
           pass_work((vocabulary_ + shape_.steps) * shape_.dim, 0, 1);
  }

  void pool(const Matrix& output) {
    pooled_.resize(ids_.rows(), shape_.dim);
    largest_.resize(ids_.rows(), shape_.dim);
    for (Index i = 0; i < ids_.rows(); ++i) {
      const Index first = i * shape_.steps;
      pooled_.row(i) = output.row(first);
      largest_.row(i).setConstant(first);
      for (Index r = first + 1; r < first + lengths_[static_cast<std::size_t>(i)]; ++r)
        for (Index j = 0; j < shape_.dim; ++j)
          if (!(output(r, j) <= pooled_(i, j))) {  // a NaN must stay visible
            pooled_(i, j) = output(r, j);
            largest_(i, j) = r;
          }
    }
  }

  const Matrix& value(int parameter) const {
    return parameters_[static_cast<std::size_t>(parameter)].value;
  }

  using Indices = Eigen::Matrix<Index, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  Index vocabulary_;
  EncoderShape shape_;
  NetworkBuilder builder_;
  int tokens_;
  int positions_;
  Encoder encoder_;
  Linear head_;
  Indices ids_;      // (rows, steps)
  Lengths lengths_;  // of the texts
  Matrix embedded_;  // (rows * steps, dim)
  Matrix pooled_;    // (rows, dim)
  Indices largest_;  // (rows, dim): the row that each came from
  Matrix head_delta_;
  Matrix output_delta_;
};

std::unique_ptr<Model> make_transformer(const Options& options, const ModelSpec& spec,
                                        const DataShape& data, std::uint64_t seed) {
  if (data.vocabulary < 1 || data.steps != data.features)
    throw std::invalid_argument("model: transformer takes texts, but the data are no texts");
  const EncoderShape shape = encoder_shape(options, "transformer", data.steps);
  const Index depth = encoder_depth(options);
  const auto rest = static_cast<double>(data.vocabulary + data.steps + data.classes);
  check_parameter_count(spec.name,
                        encoder_parameters(shape, depth) + rest * static_cast<double>(shape.dim));
  return std::make_unique<Transformer>(data, shape, depth, spec.bias && options.flag("bias"), seed);
}

}  // namespace

NetworkRow transformer_row() {
  return {.name = "transformer",
          .summary = "transformer encoder over texts, pooled by maximum, as the rank-dAD authors'",
          .options =
              encoder_options({.dim = "128", .depth = "6", .nonlinearity = "relu", .norm = "last"}),
          .make = make_transformer};
}

}  // namespace gradwire
