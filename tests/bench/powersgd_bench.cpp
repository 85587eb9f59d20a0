// What PowerSGD costs a worker for one layer on one core, communication left out: the whole step
// with error feedback, and its Gram-Schmidt alone.
#include <benchmark/benchmark.h>

#include "algorithms/in_process.h"
#include "algorithms/powersgd.h"
#include "tests/bench/matrices.h"

namespace {

using namespace gradwire;

// Arguments: width of the layer (square), rank.
void power_sgd_step(benchmark::State& state) {
  one_blas_thread();
  const Index n = state.range(0);
  run_in_process({.workers = 1}, [&](Communicator& comm) {
    Matrix gradient = normal_matrix(n, n, 1);
    PowerSgdState kept{normal_matrix(n, state.range(1), 2), ErrorFeedback()};
    for (auto _ : state)
      power_sgd(comm, std::vector{&gradient}, std::vector{&kept}, ring_all_reduce, 0);
  });
}
BENCHMARK(power_sgd_step)->Args({1024, 1})->Args({1024, 4})->Args({1024, 16});

void gram_schmidt(benchmark::State& state) {
  const Matrix start = normal_matrix(state.range(0), state.range(1), 1);
  for (auto _ : state) {
    Matrix p = start;
    orthogonalize(p, 0);
    benchmark::DoNotOptimize(p.data());
  }
}
BENCHMARK(gram_schmidt)->Args({1024, 4})->Args({1024, 16});

}  // namespace

BENCHMARK_MAIN();
