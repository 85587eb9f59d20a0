// A recurrent network for sequences (GRU, Cho et al. 2014, in the form of PyTorch and of the
// rank-dAD authors), every state of which an MLP classifies.  Per step, with gates r, z, n of
// `hidden` numbers each, [xr xz xn] = x W_x + b_x and [hr hz hn] = h W_h + b_h:
//   r = sigmoid(xr + hr)   z = sigmoid(xz + hz)   n = tanh(xn + r * hn)   h' = n + z * (h - n)
// W_x and W_h are linear maps (x2h, h2h) of steps x batch rows: row t B + i is step t of example i,
// so that a trace pairs activation and delta of the same step.  The states of all steps side by
// side are the input of the head (fc1, fc2, ...).  A shorter sequence goes on with zeros.
#include <cmath>
#include <stdexcept>

#include "models/layers.h"
#include "models/networks.h"

namespace gradwire {

namespace {

class GruNetwork final : public Model {
 public:
  GruNetwork(const DataShape& shape, Index hidden, const std::vector<Index>& head,
             Activation activation, bool bias, std::uint64_t seed)
      : steps_(shape.steps),
        channels_(shape.channels),
        hidden_(hidden),
        builder_(parameters_, maps_, bias, seed),
        x2h_(builder_, "x2h", steps_, channels_, 3 * hidden, limit()),
        h2h_(builder_, "h2h", steps_, hidden, 3 * hidden, limit()),
        head_(builder_, "fc", head, activation) {}

  Matrix forward(const Batch& batch) override {
    if (batch.inputs.cols() != steps_ * channels_)
      throw std::logic_error("a batch has " + std::to_string(batch.inputs.cols()) +
                             " features, the model takes " + std::to_string(steps_ * channels_));
    const Index rows = batch.inputs.rows();
    inputs_.resize(steps_ * rows, channels_);
    for (Index t = 0; t < steps_; ++t)
      inputs_.middleRows(t * rows, rows) = batch.inputs.middleCols(t * channels_, channels_);
    x2h_.forward(inputs_, gates_);
    states_.resize(steps_ * rows, hidden_);
    states_.topRows(rows).setZero();
    candidates_.resize(steps_ * rows, hidden_);
    head_.input().resize(rows, steps_ * hidden_);
    for (Index t = 0; t < steps_; ++t) step(t, rows);
    return head_.forward();
  }

  void backward(const Matrix& delta, const BackwardSink& sink) override {
    BackwardRun run(sink);
    head_.backward(delta, run);
    Matrix head_delta;  // (rows, steps * hidden)
    head_.input_delta(run, head_delta);
    const Index rows = delta.rows();
    x_delta_.resize(steps_ * rows, 3 * hidden_);
    h_delta_.resize(steps_ * rows, 3 * hidden_);
    Matrix state_delta = Matrix::Zero(rows, hidden_);
    for (Index t = steps_; t-- > 0;) step_back(t, head_delta, state_delta);
    run.charge(recurrence_work(rows));
    h2h_.hand_out(states_, h_delta_, run);
    x2h_.hand_out(inputs_, x_delta_, run);
  }

  Work forward_work(Index rows) const override {
    return x2h_.forward_work(steps_ * rows) + h2h_.forward_work(steps_ * rows) +
           pass_work(steps_ * rows * hidden_, 30, 12) + head_.forward_work(rows);
  }

  Work backward_work(Index rows) const override {
    return head_.backward_work(rows) + head_.input_delta_work(rows) + recurrence_work(rows) +
           gradient_work(rows);
  }

 private:
  double limit() const { return 1 / std::sqrt(static_cast<double>(hidden_)); }  // PyTorch's

  // The state after step t, from the x part of its gates; the gates take their values.
  void step(Index t, Index rows) {
    const Index h = hidden_;
    step_state_ = states_.middleRows(t * rows, rows);
    h2h_.forward(step_state_, step_gates_);
    for (Index i = 0; i < rows; ++i) {
      const Index row = t * rows + i;
      auto rz = gates_.row(row).head(2 * h).array();
      auto n = gates_.row(row).tail(h).array();
      const auto hn = step_gates_.row(i).tail(h).array();
      rz = (1 + (-rz - step_gates_.row(i).head(2 * h).array()).exp()).inverse();
      n = (n + rz.head(h) * hn).tanh();
      candidates_.row(row) = hn;
      auto next = head_.input().row(i).segment(t * h, h).array();
      next = n + rz.tail(h) * (step_state_.row(i).array() - n);
      if (t + 1 < steps_) states_.row(row + rows) = next;
    }
  }

  // The gates' deltas at step t; state_delta, of the state after it from later steps, becomes that
  // of the state before it.
  void step_back(Index t, const Matrix& head_delta, Matrix& state_delta) {
    const Index h = hidden_;
    const Index rows = state_delta.rows();
    for (Index i = 0; i < rows; ++i) {
      const Index row = t * rows + i;
      const auto r = gates_.row(row).head(h).array();
      const auto z = gates_.row(row).segment(h, h).array();
      const auto n = gates_.row(row).tail(h).array();
      auto d = state_delta.row(i).array();
      auto dx = x_delta_.row(row).array();
      d += head_delta.row(i).segment(t * h, h).array();
      dx.tail(h) = d * (1 - z) * (1 - n.square());
      dx.segment(h, h) = d * (states_.row(row).array() - n) * z * (1 - z);
      dx.head(h) = dx.tail(h) * candidates_.row(row).array() * r * (1 - r);
      auto dh = h_delta_.row(row).array();
      dh.head(2 * h) = dx.head(2 * h);
      dh.tail(h) = dx.tail(h) * r;
      d *= z;
    }
    if (t == 0) return;
    step_gates_ = h_delta_.middleRows(t * rows, rows);
    h2h_.add_backward(step_gates_, state_delta);
  }

  Work recurrence_work(Index rows) const {
    return h2h_.backward_work((steps_ - 1) * rows) + pass_work(steps_ * rows * hidden_, 24, 16);
  }

  Index steps_;
  Index channels_;
  Index hidden_;
  NetworkBuilder builder_;
  Linear x2h_;
  Linear h2h_;
  DenseChain head_;
  Matrix inputs_;      // (steps * rows, channels)
  Matrix gates_;       // (steps * rows, 3 hidden): r, z, n
  Matrix candidates_;  // (steps * rows, hidden): hn
  Matrix states_;      // (steps * rows, hidden), before each step
  Matrix x_delta_;     // (steps * rows, 3 hidden)
  Matrix h_delta_;
  Matrix step_state_;
  Matrix step_gates_;
};

std::unique_ptr<Model> make_gru(const Options& options, const ModelSpec& spec,
                                const DataShape& shape, std::uint64_t seed) {
  if (shape.vocabulary > 0 || shape.steps < 2 || shape.steps * shape.channels != shape.features)
    throw std::invalid_argument(
        "model: gru takes sequences, but the data are no sequences of several steps");
  const Index hidden = options.integer("hidden", 1, 1 << 14);
  std::vector<Index> widths{shape.steps * hidden};
  const std::string& head = options.choice("head");
  if (head != "none")
    for (const Index width : parse_widths("model gru: head=" + head, head)) widths.push_back(width);
  widths.push_back(shape.classes);
  double parameters = 3.0 * static_cast<double>(hidden * (shape.channels + hidden));
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    parameters += static_cast<double>(widths[i]) * static_cast<double>(widths[i + 1]);
  check_parameter_count(spec.name, parameters);
  return std::make_unique<GruNetwork>(shape, hidden, widths, parse_activation(spec.activation),
                                      spec.bias && options.flag("bias"), seed);
}

}  // namespace

NetworkRow gru_row() {
  return {.name = "gru",
          .summary = "GRU over sequences and an MLP over all its states, as the rank-dAD authors'",
          .options = {{"hidden", "64", "width of the state", {}},
                      {"head", "512-256", "hidden widths of the MLP, or none", {}},
                      {"bias", "on", "of all linear maps; the authors have none", {"on", "off"}}},
          .make = make_gru};
}

}  // namespace gradwire
