#include "models/attention.h"

#include <cmath>
#include <stdexcept>

namespace gradwire {

namespace {

using Stride = Eigen::OuterStride<>;
using ConstBlock = Eigen::Map<const Matrix, 0, Stride>;
using Block = Eigen::Map<Matrix, 0, Stride>;

}  // namespace

void Attention::forward(const std::array<In, 3>& qkv, const Lengths& lengths, Matrix& out) {
  const Index steps = shape_.steps;
  const Index width = shape_.dim / shape_.heads;
  const auto scale = static_cast<Scalar>(1 / std::sqrt(static_cast<double>(width)));
  const auto examples = static_cast<Index>(lengths.size());
  probabilities_.resize(examples * shape_.heads * steps, steps);
  out.resize(examples * steps, shape_.dim);
  for (Index e = 0; e < examples; ++e) {
    const Index n = lengths[static_cast<std::size_t>(e)];
    out.middleRows(e * steps + n, steps - n).setZero();
    for (Index h = 0; h < shape_.heads; ++h) {
      const auto part = [&](std::size_t which) {
        const auto& [data, stride] = qkv[which];
        return ConstBlock(data + e * steps * stride + h * width, n, width, Stride(stride));
      };
      Block p(probabilities_.data() + (e * shape_.heads + h) * steps * steps, n, n, Stride(steps));
      p.noalias() = scale * part(0) * part(1).transpose();
      for (Index i = 0; i < n; ++i) {
        auto row = p.row(i).array();
        row = (row - row.maxCoeff()).exp();
        row *= 1 / row.sum();
      }
      Block(out.data() + e * steps * shape_.dim + h * width, n, width, Stride(shape_.dim))
          .noalias() = p * part(2);
    }
  }
}

void Attention::backward(const std::array<In, 3>& qkv, const Lengths& lengths, const Matrix& delta,
                         const std::array<Out, 3>& deltas) {
  const Index steps = shape_.steps;
  const Index width = shape_.dim / shape_.heads;
  const auto scale = static_cast<Scalar>(1 / std::sqrt(static_cast<double>(width)));
  Matrix ds;
  for (Index e = 0; e < static_cast<Index>(lengths.size()); ++e) {
    const Index n = lengths[static_cast<std::size_t>(e)];
    ds.resize(n, n);
    for (Index h = 0; h < shape_.heads; ++h) {
      const auto part = [&](std::size_t which) {
        const auto& [data, stride] = qkv[which];
        return ConstBlock(data + e * steps * stride + h * width, n, width, Stride(stride));
      };
      const auto delta_of = [&](std::size_t which) {
        const auto& [data, stride] = deltas[which];
        return Block(data + e * steps * stride + h * width, n, width, Stride(stride));
      };
      const ConstBlock p(probabilities_.data() + (e * shape_.heads + h) * steps * steps, n, n,
                         Stride(steps));
      const ConstBlock d(delta.data() + e * steps * shape_.dim + h * width, n, width,
                         Stride(shape_.dim));
      delta_of(2).noalias() = p.transpose() * d;
      ds.noalias() = d * part(2).transpose();
      for (Index i = 0; i < n; ++i) {
        auto row = ds.row(i).array();
        const Scalar mean = (row * p.row(i).array()).sum();
        row = p.row(i).array() * (row - mean);
      }
      delta_of(0).noalias() = scale * ds * part(1);
      delta_of(1).noalias() = scale * ds.transpose() * part(0);
    }
  }
}

double Attention::weights_size(Index examples) const {
  const auto steps = static_cast<double>(shape_.steps);
  return static_cast<double>(examples * shape_.heads) * steps * steps;
}

Work Attention::forward_work(Index examples) const {
  const Index scores = examples * shape_.heads * shape_.steps * shape_.steps;
  const auto width = static_cast<double>(shape_.dim / shape_.heads);
  return pass_work(scores, 4 * width + 5, 4);  // two products, softmax
}

Work Attention::backward_work(Index examples) const {
  const Index scores = examples * shape_.heads * shape_.steps * shape_.steps;
  const auto width = static_cast<double>(shape_.dim / shape_.heads);
  return pass_work(scores, 8 * width + 4, 7);  // four products, softmax
}

EncoderBlock::EncoderBlock(NetworkBuilder& builder, const std::string& name,
                           const EncoderShape& shape)
    : shape_(shape),
      input_maps_([&] {
        std::vector<Linear> maps;
        const double limit = glorot_limit(shape.dim, shape.dim);
        if (shape.fused_input)
          maps.emplace_back(builder, name + ".qkv", shape.steps, shape.dim, 3 * shape.dim, limit);
        else
          for (const char* part : {".q", ".k", ".v"})
            maps.emplace_back(builder, name + part, shape.steps, shape.dim, shape.dim, limit);
        return maps;
      }()),
      output_map_(builder, name + ".out", shape.steps, shape.dim, shape.dim,
                  glorot_limit(shape.dim, shape.dim)),
      widen_(builder, name + ".ff1", shape.steps, shape.dim, shape.feed_forward,
             glorot_limit(shape.dim, shape.feed_forward)),
      narrow_(builder, name + ".ff2", shape.steps, shape.feed_forward, shape.dim,
              glorot_limit(shape.dim, shape.feed_forward)),
      attention_norm_(builder, name + ".norm1", shape.dim),
      feed_norm_(builder, name + ".norm2", shape.dim),
      attention_(shape),
      inputs_(input_maps_.size()),
      input_deltas_(input_maps_.size()) {}

const Matrix& EncoderBlock::forward(const Matrix& x, const Lengths& lengths) {
  lengths_ = lengths;
  middle_ = x;
  if (shape_.norm_first) {
    attend(attention_norm_.forward(x), middle_);
    output_ = middle_;
    feed(feed_norm_.forward(middle_), output_);
    return output_;
  }
  attend(x, middle_);
  const Matrix& normalised = attention_norm_.forward(middle_);
  output_ = normalised;
  feed(normalised, output_);
  return feed_norm_.forward(output_);
}

const Matrix& EncoderBlock::backward(const Matrix& delta, BackwardRun& run) {
  const auto zero = [&] { return Matrix::Zero(delta.rows(), delta.cols()); };
  if (shape_.norm_first) {
    Matrix d = zero();
    feed_backward(delta, run, d);
    middle_delta_ = delta;
    feed_norm_.backward(d, run, middle_delta_);
    d.setZero();
    attend_backward(middle_delta_, run, d);
    dx_ = middle_delta_;
    attention_norm_.backward(d, run, dx_);
    return dx_;
  }
  output_delta_ = zero();
  feed_norm_.backward(delta, run, output_delta_);
  dx_ = output_delta_;
  feed_backward(output_delta_, run, dx_);
  middle_delta_ = zero();
  attention_norm_.backward(dx_, run, middle_delta_);
  dx_ = middle_delta_;
  attend_backward(middle_delta_, run, dx_);
  return dx_;
}

std::array<Attention::In, 3> EncoderBlock::qkv() const {
  const auto at = [&](std::size_t which) -> Attention::In {
    if (!shape_.fused_input) return {inputs_[which].data(), shape_.dim};
    return {inputs_[0].data() + static_cast<Index>(which) * shape_.dim, 3 * shape_.dim};
  };
  return {at(0), at(1), at(2)};
}

void EncoderBlock::attend(const Matrix& x, Matrix& y) {
  attend_input_ = &x;
  for (std::size_t i = 0; i < input_maps_.size(); ++i) input_maps_[i].forward(x, inputs_[i]);
  attention_.forward(qkv(), lengths_, heads_);
  output_map_.add_forward(heads_, y);
}

void EncoderBlock::attend_backward(const Matrix& delta, BackwardRun& run, Matrix& dx) {
  output_map_.hand_out(heads_, delta, run);
  Matrix heads_delta;
  output_map_.backward(delta, heads_delta);
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    input_deltas_[i].setZero(inputs_[i].rows(), inputs_[i].cols());
  const auto at = [&](std::size_t which) -> Attention::Out {
    if (!shape_.fused_input) return {input_deltas_[which].data(), shape_.dim};
    return {input_deltas_[0].data() + static_cast<Index>(which) * shape_.dim, 3 * shape_.dim};
  };
  attention_.backward(qkv(), lengths_, heads_delta, {at(0), at(1), at(2)});
  run.charge(output_map_.backward_work(delta.rows()) +
             attention_.backward_work(static_cast<Index>(lengths_.size())));
  for (std::size_t i = input_maps_.size(); i-- > 0;) {
    input_maps_[i].hand_out(*attend_input_, input_deltas_[i], run);
    input_maps_[i].add_backward(input_deltas_[i], dx);
    run.charge(input_maps_[i].backward_work(delta.rows()));
  }
}

void EncoderBlock::feed(const Matrix& x, Matrix& y) {
  feed_input_ = &x;
  if (shape_.gelu) {
    widen_.forward(x, slope_);
    gelu(slope_, hidden_);
  } else {
    widen_.forward(x, hidden_);
    activate(Activation::kRelu, hidden_);
  }
  narrow_.add_forward(hidden_, y);
}

void EncoderBlock::feed_backward(const Matrix& delta, BackwardRun& run, Matrix& dx) {
  narrow_.hand_out(hidden_, delta, run);
  narrow_.backward(delta, hidden_delta_);
  if (shape_.gelu)
    hidden_delta_.array() *= slope_.array();
  else
    multiply_by_slope(Activation::kRelu, hidden_, hidden_delta_);
  run.charge(narrow_.backward_work(delta.rows()) + pass_work(hidden_.size(), 1, 3));
  widen_.hand_out(*feed_input_, hidden_delta_, run);
  widen_.add_backward(hidden_delta_, dx);
  run.charge(widen_.backward_work(delta.rows()));
}

Work EncoderBlock::forward_work(Index examples) const {
  const Index rows = examples * shape_.steps;
  Work work = attention_.forward_work(examples);
  for (const Linear& map : input_maps_) work += map.forward_work(rows);
  for (const Linear* map : {&output_map_, &widen_, &narrow_}) work += map->forward_work(rows);
  work += pass_work(rows * shape_.dim, 2, 6);  // residual connections
  work += pass_work(rows * shape_.feed_forward, shape_.gelu ? 20 : 1, shape_.gelu ? 3 : 2);
  return work + attention_norm_.forward_work(rows) + feed_norm_.forward_work(rows);
}

Work EncoderBlock::backward_work(Index examples) const {
  const Index rows = examples * shape_.steps;
  Work work = attention_.backward_work(examples);
  for (const Linear& map : input_maps_) work += map.backward_work(rows);
  for (const Linear* map : {&output_map_, &widen_, &narrow_}) work += map->backward_work(rows);
  work += pass_work(rows * shape_.feed_forward, 1, 3);
  return work + attention_norm_.backward_work(rows) + feed_norm_.backward_work(rows);
}

Encoder::Encoder(NetworkBuilder& builder, const EncoderShape& shape, Index depth)
    : steps_(shape.steps) {
  for (Index i = 1; i <= depth; ++i)
    blocks_.emplace_back(builder, "block" + std::to_string(i), shape);
  if (shape.norm_first) norm_.emplace(builder, "norm", shape.dim);
}

const Matrix& Encoder::forward(const Matrix& x, const Lengths& lengths) {
  const Matrix* output = &x;
  for (EncoderBlock& block : blocks_) output = &block.forward(*output, lengths);
  return norm_ ? norm_->forward(*output) : *output;
}

const Matrix& Encoder::backward(const Matrix& delta, BackwardRun& run) {
  const Matrix* at = &delta;
  if (norm_) {
    norm_delta_.setZero(delta.rows(), delta.cols());
    norm_->backward(delta, run, norm_delta_);
    at = &norm_delta_;
  }
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block)
    at = &block->backward(*at, run);
  return *at;
}

double Encoder::weights_size(Index examples) const {
  double size = 0;
  for (const EncoderBlock& block : blocks_) size += block.attention().weights_size(examples);
  return size;
}

Work Encoder::forward_work(Index examples) const {
  Work work;
  for (const EncoderBlock& block : blocks_) work += block.forward_work(examples);
  if (norm_) work += norm_->forward_work(examples * steps_);
  return work;
}

Work Encoder::backward_work(Index examples) const {
  Work work;
  for (const EncoderBlock& block : blocks_) work += block.backward_work(examples);
  if (norm_) work += norm_->backward_work(examples * steps_);
  return work;
}

std::vector<OptionSpec> encoder_options(const EncoderDefaults& defaults) {
  return {{"dim", defaults.dim, "width of a token, a multiple of heads", {}},
          {"depth", defaults.depth, "blocks", {}},
          {"heads", "8", "attention heads per block", {}},
          {"feed-forward", "0", "hidden width of a block's feed-forward part; 0: 4 dim", {}},
          {"nonlinearity", defaults.nonlinearity, "of the feed-forward part", {"relu", "gelu"}},
          {"norm",
           defaults.norm,
           "x + f(norm(x)), and one more norm at the end, or norm(x + f(x))",
           {"first", "last"}},
          {"qkv",
           "split",
           "three linear maps to queries, keys and values, or one whose activation counts once",
           {"split", "fused"}},
          {"bias", "on", "of all linear maps", {"on", "off"}}};
}

EncoderShape encoder_shape(const Options& options, const std::string& network, Index steps) {
  EncoderShape shape{.steps = steps,
                     .dim = options.integer("dim", 1, 1 << 14),
                     .heads = options.integer("heads", 1, 1 << 14),
                     .feed_forward = options.integer("feed-forward", 0, 1 << 16),
                     .gelu = options.choice("nonlinearity") == "gelu",
                     .norm_first = options.choice("norm") == "first",
                     .fused_input = options.choice("qkv") == "fused"};
  if (shape.dim % shape.heads != 0)
    throw std::invalid_argument("model " + network + ": dim=" + options.choice("dim") +
                                " is no multiple of heads=" + options.choice("heads"));
  if (shape.feed_forward == 0) shape.feed_forward = 4 * shape.dim;
  return shape;
}

Index encoder_depth(const Options& options) { return options.integer("depth", 1, 1000); }

double encoder_parameters(const EncoderShape& shape, Index depth) {
  return static_cast<double>(depth) * static_cast<double>(shape.dim) *
         static_cast<double>(4 * shape.dim + 2 * shape.feed_forward);
}

}  // namespace gradwire
