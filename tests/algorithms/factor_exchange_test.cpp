// The exchanges of low-rank factors where workers' ranks differ, and what they send.
#include "algorithms/factor_exchange.h"

#include <catch2/catch.hpp>

#include "algorithms/in_process.h"
#include "tests/algorithms/factor_traffic.h"

using namespace gradwire;

namespace {

constexpr Index kIn = 7;
constexpr Index kOut = 3;
constexpr std::int64_t kRowBytes = (kIn + kOut) * sizeof(Scalar);

Index rank_of(int worker) { return worker % 3; }  // 0, 1, 2, 0, ..

Factors factors_of(int worker) {
  const Index rank = rank_of(worker);
  Factors factors{Matrix(rank, kIn), Matrix(rank, kOut)};
  for (Index r = 0; r < rank; ++r) {
    factors.activation.row(r).setConstant(static_cast<Scalar>(Index{10} * worker + r + 1));
    factors.delta.row(r).setConstant(static_cast<Scalar>(Index{-10} * worker - r - 1));
  }
  return factors;
}

// Everyone's rows in rank order, each worker's padded to `rows` (0: not padded).
Factors stacked(int workers, Index rows) {
  Factors all{Matrix::Zero(0, kIn), Matrix::Zero(0, kOut)};
  const auto append = [](Matrix& to, const Matrix& from, Index padded_rows) {
    Matrix result = Matrix::Zero(to.rows() + padded_rows, to.cols());
    result.topRows(to.rows()) = to;
    result.middleRows(to.rows(), from.rows()) = from;
    to = result;
  };
  for (int w = 0; w < workers; ++w) {
    const Factors mine = factors_of(w);
    append(all.activation, mine.activation, rows > 0 ? rows : rank_of(w));
    append(all.delta, mine.delta, rows > 0 ? rows : rank_of(w));
  }
  return all;
}

struct Outcome {
  std::vector<Factors> factors;  // by worker
  std::vector<Traffic> traffic;
};

Outcome run(int workers, const std::function<Factors(Communicator&)>& exchange) {
  Outcome outcome{std::vector<Factors>(static_cast<std::size_t>(workers)),
                  std::vector<Traffic>(static_cast<std::size_t>(workers))};
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    const auto w = static_cast<std::size_t>(comm.rank());
    outcome.factors[w] = exchange(comm);
    outcome.traffic[w] = comm.account().traffic;
  });
  return outcome;
}

bool same(const Factors& a, const Factors& b) {
  return a.activation == b.activation && a.delta == b.delta;
}

}  // namespace

TEST_CASE("The all-gather of factors pads every worker's to the largest rank, in rank order") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(workers);
  const Index rank = std::min<Index>(workers - 1, 2);  // largest of 0, 1, 2, 0, ..
  const Factors expected =
      rank > 0 ? stacked(workers, rank) : Factors{Matrix(0, kIn), Matrix(0, kOut)};
  const Outcome outcome = run(workers, [](Communicator& comm) {
    return all_gather_factors(comm, factors_of(comm.rank()));
  });
  for (int w = 0; w < workers; ++w) {
    const auto i = static_cast<std::size_t>(w);
    CHECK(same(outcome.factors[i], expected));
    const Traffic max = max_traffic(workers, w);
    CHECK(outcome.traffic[i].messages_sent == std::int64_t{2} * (workers - 1) + max.messages_sent);
    CHECK(outcome.traffic[i].bytes_sent == (workers - 1) * rank * kRowBytes + max.bytes_sent);
  }
}

TEST_CASE(
    "The star hands worker 0 all factors without padding and everyone what it makes of them") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const Index kept = GENERATE(0, 1, 2);
  CAPTURE(workers, kept);
  Factors answer{Matrix::Constant(kept, kIn, 5), Matrix::Constant(kept, kOut, 6)};
  bool saw_all = false;
  const Outcome outcome = run(workers, [&](Communicator& comm) {
    return star_factors(comm, factors_of(comm.rank()), [&](const Factors& all) {
      saw_all = same(all, stacked(workers, 0));
      return answer;
    });
  });
  CHECK(saw_all);
  for (int w = 0; w < workers; ++w) {
    const auto i = static_cast<std::size_t>(w);
    CHECK(same(outcome.factors[i], answer));
    const Index rank = w == 0 ? kept : rank_of(w);
    const std::int64_t copies = w == 0 ? workers - 1 : 1;
    CHECK(outcome.traffic[i].messages_sent == copies * (rank > 0 ? 2 : 1));
    CHECK(outcome.traffic[i].bytes_sent == copies * (4 + rank * kRowBytes));
  }
}
