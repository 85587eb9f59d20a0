// dSGD against the exact mean gradient, and its traffic against the formulas of dsgd.cpp.
#include <bit>
#include <catch2/catch.hpp>

#include "tests/algorithms/training_runs.h"

using namespace gradwire;

namespace {

constexpr std::int64_t kParameters = 7 * 5 + 5 + 5 * 3 + 3;  // of mlp:7-5-3
constexpr std::int64_t kBytes = kParameters * sizeof(Scalar);

}  // namespace

TEST_CASE("dSGD applies the exact mean gradient by every exchange") {
  const std::string options =
      GENERATE(as<std::string>{}, "exchange=ring", "exchange=halving-doubling", "exchange=tree",
               "exchange=allgather", "exchange=star", "form=authors", "overlap=off",
               "bucket-bytes=1,first-bucket-bytes=1");
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(options, workers);
  const TrainingRun run = run_training("dsgd:" + options, workers);
  CHECK(gradient_error(run) < 1e-6);
  CHECK(replicas_equal(run));
}

TEST_CASE("dSGD with N workers of batch B trains like one worker of batch NB") {
  for (const std::string form : {"ddp", "authors"}) {
    Scenario one = small_scenario("dsgd", 1);
    one.batch_size = 20;
    const TrainingRun many = run_training("dsgd:form=" + form, 5);
    CHECK(relative_difference(many.parameters(), run_training(one).parameters()) < 1e-6);
  }
}

TEST_CASE("dSGD's ring sends 2(N-1)/N of the gradient to the right in 2(N-1) messages") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(workers);
  const TrainingRun run = run_training("dsgd", workers);
  CHECK(run.sent_by_all().bytes_sent == 2 * run.peers() * kBytes);
  for (std::size_t w = 0; w < run.steps.size(); ++w) {
    CHECK(run.sent(w).messages_sent == 2 * run.peers());
    // two of the N chunks are not sent, each the N-th part of the gradient up to one number
    CHECK(std::abs(static_cast<double>(run.sent(w).bytes_sent) -
                   static_cast<double>(2 * run.peers() * kBytes) / workers) <=
          2.0 * sizeof(Scalar));
  }
}

TEST_CASE("dSGD's halving-doubling sends the ring's bytes in 2 log2 N messages") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(workers);
  const TrainingRun run = run_training("dsgd:exchange=halving-doubling", workers);
  const auto group = static_cast<std::int64_t>(std::bit_floor(static_cast<unsigned>(workers)));
  const int steps = std::countr_zero(static_cast<std::uint64_t>(group));
  const std::int64_t outside =
      workers - group;  // each sends its gradient to a neighbour and gets the sum
  CHECK(run.sent_by_all().bytes_sent == 2 * (group - 1 + outside) * kBytes);
  CHECK(run.sent_by_all().messages_sent == 2 * (steps * group + outside));
}

TEST_CASE("dSGD's tree, star and all-gather send what their headers say") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  CAPTURE(workers);
  const TrainingRun tree = run_training("dsgd:exchange=tree", workers);
  CHECK(tree.sent_by_all().messages_sent == 2 * tree.peers());
  CHECK(tree.sent_by_all().bytes_sent == 2 * tree.peers() * kBytes);
  const TrainingRun star = run_training("dsgd:exchange=star", workers);
  const TrainingRun gathered = run_training("dsgd:exchange=allgather", workers);
  for (std::size_t w = 0; w < star.steps.size(); ++w) {
    CHECK(star.sent(w).messages_sent == (w == 0 ? star.peers() : 1));
    CHECK(star.sent(w).bytes_sent == star.sent(w).messages_sent * kBytes);
    CHECK(gathered.sent(w).messages_sent == gathered.peers());
    CHECK(gathered.sent(w).bytes_sent == gathered.peers() * kBytes);
  }
}

TEST_CASE(
    "The authors' dSGD sends every gradient to everyone, one message per parameter and peer") {
  const int workers = GENERATE(1, 2, 3, 5, 8, 24);
  const TrainingRun run = run_training("dsgd:form=authors", workers);
  for (std::size_t w = 0; w < run.steps.size(); ++w) {
    CHECK(run.sent(w).messages_sent == 4 * run.peers());
    CHECK(run.sent(w).bytes_sent == run.peers() * kBytes);
  }
}

TEST_CASE("A bucket closes as soon as it holds its limit, the first one earlier") {
  // Arrival: fc2.bias 3 numbers, fc2.weight 15, fc1.bias 5, fc1.weight 35.  One message per bucket.
  const auto buckets = [](std::size_t first, std::size_t limit) {
    return run_training(
               "dsgd:exchange=star,first-bucket-bytes=" + std::to_string(first * sizeof(Scalar)) +
                   ",bucket-bytes=" + std::to_string(limit * sizeof(Scalar)),
               2)
        .sent(1)
        .messages_sent;
  };
  CHECK(buckets(1, 1) == 4);
  CHECK(buckets(3, 20) == 3);
  CHECK(buckets(3, 21) == 2);
  CHECK(buckets(4, 41) == 2);
  CHECK(buckets(18, 5) == 3);
  CHECK(buckets(18, 6) == 2);
  CHECK(buckets(58, 1) == 1);
}

TEST_CASE("A 16-bit wire halves dSGD's bytes and stays close to the exact mean") {
  const auto [wire, error] =
      GENERATE(table<std::string, double>({{"fp16", 0x1p-10}, {"bf16", 0x1p-7}}));
  const std::string exchange =
      GENERATE(as<std::string>{}, "ring", "halving-doubling", "tree", "allgather", "star");
  CAPTURE(wire, exchange);
  const TrainingRun run = run_training("dsgd:wire=" + wire + ",exchange=" + exchange, 5);
  CHECK(run.sent_by_all().bytes_sent ==
        run_training("dsgd:exchange=" + exchange, 5).sent_by_all().bytes_sent * 2 /
            static_cast<std::int64_t>(sizeof(Scalar)));
  CHECK(gradient_error(run) < 2 * error);
  CHECK(gradient_error(run) > error / 100);
  CHECK(replicas_equal(run));
}

TEST_CASE("Overlap changes dSGD's schedule, not its numbers") {
  const auto started = [](const std::string& overlap) {
    const Scenario scenario =
        small_scenario("dsgd:first-bucket-bytes=1,bucket-bytes=1,overlap=" + overlap, 2);
    const Rehearsal rehearsal = rehearse(scenario, small_dataset(scenario));
    bool backward_after_start = false;
    bool any_start = false;
    for (const Event& event : rehearsal.recording.workers[0].lanes[0].events) {
      any_start |= event.kind == Event::Kind::kStart;
      backward_after_start |=
          any_start && event.kind == Event::Kind::kCharge && event.phase == Phase::kBackward;
      if (event.kind == Event::Kind::kFinish) break;
    }
    return std::pair(backward_after_start, rehearsal.workers[0].parameter_hash);
  };
  const auto on = started("on");
  const auto off = started("off");
  CHECK(on.first);
  CHECK_FALSE(off.first);
  CHECK(on.second == off.second);
}

TEST_CASE("dSGD refuses options that contradict each other or are out of range") {
  const auto make = [](const std::string& spec) {
    return make_algorithm(parse_algorithm_spec(spec));
  };
  CHECK_THROWS_WITH(make("dsgd:form=authors,exchange=tree"),
                    "algorithm dsgd: exchange=tree; allowed with form=authors: allgather");
  CHECK_NOTHROW(make("dsgd:form=authors,exchange=allgather"));
  CHECK_THROWS_WITH(make("dsgd:bucket-bytes=0"),
                    "algorithm dsgd: bucket-bytes=0; allowed: an integer of at least 1");
}
