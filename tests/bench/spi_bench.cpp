// What reducing a layer costs on one core: structured power iterations, and the two products of a
// PowerSGD step of the same size.
#include <benchmark/benchmark.h>

#include "algorithms/spi.h"
#include "tests/bench/matrices.h"

namespace {

using namespace gradwire;

// Arguments: width of the layer (square), rows, rank, iterations.
void spi(benchmark::State& state, SpiMode mode) {
  one_blas_thread();
  const Matrix activation = normal_matrix(state.range(1), state.range(0), 1).cwiseMax(0);
  const Matrix delta = normal_matrix(state.range(1), state.range(0), 2);
  const SpiOptions options{.mode = mode,
                           .rank = state.range(2),
                           .iterations = static_cast<int>(state.range(3)),
                           .tolerance = 0};
  const SpiStart start = [](Index component, Matrix& x) {
    RandomStream(1, Purpose::kSpiStart, 0, 0, static_cast<std::uint64_t>(component))
        .fill_uniform(x);
  };
  double flops = 0;
  for (auto _ : state) {
    const SpiResult result = structured_power_iterations(activation, delta, options, start);
    flops += result.work.flops;
    benchmark::DoNotOptimize(result.factors.delta.data());
  }
  state.counters["flop/s"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(spi, robust, SpiMode::kRobust)
    ->Args({1024, 64, 8, 3})
    ->Args({1024, 64, 4, 3})
    ->Args({1024, 64, 8, 10})
    ->Args({128, 3200, 8, 3})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(spi, authors, SpiMode::kAuthors)
    ->Args({1024, 64, 8, 3})
    ->Unit(benchmark::kMicrosecond);

// P = M Q and Q = M^T P for M (1024, 1024), rank 4.
void powersgd_products(benchmark::State& state) {
  one_blas_thread();
  const Matrix m = normal_matrix(1024, 1024, 3);
  Matrix q = normal_matrix(1024, 4, 4);
  Matrix p(1024, 4);
  for (auto _ : state) {
    p.noalias() = m * q;
    q.noalias() = m.transpose() * p;
    q /= q.norm();
  }
}
BENCHMARK(powersgd_products)->Unit(benchmark::kMicrosecond);

// What both spare or cause: the gradient itself from 64 rows, and from 8.
void gradient(benchmark::State& state) {
  one_blas_thread();
  const Matrix activation = normal_matrix(state.range(0), 1024, 1);
  const Matrix delta = normal_matrix(state.range(0), 1024, 2);
  Matrix g(1024, 1024);
  for (auto _ : state) g.noalias() = activation.transpose() * delta;
}
BENCHMARK(gradient)->Arg(64)->Arg(8)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
