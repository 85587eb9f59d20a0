#include "algorithms/gradient_parts.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "algorithms/gloo_collectives.h"

namespace gradwire {

namespace {

Index total_size(std::span<Matrix* const> parts) {
  Index total = 0;
  for (const Matrix* part : parts) total += part->size();
  return total;
}

}  // namespace

Matrix copy(const Communicator& comm, const Matrix& m, double factor) {
  Matrix result(m.rows(), m.cols());
  if (comm.carries_data()) result = static_cast<Scalar>(factor) * m;
  return result;
}

Matrix weight_gradient(Communicator& comm, Phase phase, const Matrix& activation,
                       const Matrix& delta, double factor) {
  Matrix gradient(activation.cols(), delta.cols());
  if (comm.carries_data())
    gradient.noalias() = static_cast<Scalar>(factor) * activation.transpose() * delta;
  comm.charge(phase, gemm_work(activation.cols(), activation.rows(), delta.cols()));
  return gradient;
}

Matrix column_sums(Communicator& comm, Phase phase, const Matrix& delta, double factor) {
  Matrix sums = Matrix::Zero(1, delta.cols());
  if (comm.carries_data())
    for (Index i = 0; i < delta.rows(); ++i) sums += delta.row(i);
  sums *= static_cast<Scalar>(factor);
  comm.charge(phase, pass_work(delta.size(), 1, 1));
  return sums;
}

void form_gradients(Communicator& comm, const LinearMap& map, const Matrix& activation,
                    const Matrix& delta, double factor, Gradients& gradients) {
  gradients[static_cast<std::size_t>(map.weight)] =
      weight_gradient(comm, Phase::kBackward, activation, delta, factor);
  if (map.bias >= 0)
    gradients[static_cast<std::size_t>(map.bias)] =
        column_sums(comm, Phase::kBackward, delta, factor);
}

const LinearMap& map_of(const Model& model, const LayerTrace& trace) {
  return model.linear_maps()[static_cast<std::size_t>(trace.map)];
}

Gradients local_gradients(Worker& worker, double factor,
                          const std::function<void(int parameter, Matrix& gradient)>& ready) {
  Gradients gradients(worker.model.parameters().size());
  const auto at = [&](int p) -> Matrix& { return gradients[static_cast<std::size_t>(p)]; };
  const auto tell = [&](int p) {
    if (ready) ready(p, at(p));
  };
  BackwardSink sink;
  sink.linear = [&](const LayerTrace& trace, const Work& /*work*/) {
    const LinearMap& map = map_of(worker.model, trace);
    form_gradients(worker.comm, map, trace.activation, trace.delta, factor, gradients);
    if (map.bias >= 0) tell(map.bias);
    tell(map.weight);
  };
  sink.direct = [&](int parameter, const Matrix& gradient, const Work& /*work*/) {
    at(parameter) = copy(worker.comm, gradient, factor);
    tell(parameter);
  };
  backpropagate(worker, sink);
  return gradients;
}

BackwardPass collect_backward(Worker& worker) {
  BackwardPass pass;
  pass.gradients.resize(worker.model.parameters().size());
  backpropagate(worker, {.linear = [&](const LayerTrace& trace,
                                       const Work& /*work*/) { pass.traces.push_back(trace); },
                         .direct =
                             [&](int parameter, const Matrix& gradient, const Work& /*work*/) {
                               pass.gradients[static_cast<std::size_t>(parameter)] =
                                   copy(worker.comm, gradient);
                             }});
  return pass;
}

void form_bias_gradients(Worker& worker, BackwardPass& pass) {
  for (const LayerTrace& trace : pass.traces) {
    const int bias = map_of(worker.model, trace).bias;
    if (bias >= 0)
      pass.gradients[static_cast<std::size_t>(bias)] =
          column_sums(worker.comm, Phase::kBackward, trace.delta);
  }
}

std::vector<Matrix*> pointers(std::vector<Matrix>& matrices) {
  std::vector<Matrix*> result(matrices.size());
  std::transform(matrices.begin(), matrices.end(), result.begin(), [](Matrix& m) { return &m; });
  return result;
}

std::vector<Matrix*> bias_gradients(const Model& model, Gradients& gradients) {
  std::vector<int> parameters;
  for (const LinearMap& map : model.linear_maps())
    if (map.bias >= 0) parameters.push_back(map.bias);
  std::sort(parameters.begin(), parameters.end());
  std::vector<Matrix*> result;
  result.reserve(parameters.size());
  for (const int p : parameters) result.push_back(&gradients[static_cast<std::size_t>(p)]);
  return result;
}

std::vector<Matrix*> direct_gradients(const Model& model, Gradients& gradients) {
  std::vector<bool> in_map(gradients.size(), false);
  for (const LinearMap& map : model.linear_maps()) {
    in_map[static_cast<std::size_t>(map.weight)] = true;
    if (map.bias >= 0) in_map[static_cast<std::size_t>(map.bias)] = true;
  }
  std::vector<Matrix*> result;
  for (std::size_t p = 0; p < gradients.size(); ++p)
    if (!in_map[p]) result.push_back(&gradients[p]);
  return result;
}

void scale(Communicator& comm, std::span<Matrix* const> parts, double factor) {
  if (comm.carries_data())
    for (Matrix* part : parts) *part *= static_cast<Scalar>(factor);
  comm.charge(Phase::kReduction, pass_work(total_size(parts), 1, 2));
}

void scale(Communicator& comm, Gradients& gradients, double factor) {
  scale(comm, pointers(gradients), factor);
}

void all_reduce_packed(Communicator& comm, std::span<Matrix* const> parts, AllReduce all_reduce,
                       Wire wire) {
  const Index total = total_size(parts);
  if (total == 0 || comm.size() == 1) return;
  if (parts.size() == 1) return all_reduce(comm, scalars(*parts.front()), wire);
  // The parts give their memory up meanwhile: gradients are most of what many workers in one
  // process hold.
  Matrix packed(1, total);
  std::vector<Index> rows;
  Scalar* end = packed.data();
  for (Matrix* part : parts) {
    if (comm.carries_data()) end = std::copy_n(part->data(), part->size(), end);
    rows.push_back(part->rows());
    part->resize(0, part->cols());
  }
  all_reduce(comm, scalars(packed), wire);
  const Scalar* begin = packed.data();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Matrix& part = *parts[i];
    part.resize(rows[i], part.cols());
    if (comm.carries_data()) std::copy_n(begin, part.size(), part.data());
    begin += part.size();
  }
  comm.charge(Phase::kReduction, pass_work(total, 0, 4));
}

void mean_direct_gradients(Worker& worker, AllReduce all_reduce, Gradients& gradients) {
  const std::vector<Matrix*> direct = direct_gradients(worker.model, gradients);
  if (direct.empty()) return;
  if (all_reduce != nullptr) all_reduce_packed(worker.comm, direct, all_reduce);
  const Index batch = all_reduce != nullptr ? worker.global_batch : worker.batch_size;
  scale(worker.comm, direct, 1 / static_cast<double>(batch));
}

OptionSpec direct_option() {
  return {"direct",
          "mean",
          "gradient of parameters outside linear maps (norms, embeddings): the mean, or each "
          "worker's own, as the authors leave it, so that replicas differ",
          {"mean", "local"}};
}

void Overlap::start(std::function<void(Communicator&)> job) {
  if (on_)
    comm_.start(std::move(job));
  else
    waiting_.push_back(std::move(job));
}

void Overlap::finish() {
  if (on_) comm_.finish();
  for (const auto& job : std::exchange(waiting_, {})) job(comm_);
}

std::vector<std::byte> exchange_blocks(Communicator& comm, BlockExchange exchange,
                                       std::span<const std::byte> mine,
                                       std::span<const std::size_t> sizes) {
  if (exchange == BlockExchange::kAllGather) return ring_all_gather(comm, mine, sizes);
  if (exchange == BlockExchange::kGloo) return gloo_all_gather(comm, mine, sizes);
  std::vector<std::byte> all = gather(comm, 0, mine, sizes);
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += size;
  all.resize(total);
  star_broadcast(comm, 0, all);
  return all;
}

void append(std::vector<std::byte>& block, const Matrix& m) {
  const auto bytes = bytes_of(scalars(m));
  block.insert(block.end(), bytes.begin(), bytes.end());
}

void take_rows(std::span<const std::byte>& bytes, Matrix& into, Index first, Index rows) {
  const auto size = static_cast<std::size_t>(rows * into.cols()) * sizeof(Scalar);
  if (size > bytes.size() || first + rows > into.rows())
    throw std::logic_error("a block is shorter than the matrix that it should hold");
  if (size > 0) std::memcpy(into.data() + first * into.cols(), bytes.data(), size);
  bytes = bytes.subspan(size);
}

}  // namespace gradwire
