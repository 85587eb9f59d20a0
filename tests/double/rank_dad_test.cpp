// rank-dAD's reductions and exchanges against golden gradients, and the algorithm's use of them
// against the same steps written out.
#include <catch2/catch.hpp>

#include "algorithms/factor_exchange.h"
#include "models/random.h"
#include "tests/double/golden_traces.h"

using namespace gradwire;

namespace {

// The golden runs' start vector of component k.
void golden_start(Index k, Matrix& x) {
  for (Index j = 0; j < x.cols(); ++j) {
    const Index s = 500 + k;
    const Index v = (7 * j * j + 13 * j + 29 * s * s + 3 * s * j + 5) % 101;
    x(0, j) = static_cast<Scalar>(v) / 101;
  }
}

Matrix with_ones(const Matrix& activation) {
  Matrix result = Matrix::Ones(activation.rows(), activation.cols() + 1);
  result.leftCols(activation.cols()) = activation;
  return result;
}

struct Aggregate {
  Matrix one_way, two_way, star;  // mean gradients
  Matrix bias;                    // the authors', one-way
};

Matrix mean_gradient(const Factors& factors, Index global_batch) {
  return factors.activation.transpose() * factors.delta / static_cast<Scalar>(global_batch);
}

// A layer's aggregates over all workers, with start vectors for the local and the second SPI.
Aggregate aggregate(const nlohmann::json& golden_case, std::size_t layer, const SpiOptions& options,
                    const SpiStart& start, const SpiStart& second_start, bool augmented) {
  const int workers = golden_case.at("workers").get<int>();
  const Index global_batch = workers * golden_case.at("batch_per_worker").get<Index>();
  const auto second = [&](const Factors& stacked) {
    return structured_power_iterations(stacked.activation, stacked.delta, options, second_start)
        .factors;
  };
  std::vector<Aggregate> found(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    const GoldenTraces traces = golden_traces(golden_case, comm.rank());
    const Matrix& activation = traces.activations[layer];
    const Factors mine = structured_power_iterations(augmented ? with_ones(activation) : activation,
                                                     traces.deltas[layer], options, start)
                             .factors;
    const Factors all = all_gather_factors(comm, mine);
    Aggregate& result = found[static_cast<std::size_t>(comm.rank())];
    result.one_way = mean_gradient(all, global_batch);
    result.two_way = mean_gradient(second(all), global_batch);
    result.star = mean_gradient(star_factors(comm, mine, second), global_batch);
    result.bias = all.delta.colwise().sum() / static_cast<Scalar>(global_batch);
  });
  for (const Aggregate& other : found) {
    CHECK(other.one_way == found.front().one_way);
    CHECK(other.two_way == found.front().two_way);
    CHECK(other.star == found.front().star);
  }
  return found.front();
}

SpiStart keyed(Purpose purpose, std::uint64_t step, std::size_t layer) {
  return [=](Index component, Matrix& x) {
    RandomStream(1, purpose, step, layer, static_cast<std::uint64_t>(component)).fill_uniform(x);
  };
}

double difference_from(const std::vector<StepRecord>& workers, std::size_t parameter,
                       const Matrix& expected) {
  double difference = 0;
  for (const StepRecord& worker : workers)
    difference = std::max(difference, max_difference(worker.applied[parameter], expected));
  return difference;
}

}  // namespace

TEST_CASE("One-way, two-way and star aggregation give the golden gradients and authors' biases") {
  for (const auto& golden_case : golden().at("cases")) {
    for (const auto& run : golden_case.at("rankdad").at("aggregated")) {
      CAPTURE(golden_case.at("name"), run.at("layer"), run.at("mode"));
      const SpiOptions options{
          .mode = run.at("mode") == "robust" ? SpiMode::kRobust : SpiMode::kAuthors,
          .rank = run.at("rank"),
          .iterations = run.at("iters")};
      const Aggregate result = aggregate(golden_case, run.at("layer").get<std::size_t>() - 1,
                                         options, golden_start, golden_start, false);
      CHECK(max_difference(result.one_way, golden_matrix(run.at("one_way_G"))) < 1e-9);
      CHECK(max_difference(result.two_way, golden_matrix(run.at("two_way_G"))) < 1e-9);
      CHECK(max_difference(result.star, golden_matrix(run.at("two_way_G"))) < 1e-9);
      CHECK(max_difference(result.bias, golden_matrix(run.at("bias_authors_colsum_of_L_one_way"))) <
            1e-9);
    }
  }
}

TEST_CASE("A column of ones reduced with the activations gives the golden weights and biases") {
  for (const auto& golden_case : golden().at("cases")) {
    for (const auto& run : golden_case.at("rankdad").at("augmented_bias_one_way_robust_r2_J10")) {
      CAPTURE(golden_case.at("name"), run.at("layer"));
      const Aggregate result =
          aggregate(golden_case, run.at("layer").get<std::size_t>() - 1,
                    {.rank = 2, .iterations = 10}, golden_start, golden_start, true);
      const Matrix expected = golden_matrix(run.at("G_hat"));
      CHECK(max_difference(result.one_way.topRows(expected.rows()), expected) < 1e-9);
      CHECK(max_difference(result.one_way.bottomRows(1), golden_matrix(run.at("gb_hat"))) < 1e-9);
    }
  }
}

TEST_CASE("rank-dAD applies what its exchanges give from start vectors keyed by step and layer") {
  const std::string bias = GENERATE("exact", "augmented", "authors");
  const std::string spi = GENERATE("robust", "authors");
  for (const auto& golden_case : golden().at("cases")) {
    const auto steps = [&](const std::string& exchange) {
      return step_on_golden_traces(
          golden_case,
          std::string("rank-dad:rank=2,iterations=10,tol=0,fallback-dense=off,bias=")
              .append(bias)
              .append(",spi=" + spi)
              .append(",exchange=" + exchange),
          5);
    };
    const auto one_way = steps("allgather");
    const auto two_way = steps("two-way");
    const auto star = steps("star");
    for (std::size_t i = 0; i < golden_case.at("dsgd").at("G_mean").size(); ++i) {
      CAPTURE(golden_case.at("name"), i, bias, spi);
      const SpiMode mode = spi == "robust" ? SpiMode::kRobust : SpiMode::kAuthors;
      Aggregate expected = aggregate(golden_case, i, {.mode = mode, .rank = 2, .iterations = 10},
                                     keyed(Purpose::kSpiStart, 5, i),
                                     keyed(Purpose::kSecondSpiStart, 5, i), bias == "augmented");
      const Matrix exact_bias = golden_matrix(golden_case.at("dsgd").at("gb_mean").at(i));
      const Index in = one_way.front().applied[2 * i].rows();
      CHECK(difference_from(one_way, 2 * i, expected.one_way.topRows(in)) < 1e-12);
      CHECK(difference_from(two_way, 2 * i, expected.two_way.topRows(in)) < 1e-12);
      CHECK(difference_from(star, 2 * i, expected.star.topRows(in)) < 1e-12);
      if (bias == "exact") CHECK(difference_from(one_way, 2 * i + 1, exact_bias) < 1e-12);
      if (bias == "exact") CHECK(difference_from(star, 2 * i + 1, exact_bias) < 1e-12);
      if (bias == "authors") CHECK(difference_from(one_way, 2 * i + 1, expected.bias) < 1e-12);
      if (bias == "augmented")
        CHECK(difference_from(two_way, 2 * i + 1, expected.two_way.bottomRows(1)) < 1e-12);
    }
  }
}

TEST_CASE("Gradients that factors do not make smaller are applied exactly") {
  // Both layers of 12-8-4: rank 3 has 60 of 96 numbers, and 36 of 32.
  const auto& golden_case = golden().at("cases").at(0);
  const auto steps = step_on_golden_traces(golden_case, "rank-dad:rank=3,bias=authors");
  const auto& exact = golden_case.at("dsgd");
  CHECK(difference_from(steps, 2, golden_matrix(exact.at("G_mean").at(1))) < 1e-12);
  CHECK(difference_from(steps, 3, golden_matrix(exact.at("gb_mean").at(1))) < 1e-12);
  CHECK(difference_from(steps, 0, golden_matrix(exact.at("G_mean").at(0))) > 1e-3);
}
