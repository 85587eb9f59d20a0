// Parameters outside linear maps, for every algorithm that knows of linear maps.
#include "algorithms/gradient_parts.h"

#include <catch2/catch.hpp>

#include "models/random.h"
#include "tests/algorithms/training_runs.h"
#include "tests/algorithms/two_branches.h"

using namespace gradwire;

TEST_CASE("Parameters outside linear maps get their exact mean gradient") {
  const std::string algorithm =
      GENERATE(as<std::string>{}, "dsgd", "dsgd:form=authors", "dad", "dad:exchange=star",
               "dad:exchange=star-reduced", "powersgd:min-compression-rate=9");
  const int workers = GENERATE(1, 2, 5);
  CAPTURE(algorithm, workers);
  const std::vector<StepRecord> steps =
      run_steps(algorithm, workers, small_dataset(small_scenario("dsgd", 1)), 4,
                [] { return std::make_unique<TwoBranches>(7, 3); });
  CHECK(relative_difference(steps[0].applied, exact_mean(steps, Index{4} * workers)) < 1e-6);
  for (const StepRecord& step : steps) CHECK(step.parameters == steps[0].parameters);
}

TEST_CASE("Packed parts are summed in one all-reduce, parts without elements included") {
  const int workers = GENERATE(1, 3);
  std::vector<Gradients> sums(static_cast<std::size_t>(workers));
  std::vector<std::int64_t> messages(sums.size());
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    sums[rank] = {Matrix::Constant(2, 3, static_cast<Scalar>(comm.rank() + 1)), Matrix(0, 4),
                  Matrix::Constant(1, 5, 10)};
    Gradients& parts = sums[rank];
    all_reduce_packed(comm, pointers(parts), star_all_reduce);
    all_reduce_packed(comm, std::vector{parts.data() + 1}, star_all_reduce);
    messages[rank] = comm.account().traffic.messages_sent;
  });
  const auto sum_of_ranks = static_cast<Scalar>(workers == 1 ? 1 : 1 + 2 + 3);
  for (std::size_t w = 0; w < sums.size(); ++w) {
    CHECK(sums[w][0] == Matrix::Constant(2, 3, sum_of_ranks));
    CHECK(sums[w][2] == Matrix::Constant(1, 5, static_cast<Scalar>(10 * workers)));
    CHECK(messages[w] == (w == 0 ? workers - 1 : 1));
  }
}

TEST_CASE("Blocks of different lengths reach everyone in rank order by every exchange") {
  const auto exchange = GENERATE(BlockExchange::kAllGather, BlockExchange::kStar);
  std::vector<Matrix> stacked(3, Matrix(3, 2));
  run_in_process({.workers = 3}, [&](Communicator& comm) {
    std::vector<std::byte> mine;
    append(mine, Matrix::Constant(comm.rank(), 2, static_cast<Scalar>(comm.rank())));
    const std::size_t row = 2 * sizeof(Scalar);
    const std::vector<std::size_t> sizes{0, row, 2 * row};
    const std::vector<std::byte> all = exchange_blocks(comm, exchange, mine, sizes);
    std::span<const std::byte> bytes = all;
    Matrix& rows = stacked[static_cast<std::size_t>(comm.rank())];
    take_rows(bytes, rows, 0, 1);
    take_rows(bytes, rows, 1, 2);
  });
  Matrix expected(3, 2);
  expected << 1, 1, 2, 2, 2, 2;
  for (const Matrix& rows : stacked) CHECK(rows == expected);
}

TEST_CASE("Taking more rows than a block holds is refused") {
  std::vector<std::byte> block;
  append(block, Matrix::Zero(2, 3));
  std::span<const std::byte> bytes = block;
  Matrix rows(3, 3);
  CHECK_THROWS_AS(take_rows(bytes, rows, 0, 3), std::logic_error);
}
