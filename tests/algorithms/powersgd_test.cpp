// PowerSGD's kernels and its training step; golden values are in tests/double.
#include "algorithms/powersgd.h"

#include <catch2/catch.hpp>

#include "models/random.h"
#include "tests/algorithms/training_runs.h"
#include "tests/algorithms/two_branches.h"

using namespace gradwire;

namespace {

constexpr std::int64_t kWord = sizeof(Scalar);
const std::string kModel = "mlp:40-30-5";

Matrix random_matrix(Index rows, Index cols, std::uint64_t seed) {
  Matrix m(rows, cols);
  RandomStream(seed, Purpose::kSyntheticTensor).fill_normal(m);
  return m;
}

double distance_to_identity(const Matrix& m) {
  return static_cast<double>((m - Matrix::Identity(m.rows(), m.cols())).norm());
}

}  // namespace

TEST_CASE("Orthogonalized columns are orthonormal and span what they spanned") {
  const Matrix before = random_matrix(50, 6, 1);
  Matrix p = before;
  orthogonalize(p, 0);
  CHECK(distance_to_identity(p.transpose() * p) < 1e-6);
  CHECK((p * (p.transpose() * before) - before).norm() < 1e-5);
}

TEST_CASE("Nearly parallel columns come out orthonormal") {
  Matrix p = random_matrix(50, 1, 1) * Matrix::Ones(1, 3) + 1e-4F * random_matrix(50, 3, 2);
  orthogonalize(p, 0);
  CHECK(distance_to_identity(p.transpose() * p) < 1e-5);
}

TEST_CASE("Dependent columns leave P P^T a projection on all of them, without NaN") {
  Matrix before = random_matrix(50, 5, 1);
  before.col(1) = Scalar{2} * before.col(0);
  before.col(3).setZero();
  before.col(4) = before.col(0) - before.col(2);
  Matrix p = before;
  orthogonalize(p, 0);
  const Matrix projection = p * p.transpose();
  CHECK((projection * projection - projection).norm() < 1e-5);
  CHECK((projection * before - before).norm() < 1e-5);
  CHECK(p.col(3).norm() == 0);
}

TEST_CASE("A matrix is compressed where r (n + m) rate is below n m, a vector never") {
  CHECK(worth_compressing(12, 8, 2, 2));         // 80 < 96
  CHECK_FALSE(worth_compressing(8, 4, 2, 2));    // 48 > 32
  CHECK_FALSE(worth_compressing(10, 10, 5, 1));  // 100 = 100
  CHECK(worth_compressing(10, 10, 100, 0));
  CHECK_FALSE(worth_compressing(1, 100, 1, 0));
  CHECK_FALSE(worth_compressing(100, 1, 1, 0));
}

TEST_CASE("With a fixed matrix and a warm start PowerSGD converges to the best approximation") {
  Matrix u = random_matrix(20, 5, 3);
  Matrix v = random_matrix(12, 5, 6);
  orthogonalize(u, 0);
  orthogonalize(v, 0);
  Matrix singular_values(5, 1);
  singular_values << 6, 5, 4, 2, 1;
  const Matrix m = u * singular_values.col(0).asDiagonal() * v.transpose();
  PowerSgdState state{random_matrix(12, 3, 4)};
  Matrix gradient;
  run_in_process({.workers = 1}, [&](Communicator& comm) {
    for (int step = 0; step < 30; ++step) {
      gradient = m;
      power_sgd(comm, std::vector{&gradient}, std::vector{&state}, ring_all_reduce, 0);
    }
  });
  CHECK((m - gradient).norm() == Approx(std::sqrt(2 * 2 + 1 * 1)).epsilon(1e-4));
}

TEST_CASE("Error feedback telescopes: applied so far plus mean residual is what was due") {
  const int workers = GENERATE(1, 3);
  std::vector<Matrix> due(static_cast<std::size_t>(workers), Matrix::Zero(20, 12));
  std::vector<Matrix> residual = due;
  Matrix applied = Matrix::Zero(20, 12);
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    PowerSgdState state{random_matrix(12, 2, 5), ErrorFeedback()};
    for (std::uint64_t step = 0; step < 6; ++step) {
      Matrix gradient = random_matrix(20, 12, 10 * step + rank);
      due[rank] += gradient;
      power_sgd(comm, std::vector{&gradient}, std::vector{&state}, halving_doubling_all_reduce, 0);
      if (rank == 0) applied += gradient;
    }
    std::ranges::copy(state.error->values(), residual[rank].data());
  });
  Matrix difference = applied;
  for (std::size_t w = 0; w < due.size(); ++w)
    difference += (residual[w] - due[w]) / static_cast<Scalar>(workers);
  CHECK(applied.norm() > 1);
  CHECK(difference.norm() < 1e-5 * applied.norm());
}

TEST_CASE("PowerSGD at full rank applies the exact mean gradient") {
  const std::string options =
      GENERATE(as<std::string>{}, "error-feedback=on", "error-feedback=off", "warm-start=off",
               "exchange=halving-doubling", "exchange=tree", "exchange=star", "exchange=allgather",
               "overlap=off", "orthogonalization-epsilon=1e-8");
  const int workers = GENERATE(1, 2, 5);
  CAPTURE(options, workers);
  const TrainingRun run =
      run_training("powersgd:rank=40,min-compression-rate=0," + options, workers, kModel);
  CHECK(gradient_error(run) < 1e-5);
  CHECK(replicas_equal(run));
}

TEST_CASE("PowerSGD at a low rank approximates the mean gradient without error feedback") {
  const TrainingRun run = run_training("powersgd:rank=4,error-feedback=off", 5, kModel);
  CHECK(replicas_equal(run));
  CHECK(gradient_error(run) > 0.01);
  CHECK(gradient_error(run) < 1);  // a projection
}

TEST_CASE("PowerSGD with N workers of batch B trains like one worker of batch NB") {
  Scenario one = small_scenario("powersgd", 1, kModel);
  one.batch_size = 20;
  const TrainingRun many = run_training("powersgd", 5, kModel);
  CHECK(relative_difference(many.parameters(), run_training(one).parameters()) < 1e-5);
}

TEST_CASE("PowerSGD sends two packed factors and what it does not compress, each in one ring") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(workers);
  // rank 2: 40x30 goes as 2 x 70 numbers, 30x5 as 2 x 35 (140 < 150); 35 biases
  const TrainingRun run = run_training("powersgd:rank=2", workers, kModel);
  CHECK(run.sent_by_all().bytes_sent == 2 * run.peers() * (140 + 70 + 35) * kWord);
  for (std::size_t w = 0; w < run.steps.size(); ++w)
    CHECK(run.sent(w).messages_sent == 6 * run.peers());  // 3 rings
}

TEST_CASE("PowerSGD sends a weight whole where factors are not enough smaller") {
  // at rate 3 the 30x5 weight stays whole: 210 > 150
  const TrainingRun run = run_training("powersgd:rank=2,min-compression-rate=3", 3, kModel);
  CHECK(run.sent_by_all().bytes_sent == 2 * run.peers() * (140 + 150 + 35) * kWord);
}

TEST_CASE("The authors' PowerSGD gathers each factor and each uncompressed parameter") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const TrainingRun run = run_training("powersgd:rank=2,flavour=authors", workers, kModel);
  CHECK(replicas_equal(run));
  for (std::size_t w = 0; w < run.steps.size(); ++w) {
    CHECK(run.sent(w).messages_sent == 6 * run.peers());
    CHECK(run.sent(w).bytes_sent == run.peers() * (140 + 70 + 35) * kWord);
  }
}

TEST_CASE("The authors' PowerSGD is a projection on one worker and further off on several") {
  const std::string authors = "powersgd:flavour=authors,rank=4";
  const double one = gradient_error(run_training(authors, 1, kModel));
  const double reference =
      gradient_error(run_training("powersgd:error-feedback=off,rank=4", 1, kModel));
  CHECK(one < 1);
  CHECK(reference < 1);
  CHECK(gradient_error(run_training(authors, 5, kModel)) >
        gradient_error(run_training("powersgd:error-feedback=off,rank=4", 5, kModel)));
}

TEST_CASE("PowerSGD averages exactly before start-step and compresses from there") {
  const TrainingRun run = run_training("powersgd:start-step=2,rank=1", 3, kModel);
  const auto error = [&](std::size_t step) {
    return relative_difference(
        run.steps[0][step].applied,
        exact_mean({run.steps[0][step], run.steps[1][step], run.steps[2][step]}, 12));
  };
  CHECK(error(0) < 1e-6);
  CHECK(error(1) < 1e-6);
  CHECK(error(2) > 0.01);
}

TEST_CASE("A gradient that is zero at first does not switch PowerSGD off") {
  // all columns of Q become zero in the first step and must be drawn anew
  const std::vector<StepRecord> steps = run_steps(
      "powersgd:rank=3,min-compression-rate=0", 2, small_dataset(small_scenario("powersgd", 2)), 4,
      [] { return std::make_unique<TwoBranches>(7, 3, 1); }, 2);
  CHECK(relative_difference(steps[0].applied, exact_mean(steps, 8)) < 1e-5);
}

TEST_CASE("PowerSGD refuses options out of range") {
  const auto make = [](const std::string& spec) {
    return make_algorithm(parse_algorithm_spec(spec));
  };
  CHECK_THROWS_WITH(make("powersgd:rank=0"), Catch::Contains("rank=0; allowed: an integer"));
  CHECK_THROWS_WITH(make("powersgd:flavour=authors,exchange=star"),
                    "algorithm powersgd: exchange=star; allowed with flavour=authors: allgather");
}
