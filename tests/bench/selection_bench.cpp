// What selection costs on one core, at the sizes of issue-style claims: 10 million values.
#include <benchmark/benchmark.h>

#include <bit>
#include <cstring>

#include "algorithms/selection.h"

namespace {

using namespace gradwire;

std::vector<Scalar> normal_values(std::size_t d) {
  RandomStream stream(1, Purpose::kSyntheticTensor);
  std::vector<Scalar> values(d);
  for (Scalar& x : values) x = static_cast<Scalar>(stream.normal());
  return values;
}

constexpr std::size_t kLarge = 10'000'000;

void report_bandwidth(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

// Reading alone: the yardstick of a scan.
void read_bandwidth(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  for (auto _ : state) {
    std::uint32_t all = 0;
    for (const Scalar x : values) all |= std::bit_cast<std::uint32_t>(static_cast<float>(x));
    benchmark::DoNotOptimize(all);
  }
  report_bandwidth(state, kLarge * sizeof(Scalar));
}
BENCHMARK(read_bandwidth)->Unit(benchmark::kMillisecond);

void copy_bandwidth(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  std::vector<Scalar> copy(kLarge);
  for (auto _ : state) {
    std::memcpy(copy.data(), values.data(), kLarge * sizeof(Scalar));
    benchmark::ClobberMemory();
  }
  report_bandwidth(state, 2 * kLarge * sizeof(Scalar));
}
BENCHMARK(copy_bandwidth)->Unit(benchmark::kMillisecond);

void threshold_scan(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  const auto threshold =
      static_cast<Scalar>(normal_quantile(1 - 1 / (2 * static_cast<double>(state.range(0)))));
  std::size_t found = 0;
  for (auto _ : state) found = at_least(values, threshold).indices.size();
  state.counters["density"] = static_cast<double>(found) / static_cast<double>(kLarge);
  report_bandwidth(state, kLarge * sizeof(Scalar));
}
BENCHMARK(threshold_scan)->Arg(1000)->Arg(100)->Arg(10)->Unit(benchmark::kMillisecond);

void top_k_of_normal(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  for (auto _ : state)
    benchmark::DoNotOptimize(top_k(values, static_cast<std::size_t>(state.range(0))));
}
BENCHMARK(top_k_of_normal)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond);

// All magnitudes in one bin of the histogram: the exact partition does the work.
void top_k_of_narrow(benchmark::State& state) {
  auto values = normal_values(kLarge);
  for (Scalar& x : values) x = 1 + x * Scalar{1e-4F};
  for (auto _ : state) benchmark::DoNotOptimize(top_k(values, 100'000));
}
BENCHMARK(top_k_of_narrow)->Unit(benchmark::kMillisecond);

void gaussian_selection(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  for (auto _ : state) benchmark::DoNotOptimize(gaussian_k(values, 100'000));
}
BENCHMARK(gaussian_selection)->Unit(benchmark::kMillisecond);

void random_selection(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(
        random_k(kLarge, 100'000, RandomStream(1, Purpose::kSelection)).indices.data());
}
BENCHMARK(random_selection)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
