// A training step (forward, loss, backward, weight gradients) of the networks on one core, and the
// bare matrix products of the same shapes in the same number: what the step is bound by.
#include <benchmark/benchmark.h>

#include <functional>

#include "models/dataset.h"
#include "models/model.h"

namespace {

using namespace gradwire;

struct Case {
  std::string model;
  std::string dataset;
  Index batch_size;
  Index attention_steps = 0, heads = 0, dim = 0, depth = 0;  // of its products without weights
};

struct Loaded {
  Dataset dataset;
  std::unique_ptr<Model> model;
  Batch batch;
};

Loaded load(const Case& c) {
  Loaded loaded{load_dataset(c.dataset, 1), nullptr, {}};
  loaded.model = make_model({.name = c.model}, loaded.dataset.shape, 1);
  loaded.batch = BatchSource(loaded.dataset, c.batch_size, 0, 1, 1).at(0);
  return loaded;
}

void step(benchmark::State& state, const Case& c) {
  const Loaded loaded = load(c);
  Model& model = *loaded.model;
  Gradients gradients = zero_gradients(model);
  const auto at = [&](int p) -> Matrix& { return gradients[static_cast<std::size_t>(p)]; };
  BackwardSink sink;
  sink.linear = [&](const LayerTrace& trace, const Work&) {
    const LinearMap& map = model.linear_maps()[static_cast<std::size_t>(trace.map)];
    at(map.weight).noalias() = trace.activation.transpose() * trace.delta;
    if (map.bias < 0) return;
    at(map.bias).setZero();
    for (Index i = 0; i < trace.delta.rows(); ++i) at(map.bias) += trace.delta.row(i);
  };
  sink.direct = [&](int p, const Matrix& gradient, const Work&) { at(p) = gradient; };
  for (auto _ : state) {
    const Loss loss = softmax_cross_entropy(model.forward(loaded.batch), loaded.batch.labels);
    model.backward(loss.delta, sink);
    benchmark::DoNotOptimize(gradients.data());
  }
}

// The products of one linear map applied to `rows` rows at once, `times` times.
std::function<void()> map_products(const LinearMap& map, Index rows, Index times,
                                   bool input_delta) {
  return [=, a = Matrix(Matrix::Ones(rows, map.in)), w = Matrix(Matrix::Ones(map.in, map.out)),
          d = Matrix(Matrix::Ones(rows, map.out)), z = Matrix(rows, map.out),
          da = Matrix(rows, map.in)]() mutable {
    for (Index i = 0; i < times; ++i) {
      z.noalias() = a * w;
      if (input_delta) da.noalias() = d * w.transpose();
    }
    benchmark::DoNotOptimize(z.data());
    benchmark::DoNotOptimize(da.data());
  };
}

std::function<void()> gradient_product(const LinearMap& map, Index rows) {
  return [a = Matrix(Matrix::Ones(rows, map.in)), d = Matrix(Matrix::Ones(rows, map.out)),
          g = Matrix(map.in, map.out)]() mutable {
    g.noalias() = a.transpose() * d;
    benchmark::DoNotOptimize(g.data());
  };
}

// The six products of one head of one example, forward and back.
std::function<void()> attention_products(Index steps, Index width, Index times) {
  return [=, q = Matrix(Matrix::Ones(steps, width)), p = Matrix(Matrix::Ones(steps, steps)),
          s = Matrix(steps, steps), o = Matrix(steps, width)]() mutable {
    for (Index i = 0; i < times; ++i) {
      s.noalias() = q * q.transpose();
      o.noalias() = p * q;
      benchmark::DoNotOptimize(o.data());
      s.noalias() = q * q.transpose();
      o.noalias() = p.transpose() * q;
      benchmark::DoNotOptimize(o.data());
      o.noalias() = p * q;
      benchmark::DoNotOptimize(o.data());
      o.noalias() = p.transpose() * q;
      benchmark::DoNotOptimize(s.data());
      benchmark::DoNotOptimize(o.data());
    }
  };
}

void products(benchmark::State& state, const Case& c) {
  const Loaded loaded = load(c);
  std::vector<std::function<void()>> work;
  bool first = true;
  for (const LinearMap& map : loaded.model->linear_maps()) {
    const Index rows = c.batch_size * map.positions;
    const bool recurrent = map.name == "h2h";  // its input follows from its output, step by step
    work.push_back(
        map_products(map, recurrent ? c.batch_size : rows, recurrent ? map.positions : 1, !first));
    work.push_back(gradient_product(map, rows));
    first = false;
  }
  if (c.heads > 0)
    work.push_back(
        attention_products(c.attention_steps, c.dim / c.heads, c.depth * c.heads * c.batch_size));
  for (auto _ : state)
    for (const auto& product : work) product();
}

const Case kGru{"gru", "synthetic-sequences", 64};
const Case kTransformer{"transformer", "synthetic-texts", 32, 64, 8, 128, 6};
const Case kVit{"vit", "synthetic-images", 16, 65, 8, 128, 12};

BENCHMARK_CAPTURE(step, gru, kGru)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(products, gru, kGru)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, transformer, kTransformer)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(products, transformer, kTransformer)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, vit, kVit)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(products, vit, kVit)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
