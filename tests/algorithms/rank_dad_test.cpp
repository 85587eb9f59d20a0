// rank-dAD against the exact mean gradient, and its traffic against the formulas of rank_dad.cpp.
#include <catch2/catch.hpp>

#include "tests/algorithms/factor_traffic.h"
#include "tests/algorithms/training_runs.h"
#include "tests/algorithms/two_branches.h"

using namespace gradwire;

namespace {

constexpr std::int64_t kWord = sizeof(Scalar);
constexpr std::int64_t kHeights = 7 + 5 + 5 + 3;  // sum of in + out in mlp:7-5-3

const std::vector<std::string> kExchanges{"allgather", "two-way", "star"};

TrainingRun train_rank_dad(const std::string& options, int workers,
                           const std::string& model = "mlp:7-5-3") {
  return run_training("rank-dad:fallback-dense=off," + options, workers, model);
}

std::map<std::string, std::vector<double>> metrics(const std::string& options, int workers,
                                                   std::size_t worker) {
  const Scenario scenario = small_scenario("rank-dad:fallback-dense=off," + options, workers);
  return rehearse(scenario, small_dataset(scenario)).workers[worker].metrics;
}

// Flops of a kind on both lanes, per step.
double flops(const std::string& options, int workers, std::size_t worker) {
  const Scenario scenario = small_scenario("rank-dad:fallback-dense=off," + options, workers);
  const Rehearsal rehearsal = rehearse(scenario, small_dataset(scenario));
  double total = 0;
  for (const LaneRecording& lane : rehearsal.recording.workers[worker].lanes)
    for (const Event& event : lane.events)
      if (event.kind == Event::Kind::kCharge && event.phase == Phase::kCompression)
        total += lane.charges[event.value].work.flops;
  return total / static_cast<double>(scenario.batches);
}

}  // namespace

TEST_CASE("rank-dAD at full rank applies the exact mean gradient by every exchange") {
  // Components below about sqrt(epsilon) of |A| |D| count as noise, hence not 1e-6.
  const std::string exchange = GENERATE("allgather", "two-way", "star");
  const std::string bias = GENERATE("exact", "augmented");
  const int workers = GENERATE(1, 2, 3, 8);
  CAPTURE(exchange, bias, workers);
  const TrainingRun run = train_rank_dad(
      "rank=8,iterations=20,theta=0,exchange=" + exchange + ",bias=" + bias, workers);
  CHECK(gradient_error(run) < 2e-3);
  CHECK(relative_difference(run.parameters(), run_training("dad", workers).parameters()) < 1e-4);
}

TEST_CASE("rank-dAD keeps replicas bit-equal with every exchange, loop and bias") {
  const std::string exchange = GENERATE("allgather", "two-way", "star");
  const std::string spi = GENERATE("robust", "authors", "authors,drop-last=1");
  const std::string bias = GENERATE("exact", "augmented", "authors");
  const int workers = GENERATE(1, 2, 3, 5, 24);
  CAPTURE(exchange, spi, bias, workers);
  const TrainingRun run =
      train_rank_dad("rank=2,exchange=" + exchange + ",spi=" + spi + ",bias=" + bias, workers);
  CHECK(replicas_equal(run));
  for (const auto& steps : run.steps) CHECK(std::isfinite(steps.back().loss_sum));
}

TEST_CASE("rank-dAD's numbers do not depend on overlap") {
  for (const std::string& exchange : kExchanges)
    CHECK(train_rank_dad("rank=2,overlap=off,exchange=" + exchange, 3).parameters() ==
          train_rank_dad("rank=2,overlap=on,exchange=" + exchange, 3).parameters());
}

TEST_CASE("rank-dAD's star and two-way exchanges reduce the same stack") {
  const TrainingRun star = train_rank_dad("rank=2,iterations=10,exchange=star", 5);
  const TrainingRun two_way = train_rank_dad("rank=2,iterations=10,exchange=two-way", 5);
  CHECK(relative_difference(star.steps[0][0].applied, two_way.steps[0][0].applied) < 1e-5);
}

TEST_CASE("A second reduction costs accuracy, and both errors fall with the rank") {
  double last_one_way = 1;
  double last_two_way = 1;
  for (const int rank : {1, 2, 4, 8}) {
    const auto error = [&](const std::string& exchange) {
      // the first step: later ones start from other parameters
      const TrainingRun run =
          train_rank_dad("iterations=20,rank=" + std::to_string(rank) + ",exchange=" + exchange, 4,
                         "mlp:40-30-20");
      std::vector<StepRecord> first;
      for (const auto& steps : run.steps) first.push_back(steps.front());
      return relative_difference(first.front().applied, exact_mean(first, 16));
    };
    const double one_way = error("allgather");
    const double two_way = error("two-way");
    CAPTURE(rank);
    CHECK(one_way < last_one_way + 1e-3);  // 4 rows: exact from rank 4 on
    CHECK(two_way < last_two_way);
    CHECK(two_way > one_way);
    last_one_way = one_way;
    last_two_way = two_way;
  }
}

TEST_CASE("The effective rank is at most the rows and the widths, and is reported per map") {
  const auto local = metrics("rank=100", 3, 1);
  REQUIRE(local.size() == 2);
  for (const double rank : local.at("effective_rank/fc1")) CHECK(rank == 4);  // the rows
  for (const double rank : local.at("effective_rank/fc2")) CHECK(rank <= 3);  // 3 outputs
  for (const double rank : local.at("effective_rank/fc2")) CHECK(rank >= 1);
  for (const std::string exchange : {"two-way", "star"}) {
    const auto both = metrics("rank=2,exchange=" + exchange, 3, 2);
    REQUIRE(both.size() == 4);
    for (const double rank : both.at("effective_rank_aggregated/fc1")) CHECK(rank == 2);
  }
}

TEST_CASE("A large theta lowers the effective rank and with it the bytes") {
  const auto rank = [](const std::string& theta) {
    return metrics("rank=4,theta=" + theta, 2, 0).at("effective_rank/fc1").front();
  };
  CHECK(rank("1e-6") == 4);
  CHECK(rank("1") == 1);
  CHECK(train_rank_dad("rank=4,theta=1", 2).sent(0).bytes_sent ==
        train_rank_dad("rank=1", 2).sent(0).bytes_sent);
}

TEST_CASE("The authors' scale makes rank-dAD's gradient N times as large") {
  const TrainingRun mean = train_rank_dad("rank=2,bias=exact", 3);
  const TrainingRun authors = train_rank_dad("rank=2,bias=exact,authors-scale=on", 3);
  Gradients expected = mean.steps[0][0].applied;
  for (Matrix& m : expected) m *= 3;
  CHECK(relative_difference(authors.steps[0][0].applied, expected) < 1e-6);
}

TEST_CASE("rank-dAD sums parameters outside linear maps exactly") {
  const Dataset dataset = load_dataset("synthetic:6x3", 1);
  for (const std::string& exchange : kExchanges) {
    const auto steps = run_steps("rank-dad:rank=1,fallback-dense=off,exchange=" + exchange, 3,
                                 dataset, 4, [] { return std::make_unique<TwoBranches>(6, 3); });
    const Gradients exact = exact_mean(steps, 12);
    CHECK((steps[0].applied[1] - exact[1]).norm() < 1e-6 * exact[1].norm());
    CHECK((steps[0].applied[0] - exact[0]).norm() > 1e-3 * exact[0].norm());
  }
}

TEST_CASE("rank-dAD's all-gather sends what its header says") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const int rank = GENERATE(1, 2);
  const std::string exchange = GENERATE("allgather", "two-way");
  CAPTURE(workers, rank, exchange);
  const std::string options = "exchange=" + exchange + ",rank=" + std::to_string(rank);
  const TrainingRun exact = train_rank_dad(options, workers);
  const TrainingRun augmented = train_rank_dad(options + ",bias=augmented", workers);
  const TrainingRun authors = train_rank_dad(options + ",bias=authors", workers);
  const std::int64_t peers = workers - 1;
  for (int w = 0; w < workers; ++w) {
    const auto i = static_cast<std::size_t>(w);
    const Traffic max = max_traffic(workers, w);
    const std::int64_t messages = 2 * (2 * peers + max.messages_sent);
    const std::int64_t bytes = peers * rank * kHeights * kWord + 2 * max.bytes_sent;
    CHECK(authors.sent(i).messages_sent == messages);
    CHECK(authors.sent(i).bytes_sent == bytes);
    CHECK(augmented.sent(i).messages_sent == messages);
    CHECK(augmented.sent(i).bytes_sent == bytes + peers * rank * 2 * kWord);
    CHECK(exact.sent(i).messages_sent == messages + 2 * peers);
    // the ring leaves out two of N chunks of the 8 biases, each the N-th part up to one number
    CHECK(std::abs(static_cast<double>(exact.sent(i).bytes_sent - bytes) -
                   2.0 * static_cast<double>(peers) / workers * 8 * kWord) <= 2.0 * kWord);
  }
  CHECK(exact.sent_by_all().bytes_sent - authors.sent_by_all().bytes_sent == 2 * peers * 8 * kWord);
}

TEST_CASE("rank-dAD's star sends what its header says") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const int rank = GENERATE(1, 2);
  CAPTURE(workers, rank);
  const std::string options = "exchange=star,rank=" + std::to_string(rank);
  const TrainingRun exact = train_rank_dad(options, workers);
  const TrainingRun authors = train_rank_dad(options + ",bias=authors", workers);
  for (std::size_t w = 0; w < exact.steps.size(); ++w) {
    const std::int64_t copies = w == 0 ? workers - 1 : 1;
    const std::int64_t bytes = 8 + rank * kHeights * kWord;
    CHECK(authors.sent(w).messages_sent == copies * 4);
    CHECK(authors.sent(w).bytes_sent == copies * bytes);
    CHECK(exact.sent(w).messages_sent == copies * 5);
    CHECK(exact.sent(w).bytes_sent == copies * (bytes + 8 * kWord));
  }
}

TEST_CASE("rank-dAD's bytes grow in proportion to the rank") {
  for (const std::string& exchange : kExchanges) {
    const auto bytes = [&](int rank) {
      return train_rank_dad("bias=augmented,rank=" + std::to_string(rank) + ",exchange=" + exchange,
                            3, "mlp:40-30-20")
          .sent(1)
          .bytes_sent;
    };
    CAPTURE(exchange);
    const std::int64_t fixed = 2 * bytes(1) - bytes(2);  // of ranks and their maximum
    CHECK(fixed <= 16);
    CHECK(bytes(4) - fixed == 4 * (bytes(1) - fixed));
  }
}

TEST_CASE("Gradients that factors do not make smaller go uncompressed, with their biases") {
  // Rank 2 of mlp:7-5-3: 24 numbers instead of 35, but 16 instead of 15.
  const TrainingRun run = run_training("rank-dad:rank=2,exchange=star,bias=authors", 3);
  for (std::size_t w = 0; w < 3; ++w) {
    const std::int64_t copies = w == 0 ? 2 : 1;
    CHECK(run.sent(w).messages_sent == copies * 3);
    CHECK(run.sent(w).bytes_sent == copies * (4 + (24 + 18) * kWord));
  }
  // Rank 4 of 3 or 5 outputs: nothing is compressed and all is exact.
  const TrainingRun dense = run_training("rank-dad:bias=authors", 3);
  CHECK(dense.sent_by_all().messages_sent == 12);
  CHECK(gradient_error(dense) < 1e-6);
}

TEST_CASE("Few rows of a wide layer stay factors at any rank") {
  // 4 rows of mlp:40-30-20: r = 4 at most, 280 numbers instead of 1200 and 200 instead of 600.
  CHECK(run_training("rank-dad:rank=100,bias=authors,exchange=star", 2, "mlp:40-30-20")
            .sent(1)
            .bytes_sent == 8 + (280 + 200) * kWord);
}

TEST_CASE("A batch without any delta has rank 0 and changes nothing") {
  // One class: softmax is 1 and every delta 0.
  const Dataset dataset{.name = "one class",
                        .synthetic = true,
                        .shape = {.features = 7, .classes = 1},
                        .train = {Matrix::Ones(12, 7), std::vector<int>(12, 0)},
                        .test = {}};
  for (const std::string& exchange : kExchanges) {
    for (const std::string bias : {"exact", "augmented", "authors"}) {
      for (const std::string spi : {"robust", "authors"}) {
        CAPTURE(exchange, bias, spi);
        const auto steps = run_steps(
            std::string("rank-dad:rank=2,fallback-dense=off,exchange=")
                .append(exchange)
                .append(",bias=" + bias)
                .append(",spi=" + spi),
            3, dataset, 4, [&] { return make_model({.name = "mlp:7-5-1"}, dataset.shape, 1); });
        for (const StepRecord& step : steps)
          for (const Matrix& gradient : step.applied) CHECK(gradient.isZero(0));
      }
    }
  }
}

TEST_CASE("A worker of rank 0 among others adds nothing") {
  // Weights of 1000 saturate softmax: example 0 has its label and no delta, example 1 has not.
  Dataset dataset{.name = "two examples",
                  .synthetic = true,
                  .shape = {.features = 2, .classes = 2},
                  .train = {Matrix::Identity(2, 2), {0, 0}},
                  .test = {}};
  for (const std::string& exchange : kExchanges) {
    CAPTURE(exchange);
    const auto steps =
        run_steps("rank-dad:rank=1,fallback-dense=off,bias=augmented,exchange=" + exchange, 2,
                  dataset, 1, [&] {
                    auto model = make_model({.name = "mlp:2-2"}, dataset.shape, 1);
                    model->mutable_parameters()[0].value = 1000 * Matrix::Identity(2, 2);
                    return model;
                  });
    const bool first_is_zero = steps[0].local[0].isZero(0);
    CHECK(first_is_zero != steps[1].local[0].isZero(0));
    CHECK(relative_difference(steps[0].applied, exact_mean(steps, 2)) < 1e-6);
    CHECK(steps[0].parameters == steps[1].parameters);
  }
}

TEST_CASE("A batch that diverged shows in the loss and leaves finite factors") {
  Dataset dataset{.name = "diverged",
                  .synthetic = true,
                  .shape = {.features = 2, .classes = 2},
                  .train = {Matrix::Identity(2, 2), {0, 0}},
                  .test = {}};
  dataset.train.inputs(0, 0) = std::numeric_limits<Scalar>::infinity();
  const auto steps = run_steps("rank-dad:rank=1,fallback-dense=off", 2, dataset, 1,
                               [&] { return make_model({.name = "mlp:2-2"}, dataset.shape, 1); });
  CHECK((std::isnan(steps[0].loss_sum) || std::isnan(steps[1].loss_sum)));
  CHECK(steps[0].applied[0].allFinite());
  CHECK(steps[0].applied[1].hasNaN());  // the exact bias
}

TEST_CASE("rank-dAD charges both reductions and the rebuilding as compression") {
  // 3 workers, rank 2 of 7x5 and 5x3: rebuilding from N r components instead of r' = r.
  const double rebuild = 2 * 2 * (7 * 5 + 5 * 3);
  const std::string options = "rank=2,bias=exact,exchange=";
  const double star = flops(options + "star", 3, 1);
  CHECK(flops(options + "allgather", 3, 1) - star == Approx(2 * rebuild));
  const double second = flops(options + "star", 3, 0) - flops(options + "star", 3, 1);
  CHECK(second > 0);
  CHECK(flops(options + "two-way", 3, 1) - star == Approx(second).epsilon(0.1));
  CHECK(star > rebuild);
}

TEST_CASE("rank-dAD refuses a rank of 0 and a drop of all components") {
  const auto make = [](const std::string& spec) {
    return make_algorithm(parse_algorithm_spec(spec));
  };
  CHECK_THROWS_WITH(make("rank-dad:rank=0"), Catch::Contains("rank=0; allowed: an integer"));
  CHECK_THROWS_WITH(make("rank-dad:iterations=0"), Catch::Contains("iterations=0; allowed"));
  CHECK_THROWS_WITH(make("rank-dad:theta=-1"), Catch::Contains("theta=-1; allowed"));
  CHECK_THROWS_WITH(make("rank-dad:spi=authors,rank=2,drop-last=2"),
                    Catch::Contains("allowed: drop-last below rank"));
  CHECK_NOTHROW(make("rank-dad:rank=2,drop-last=2"));  // the robust loop drops nothing
}
