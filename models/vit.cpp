// A vision transformer (Dosovitskiy et al. 2021): one linear map embeds square patches, a class
// token goes before them, positions are added; `depth` blocks; one linear map takes the class
// token's output, normalised, to the classes.  The rank-dAD authors' has Linformer attention where
// this one has softmax attention; the linear maps are the same.
#include <stdexcept>

#include "models/attention.h"
#include "models/networks.h"

namespace gradwire {

namespace {

class VisionTransformer final : public Model {
 public:
  VisionTransformer(const DataShape& data, Index patch, const EncoderShape& shape, Index depth,
                    bool bias, std::uint64_t seed)
      : data_(data),
        patch_(patch),
        shape_(shape),
        builder_(parameters_, maps_, bias, seed),
        class_token_(builder_.add_normal("class_token", 1, shape.dim, kDeviation)),
        positions_(builder_.add_normal("positions", shape.steps, shape.dim, kDeviation)),
        embed_(builder_, "patches", shape.steps - 1, patch * patch * data.channels, shape.dim,
               glorot_limit(patch * patch * data.channels, shape.dim)),
        encoder_(builder_, shape, depth),
        head_(builder_, "head", 1, shape.dim, data.classes, glorot_limit(shape.dim, data.classes)) {
  }

  Matrix forward(const Batch& batch) override {
    if (batch.inputs.cols() != data_.features)
      throw std::logic_error("a batch has " + std::to_string(batch.inputs.cols()) +
                             " features, the model takes " + std::to_string(data_.features));
    cut(batch.inputs);
    Matrix embedded;
    embed_.forward(patches_, embedded);
    const Index rows = batch.inputs.rows();
    const Index patches = shape_.steps - 1;
    tokens_.resize(rows * shape_.steps, shape_.dim);
    for (Index i = 0; i < rows; ++i) {
      tokens_.row(i * shape_.steps) = value(class_token_);
      tokens_.middleRows(i * shape_.steps + 1, patches) = embedded.middleRows(i * patches, patches);
      tokens_.middleRows(i * shape_.steps, shape_.steps) += value(positions_);
    }
    const Lengths lengths(static_cast<std::size_t>(rows), shape_.steps);
    const Matrix& output = encoder_.forward(tokens_, lengths);
    class_output_.resize(rows, shape_.dim);
    for (Index i = 0; i < rows; ++i) class_output_.row(i) = output.row(i * shape_.steps);
    Matrix scores;
    head_.forward(class_output_, scores);
    return scores;
  }

  void backward(const Matrix& delta, const BackwardSink& sink) override {
    if (delta.rows() != class_output_.rows() || delta.cols() != head_.out())
      throw std::logic_error("backward() needs the delta of the latest forward()'s scores");
    BackwardRun run(sink);
    head_delta_ = delta;
    head_.hand_out(class_output_, head_delta_, run);
    Matrix class_delta;
    head_.backward(head_delta_, class_delta);
    output_delta_.setZero(tokens_.rows(), shape_.dim);
    for (Index i = 0; i < delta.rows(); ++i)
      output_delta_.row(i * shape_.steps) = class_delta.row(i);
    run.charge(head_.backward_work(delta.rows()) + pass_work(output_delta_.size(), 0, 1));
    embed_back(encoder_.backward(output_delta_, run), run);
  }

  double trace_size(Index rows) const override {
    return Model::trace_size(rows) + encoder_.weights_size(rows);
  }

  Work forward_work(Index rows) const override {
    return embed_.forward_work(rows * (shape_.steps - 1)) +
           pass_work(rows * shape_.steps * shape_.dim, 1, 5) + encoder_.forward_work(rows) +
           head_.forward_work(rows);
  }

  Work backward_work(Index rows) const override {
    return head_.backward_work(rows) + pass_work(rows * shape_.steps * shape_.dim, 0, 1) +
           encoder_.backward_work(rows) + embed_back_work(rows) + gradient_work(rows);
  }

 private:
  static constexpr double kDeviation = 0.02;

  // patches_: row i (steps-1) + p is patch p of image i, patches row by row, channel planes one
  // after the other.
  void cut(const Matrix& images) {
    const Index across = data_.width / patch_;
    const Index down = data_.height / patch_;
    patches_.resize(images.rows() * across * down, patch_ * patch_ * data_.channels);
    for (Index i = 0; i < images.rows(); ++i)
      for (Index py = 0; py < down; ++py)
        for (Index px = 0; px < across; ++px) {
          auto row = patches_.row((i * down + py) * across + px);
          for (Index c = 0; c < data_.channels; ++c)
            for (Index y = 0; y < patch_; ++y)
              row.segment((c * patch_ + y) * patch_, patch_) = images.row(i).segment(
                  (c * data_.height + py * patch_ + y) * data_.width + px * patch_, patch_);
        }
  }

  void embed_back(const Matrix& delta, BackwardRun& run) {
    const Index patches = shape_.steps - 1;
    const Index rows = delta.rows() / shape_.steps;
    Matrix positions = Matrix::Zero(shape_.steps, shape_.dim);
    patches_delta_.resize(rows * patches, shape_.dim);
    for (Index i = 0; i < rows; ++i) {
      positions += delta.middleRows(i * shape_.steps, shape_.steps);
      patches_delta_.middleRows(i * patches, patches) =
          delta.middleRows(i * shape_.steps + 1, patches);
    }
    run.charge(embed_back_work(rows));
    embed_.hand_out(patches_, patches_delta_, run);
    run.direct(positions_, positions);
    run.direct(class_token_, positions.row(0));
  }

  Work embed_back_work(Index rows) const {
    return pass_work(rows * shape_.steps * shape_.dim, 1, 4);
  }

  const Matrix& value(int parameter) const {
    return parameters_[static_cast<std::size_t>(parameter)].value;
  }

  DataShape data_;
  Index patch_;
  EncoderShape shape_;
  NetworkBuilder builder_;
  int class_token_;
  int positions_;
  Linear embed_;
  Encoder encoder_;
  Linear head_;
  Matrix patches_;  // (rows * patches, patch * patch * channels)
  Matrix patches_delta_;
  Matrix tokens_;        // (rows * steps, dim)
  Matrix class_output_;  // (rows, dim)
  Matrix head_delta_;
  Matrix output_delta_;
};

std::string size_of(const DataShape& data) {
  return std::to_string(data.height) + "x" + std::to_string(data.width);
}

std::unique_ptr<Model> make_vit(const Options& options, const ModelSpec& spec,
                                const DataShape& data, std::uint64_t seed) {
  if (data.height * data.width * data.channels != data.features || data.height < 2)
    throw std::invalid_argument("model: vit takes images, but the data are no images");
  const Index patch = options.integer("patch", 1, 1 << 12);
  if (data.height % patch != 0 || data.width % patch != 0)
    throw std::invalid_argument("model vit: patch=" + options.choice("patch") +
                                " does not divide images of " + size_of(data));
  const Index steps = 1 + data.height / patch * (data.width / patch);
  const EncoderShape shape = encoder_shape(options, "vit", steps);
  const Index depth = encoder_depth(options);
  const auto rest = static_cast<double>(patch * patch * data.channels + steps + data.classes);
  check_parameter_count(spec.name,
                        encoder_parameters(shape, depth) + rest * static_cast<double>(shape.dim));
  return std::make_unique<VisionTransformer>(data, patch, shape, depth,
                                             spec.bias && options.flag("bias"), seed);
}

}  // namespace

NetworkRow vit_row() {
  std::vector<OptionSpec> options =
      encoder_options({.dim = "128", .depth = "12", .nonlinearity = "gelu", .norm = "first"});
  options.push_back({"patch", "4", "side of a patch in pixels; the authors' images have 7x7", {}});
  return {.name = "vit",
          .summary = "vision transformer with a class token, in the rank-dAD authors' size",
          .options = std::move(options),
          .make = make_vit};
}

}  // namespace gradwire
