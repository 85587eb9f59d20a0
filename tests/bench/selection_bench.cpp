// What selection costs on one core: 10 million normal values, whole or a worker's share of them.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "algorithms/partition.h"
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

// Results keep their pages, as in the program: else the scans measure page faults.
const bool kKeepsPages =
    mallopt(M_MMAP_THRESHOLD, 1 << 30) == 1 && mallopt(M_TRIM_THRESHOLD, 1 << 30) == 1;

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

// MiCRO: a worker scans its N-th.
void micro_selection(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  const auto share = kLarge / static_cast<std::size_t>(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(at_least(std::span(values).first(share), Scalar{3.29F}));
}
BENCHMARK(micro_selection)->RangeMultiplier(4)->Range(1, 64)->Unit(benchmark::kMicrosecond);

// DEFT: top-k of the pieces in a worker's bin (the norms, a pass over all, are apart); layers like
// a ResNet's, sizes growing by half.
void deft_selection(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  const int workers = static_cast<int>(state.range(0));
  std::vector<std::size_t> tensors{0};
  for (std::size_t size = 20'000; tensors.back() + size < kLarge; size += size / 2)
    tensors.push_back(tensors.back() + size);
  tensors.push_back(kLarge);
  const auto bounds = deft_pieces(tensors, workers);
  std::vector<double> norms;
  std::vector<double> costs;
  for (std::size_t p = 0; p + 1 < bounds.size(); ++p)
    norms.push_back(std::sqrt(static_cast<double>(bounds[p + 1] - bounds[p])));
  const auto counts = deft_counts(norms, bounds, 10'000);
  for (std::size_t p = 0; p < norms.size(); ++p)
    costs.push_back(norms[p] * norms[p] * std::log2(static_cast<double>(counts[p] + 1)));
  const auto bin = lpt_bins(costs, workers).front();
  for (auto _ : state)
    for (const std::size_t p : bin)
      benchmark::DoNotOptimize(
          top_k(std::span(values).subspan(bounds[p], bounds[p + 1] - bounds[p]), counts[p]));
}
BENCHMARK(deft_selection)->RangeMultiplier(4)->Range(1, 64)->Unit(benchmark::kMicrosecond);

// What every DEFT worker does besides, whatever N: the norms of all pieces.
void deft_norms(benchmark::State& state) {
  const auto values = normal_values(kLarge);
  for (auto _ : state) benchmark::DoNotOptimize(norm(values));
}
BENCHMARK(deft_norms)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
