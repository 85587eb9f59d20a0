// Multi-head scaled dot-product self-attention (Vaswani et al. 2017), the encoder block around it
// and a stack of them.  Rows are examples times steps, all steps of an example together.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "models/layers.h"

namespace gradwire {

/// What every block of an encoder has.
struct EncoderShape {
  Index steps = 0;  ///< rows per example
  Index dim = 0;    ///< columns; a multiple of heads
  Index heads = 1;
  Index feed_forward = 0;    ///< hidden width
  bool gelu = true;          ///< relu otherwise
  bool norm_first = true;    ///< x + f(norm(x)); otherwise norm(x + f(x)), as first published
  bool fused_input = false;  ///< one linear map to queries, keys and values instead of three
};

/// The rows of every example that count, its first `lengths[i]`; the rest neither attend nor are
/// attended to, and their outputs are those of zero attention.
using Lengths = std::vector<Index>;

/// Per example and head: softmax(Q K^T / sqrt(dim / heads)) V.
class Attention {
 public:
  explicit Attention(const EncoderShape& shape) : shape_(shape) {}

  /// A matrix of heads side by side, (examples * steps, dim), within rows of `stride` numbers.
  struct In {
    const Scalar* data;
    Index stride;
  };
  struct Out {
    Scalar* data;
    Index stride;
  };

  /// out is (examples * steps, dim).
  void forward(const std::array<In, 3>& qkv, const Lengths& lengths, Matrix& out);
  /// Writes the deltas of the rows that count.
  void backward(const std::array<In, 3>& qkv, const Lengths& lengths, const Matrix& delta,
                const std::array<Out, 3>& deltas);

  Work forward_work(Index examples) const;
  Work backward_work(Index examples) const;
  /// Numbers in the attention weights of a batch.
  double weights_size(Index examples) const;

 private:
  EncoderShape shape_;
  Matrix probabilities_;  // (examples * heads * steps, steps)
};

/// One block: self-attention with its output map, then two linear maps with a nonlinearity between,
/// each with a residual connection and a LayerNorm.
class EncoderBlock {
 public:
  EncoderBlock(NetworkBuilder& builder, const std::string& name, const EncoderShape& shape);

  /// x must stay as it is until the backward pass is over.
  const Matrix& forward(const Matrix& x, const Lengths& lengths);
  /// Takes the delta of the output, which must stay until the next forward(); that of x.
  const Matrix& backward(const Matrix& delta, BackwardRun& run);

  Work forward_work(Index examples) const;
  Work backward_work(Index examples) const;  ///< without the gradients of the linear maps
  const Attention& attention() const { return attention_; }

 private:
  // What is behind the residual connections; adds to y and, going back, to dx.
  void attend(const Matrix& x, Matrix& y);
  void attend_backward(const Matrix& delta, BackwardRun& run, Matrix& dx);
  void feed(const Matrix& x, Matrix& y);
  void feed_backward(const Matrix& delta, BackwardRun& run, Matrix& dx);

  std::array<Attention::In, 3> qkv() const;

  EncoderShape shape_;
  std::vector<Linear> input_maps_;  // q, k, v or one of all three
  Linear output_map_;
  Linear widen_;
  Linear narrow_;
  LayerNorm attention_norm_;
  LayerNorm feed_norm_;
  Attention attention_;

  Lengths lengths_;
  const Matrix* attend_input_ = nullptr;
  const Matrix* feed_input_ = nullptr;
  std::vector<Matrix> inputs_;  // Q, K, V, or all three side by side
  std::vector<Matrix> input_deltas_;
  Matrix heads_;   // the attention's output
  Matrix hidden_;  // feed-forward
  Matrix slope_;   // of GELU
  Matrix hidden_delta_;
  Matrix middle_;        // between attention and feed-forward
  Matrix middle_delta_;  // of the output map
  Matrix output_;
  Matrix output_delta_;  // of the narrowing map, where a norm follows it
  Matrix dx_;
};

/// Blocks one after the other; where norms come first, one more follows the last block.
class Encoder {
 public:
  Encoder(NetworkBuilder& builder, const EncoderShape& shape, Index depth);

  /// As of a block.
  const Matrix& forward(const Matrix& x, const Lengths& lengths);
  const Matrix& backward(const Matrix& delta, BackwardRun& run);
  Work forward_work(Index examples) const;
  Work backward_work(Index examples) const;
  double weights_size(Index examples) const;  ///< attention's

 private:
  Index steps_;
  std::deque<EncoderBlock> blocks_;  // blocks point into each other: they must not move
  std::optional<LayerNorm> norm_;
  Matrix norm_delta_;
};

/// The options of a network with an encoder: dim, depth, heads, feed-forward, nonlinearity, norm,
/// qkv, bias.
struct EncoderDefaults {
  std::string dim;
  std::string depth;
  std::string nonlinearity;
  std::string norm;
};
std::vector<OptionSpec> encoder_options(const EncoderDefaults& defaults);

/// What they say.  Throws std::invalid_argument, naming the network, where dim is no multiple of
/// heads.
EncoderShape encoder_shape(const Options& options, const std::string& network, Index steps);
Index encoder_depth(const Options& options);

/// About as many as the blocks will have.
double encoder_parameters(const EncoderShape& shape, Index depth);

}  // namespace gradwire
