#include "algorithms/sparsifier.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>

#include "algorithms/in_process.h"
#include "algorithms/training.h"

using namespace gradwire;

namespace {

using Flat = std::vector<Scalar>;
using GradientOf = std::function<Flat(int rank, std::int64_t step)>;

struct Run {
  std::string spec;
  int workers = 4;
  std::int64_t steps = 10;
  std::vector<std::size_t> tensors = {};
};

struct WorkerRun {
  std::vector<SparseList> sums;  // by step
  std::vector<std::map<std::string, double>> metrics;
  std::vector<Account> accounts;
  Flat memory;
};

// Drives a sparsifier on given gradients, without a model; one worker at a time.
std::vector<WorkerRun> drive(const Run& run, const GradientOf& gradient) {
  std::vector<WorkerRun> workers(static_cast<std::size_t>(run.workers));
  run_in_process({.workers = run.workers, .concurrency = 1}, [&](Communicator& comm) {
    WorkerRun& me = workers[static_cast<std::size_t>(comm.rank())];
    const auto sparsifier = make_sparsifier(parse_algorithm_spec(run.spec));
    for (std::int64_t t = 0; t < run.steps; ++t) {
      SparseContext context{comm, 1, t, run.tensors, me.metrics.emplace_back()};
      me.sums.push_back(sparsifier->reduce(context, gradient(comm.rank(), t)));
      comm.end_step();
    }
    me.accounts = comm.steps();
    me.memory.assign(sparsifier->memory().values().begin(), sparsifier->memory().values().end());
  });
  return workers;
}

const std::vector<std::size_t> kTensors{0, 90, 100, 300, 301, 400};

// Small integers, whose float sums are exact; tensors of different scale.
Flat integers(int rank, std::int64_t step) {
  RandomStream stream(static_cast<std::uint64_t>(step), Purpose::kSyntheticTensor,
                      static_cast<std::uint64_t>(rank));
  Flat values(kTensors.back());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<Scalar>(stream.below(i < 100 ? 401 : 41)) - (i < 100 ? 200 : 20);
  return values;
}

// Normal numbers, cheap to repeat: a pool read from places that depend on worker and step.  The
// scale falls from 4 to 1 along the gradient.
GradientOf normal(std::size_t d) {
  RandomStream stream(1, Purpose::kSyntheticTensor);
  Flat pool(d + 9973);
  for (Scalar& x : pool) x = static_cast<Scalar>(stream.normal());
  return [d, pool](int rank, std::int64_t step) {
    RandomStream place(2, Purpose::kSyntheticTensor, static_cast<std::uint64_t>(rank),
                       static_cast<std::uint64_t>(step));
    const std::size_t begin = place.below(9973);
    Flat values(d);
    for (std::size_t i = 0; i < d; ++i)
      values[i] = pool[begin + i] * static_cast<Scalar>(4 - 3 * i / d);
    return values;
  };
}

const std::vector<std::string> kAll{"top-k:density=0.05",
                                    "top-k:density=0.05,scope=tensor,exchange=union",
                                    "top-k:density=0.02,index=smallest",
                                    "random-k:density=0.05",
                                    "random-block:density=0.05",
                                    "threshold:threshold=150",
                                    "threshold:threshold=150,exchange=union,index=int64",
                                    "gaussian-k:density=0.05",
                                    "gtop-k:density=0.05,leaked=return",
                                    "dgc:density=0.05,momentum=0",
                                    "micro:density=0.05",
                                    "micro:density=0.05,start=authors,fine=symmetric",
                                    "exdyna:density=0.05",
                                    "deft:density=0.05",
                                    "deft:density=0.6"};

double mean_of_last(const WorkerRun& run, const std::string& metric, std::size_t n) {
  double sum = 0;
  for (std::size_t t = run.metrics.size() - n; t < run.metrics.size(); ++t)
    sum += run.metrics[t].at(metric);
  return sum / static_cast<double>(n);
}

}  // namespace

TEST_CASE("All that was summed plus all memories is exactly all gradients", "[sparsifier]") {
  for (const std::string& spec : kAll)
    for (const int n : {1, 3, 4}) {
      INFO(spec << " on " << n);
      const auto workers = drive({spec, n, 15, kTensors}, integers);
      Flat total(kTensors.back());
      for (int w = 0; w < n; ++w)
        for (std::int64_t t = 0; t < 15; ++t) {
          const Flat g = integers(w, t);
          for (std::size_t i = 0; i < g.size(); ++i) total[i] += g[i];
        }
      for (const SparseList& sum : workers.front().sums)
        for (std::size_t i = 0; i < sum.indices.size(); ++i) total[sum.indices[i]] -= sum.values[i];
      for (const WorkerRun& worker : workers)
        for (std::size_t i = 0; i < total.size(); ++i) total[i] -= worker.memory[i];
      CHECK(total == Flat(kTensors.back()));
    }
}

TEST_CASE("All workers apply the same sums", "[sparsifier]") {
  for (const std::string& spec : kAll) {
    INFO(spec);
    const auto workers = drive({spec, 5, 6, kTensors}, integers);
    for (const WorkerRun& worker : workers)
      for (std::size_t t = 0; t < worker.sums.size(); ++t) {
        CHECK(worker.sums[t].indices == workers.front().sums[t].indices);
        CHECK(worker.sums[t].values == workers.front().sums[t].values);
      }
  }
}

TEST_CASE("With all coordinates selected the sum is that of the gradients", "[sparsifier]") {
  for (const std::string spec :
       {"top-k:density=1", "top-k:density=1,exchange=union", "top-k:density=1,scope=tensor",
        "random-k:density=1", "random-block:density=1", "threshold:threshold=0",
        "gaussian-k:density=1", "gtop-k:density=1", "dgc:density=1"}) {
    INFO(spec);
    const auto workers = drive({spec, 3, 3, kTensors}, integers);
    for (std::int64_t t = 0; t < 3; ++t) {
      Flat total(kTensors.back());
      for (int w = 0; w < 3; ++w) {
        const Flat g = integers(w, t);
        for (std::size_t i = 0; i < g.size(); ++i) total[i] += g[i];
      }
      CHECK(workers.front().sums[static_cast<std::size_t>(t)].values == total);
    }
  }
}

TEST_CASE("All-zero gradients are legal for every sparsifier", "[sparsifier]") {
  for (const std::string& spec : kAll)
    for (const int n : {1, 3}) {
      INFO(spec << " on " << n);
      const auto workers =
          drive({spec, n, 3, kTensors}, [](int, std::int64_t) { return Flat(kTensors.back()); });
      for (const SparseList& sum : workers.front().sums) {
        CHECK(sum.indices.size() < kTensors.back());
        CHECK(std::all_of(sum.values.begin(), sum.values.end(), [](Scalar x) { return x == 0; }));
      }
    }
}

TEST_CASE("Gradients shorter than the number of workers are legal", "[sparsifier]") {
  for (const std::string& spec : kAll) {
    INFO(spec);
    const auto workers = drive({spec, 5, 8, {0, 2, 3}}, [](int rank, std::int64_t step) {
      return Flat{static_cast<Scalar>(rank), static_cast<Scalar>(step), 200};
    });
    CHECK(workers.front().sums.size() == 8);
  }
}

TEST_CASE("Partitioned selections are disjoint", "[sparsifier]") {
  for (const std::string spec : {"micro:density=0.05", "exdyna:density=0.05", "deft:density=0.2"})
    for (const int n : {2, 3, 8}) {
      const auto workers = drive({spec, n, 20, {0, 100, 700, 2000}}, normal(2000));
      for (std::size_t t = 0; t < 20; ++t) {
        double selected = 0;
        for (const WorkerRun& worker : workers) selected += worker.metrics[t].at("selected");
        CHECK(selected == workers.front().metrics[t].at("union_size"));
      }
    }
}

TEST_CASE("A partitioned sparsifier reaches every coordinate", "[sparsifier]") {
  // Only worker 1 has a large entry; it leaves when worker 1 owns its part: within a rotation, with
  // DEFT, whose bins change every step, sooner or later.
  struct Case {
    std::string spec;
    std::int64_t steps;
  };
  for (const auto& [spec, steps] : {Case{"micro:density=0.05", 4}, Case{"exdyna:density=0.05", 4},
                                    Case{"deft:density=0.05", 40}})
    for (const std::size_t place : {0U, 777U, 1500U, 1999U}) {
      INFO(spec << " " << place);
      const GradientOf noise = normal(2000);
      const auto workers =
          drive({spec, 4, steps, {0, 100, 700, 2000}}, [&](int rank, std::int64_t t) {
            Flat g = noise(rank, t);
            for (Scalar& x : g) x /= 1000;
            if (rank == 1 && t == 0) g[place] = 1000;
            return g;
          });
      CHECK(std::abs(workers[1].memory[place]) < 1);
    }
}

TEST_CASE("Top-k's union grows with the workers, a partitioned selection keeps its density",
          "[sparsifier]") {
  constexpr std::size_t kSize = 2048;
  const auto density = [&](const std::string& spec, int n, std::int64_t steps) {
    const auto workers = drive({spec, n, steps, {0, 100, 1000, kSize}}, normal(kSize));
    return mean_of_last(workers.front(), "density", 20);
  };
  const double two = density("top-k:density=0.01", 2, 20);
  CHECK(two > 1.5 * 0.01);
  CHECK(density("top-k:density=0.01", 64, 20) > 8 * two);
  struct Case {
    std::string name;
    std::int64_t steps;
  };
  for (const auto& [name, steps] : {Case{"micro", 160}, Case{"exdyna", 160}, Case{"deft", 40}})
    for (const int n : {2, 8, 64}) {
      INFO(name << " on " << n);
      CHECK(density(name + ":density=0.125,all-reduce=star", n, steps) ==
            Approx(0.125).epsilon(0.1));
    }
}

TEST_CASE("Each worker scans its share alone", "[sparsifier]") {
  const auto work = [](const std::string& spec, int n) {
    std::vector<WorkerRecording> recordings;
    run_in_process({.workers = n, .recordings = &recordings}, [&](Communicator& comm) {
      std::map<std::string, double> metrics;
      const std::vector<std::size_t> tensors{0, 64000};
      SparseContext context{comm, 1, 0, tensors, metrics};
      make_sparsifier(parse_algorithm_spec(spec))->reduce(context, normal(64000)(comm.rank(), 0));
    });
    double flops = 0;
    const LaneRecording& lane = recordings.front().lanes[0];
    for (const Event& event : lane.events)
      if (event.kind == Event::Kind::kCharge) flops += lane.charges[event.value].work.flops;
    return flops;
  };
  // Beyond the memory's own passes, 2 d flops, and what depends on the k = 640 selected.
  const double two = work("micro:density=0.01,start=authors", 2) - 128000;
  const double eight = work("micro:density=0.01,start=authors", 8) - 128000;
  CHECK(two > 32000);
  CHECK(eight < two);
  CHECK(two - eight > 0.8 * (32000 - 8000));
}

TEST_CASE("Sparsifiers send the bytes that their headers promise", "[sparsifier]") {
  const auto w = static_cast<std::int64_t>(sizeof(Scalar));
  for (const std::int64_t n : {1, 2, 3, 5, 8}) {
    const auto total = [&](const std::string& spec, std::int64_t& messages) {
      const auto workers = drive({spec, static_cast<int>(n), 1, kTensors}, integers);
      std::int64_t bytes = 0;
      messages = 0;
      for (const WorkerRun& worker : workers) {
        bytes += worker.accounts.back().traffic.bytes_sent;
        messages += worker.accounts.back().traffic.messages_sent;
      }
      return std::pair(bytes, workers);
    };
    std::int64_t messages = 0;
    INFO("N = " << n);
    // k = 20 of 400.
    CHECK(total("top-k:density=0.05", messages).first == n * (n - 1) * (8 + 20 * (4 + w)));
    CHECK(messages == 2 * n * (n - 1));
    CHECK(total("random-k:density=0.05", messages).first == 2 * (n - 1) * 20 * w);
    CHECK(messages == 2 * n * (n - 1));
    CHECK(total("gtop-k:density=0.05", messages).first == 2 * (n - 1) * 20 * (4 + w));
    CHECK(messages == 2 * (n - 1));
    for (const std::string name :
         {"top-k:density=0.05,exchange=union,index=int64", "micro:density=0.05,index=int64"}) {
      const auto [bytes, workers] = total(name, messages);
      double longest = 0;
      for (const WorkerRun& worker : workers)
        longest = std::max(longest, worker.metrics[0].at("selected"));
      const double size = workers.front().metrics[0].at("union_size");
      CHECK(bytes == n * (n - 1) * (8 + 8 * static_cast<std::int64_t>(longest)) +
                         2 * (n - 1) * static_cast<std::int64_t>(size) * w);
      CHECK(messages == 4 * n * (n - 1));
    }
    {
      const auto [bytes, workers] = total("deft:density=0.05", messages);
      double longest = 0;
      for (const WorkerRun& worker : workers)
        longest = std::max(longest, worker.metrics[0].at("selected"));
      const double size = workers.front().metrics[0].at("union_size");
      const auto pieces = static_cast<std::int64_t>((n == 1   ? 5
                                                     : n == 2 ? 5
                                                     : n == 3 ? 7
                                                     : n == 5 ? 17
                                                              : 26));
      CHECK(bytes == (n - 1) * 4 * (n + pieces) +
                         n * (n - 1) * (8 + 4 * static_cast<std::int64_t>(longest)) +
                         2 * (n - 1) * static_cast<std::int64_t>(size) * w);
    }
  }
}

TEST_CASE("DGC with density 1 and no masking sends momentum", "[sparsifier]") {
  const auto workers = drive({"dgc:density=1,momentum=0.5,masking=off", 2, 4, kTensors}, integers);
  Flat velocity(kTensors.back());
  for (std::int64_t t = 0; t < 4; ++t) {
    const Flat a = integers(0, t);
    const Flat b = integers(1, t);
    for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] = velocity[i] / 2 + a[i] + b[i];
    CHECK(workers.front().sums[static_cast<std::size_t>(t)].values == velocity);
  }
}

TEST_CASE("DGC's masking restarts the velocity of what was sent", "[sparsifier]") {
  const auto workers = drive({"dgc:density=0.5,momentum=0.5", 1, 2, {0, 2}}, [](int, std::int64_t) {
    return Flat{8, 4};
  });
  // Step 0 sends 8 and keeps 4 with velocity 4.  Step 1: 8 against 4 + (2 + 4) = 10.
  CHECK(workers.front().sums[0].indices == Coordinates{0});
  CHECK(workers.front().sums[1].indices == Coordinates{1});
  CHECK(workers.front().sums[1].values == Flat{10});
}

TEST_CASE("DGC clips to the norm of a worker's share", "[sparsifier]") {
  const auto workers =
      drive({"dgc:density=1,momentum=0,clip=10", 4, 1, {0, 2}}, [](int, std::int64_t) {
        return Flat{30, 40};
      });
  // 10 / sqrt(4) = 5 of 50: a tenth, from four workers.
  CHECK(workers.front().sums[0].values[0] == Approx(12));
  CHECK(workers.front().sums[0].values[1] == Approx(16));
}

TEST_CASE("A warm-up quarters the density until the target", "[sparsifier]") {
  const auto workers = drive({"gtop-k:density=0.02,warmup-steps=2", 2, 8, kTensors}, integers);
  std::vector<double> sizes;
  for (const auto& metrics : workers.front().metrics) {
    sizes.push_back(metrics.at("union_size"));
    CHECK(metrics.at("density") == metrics.at("target_density"));
  }
  CHECK(sizes == std::vector<double>{100, 100, 25, 25, 8, 8, 8, 8});
}

TEST_CASE("Without feedback nothing is kept", "[sparsifier]") {
  const auto workers = drive({"top-k:feedback=off", 2, 3, kTensors}, integers);
  CHECK(workers.front().memory == Flat(kTensors.back()));
  const auto kept = drive({"top-k", 2, 3, kTensors}, integers);
  CHECK(kept.front().metrics.back().at("residual_norm") > 0);
}

TEST_CASE("gTop-k without leaks loses nothing, with leaks exactly them", "[sparsifier]") {
  const auto workers = drive({"gtop-k:density=0.05", 4, 1, kTensors}, integers);
  double leaked = 0;
  for (const WorkerRun& worker : workers) {
    const double norm = worker.metrics[0].at("leaked_norm");
    leaked += norm * norm;
  }
  Flat lost(kTensors.back());
  for (int w = 0; w < 4; ++w) {
    const Flat g = integers(w, 0);
    for (std::size_t i = 0; i < lost.size(); ++i)
      lost[i] += g[i] - workers[static_cast<std::size_t>(w)].memory[i];
  }
  const SparseList& sum = workers.front().sums[0];
  for (std::size_t i = 0; i < sum.indices.size(); ++i) lost[sum.indices[i]] -= sum.values[i];
  double missing = 0;
  for (const double x : lost) missing += x * x;
  CHECK(leaked > 0);
  CHECK(missing == leaked);  // a coordinate leaks on one worker here
}

TEST_CASE("An exchange of one-size lists refuses varying codes", "[sparsifier]") {
  CHECK_THROWS_WITH(make_sparsifier(parse_algorithm_spec("top-k:exchange=union,index=delta")),
                    Catch::Contains("index=delta"));
  CHECK_THROWS_AS(make_sparsifier(parse_algorithm_spec("top-k:density=0")), std::invalid_argument);
  CHECK_THROWS_AS(make_sparsifier(parse_algorithm_spec("dsgd")), std::invalid_argument);
}

namespace {

Scenario scenario(const std::string& spec, int workers) {
  Scenario s;
  s.dataset = "synthetic:20x4";
  s.model.name = "mlp:20-16-4";
  s.workers = workers;
  s.batch_size = 8;
  s.batches = 20;
  s.optimizer = {.name = "sgd", .learning_rate = 0.2};
  s.algorithm = parse_algorithm_spec(spec);
  return s;
}

std::vector<double> losses(const Scenario& s, const Dataset& data) {
  Result result;
  describe(rehearse(s, data), result);
  CHECK(result.replicas_equal);
  return result.loss;
}

}  // namespace

TEST_CASE("Every sparsifier trains with equal replicas", "[sparsifier]") {
  const Dataset data = load_dataset("synthetic:20x4", 1);
  for (const std::string& spec : kAll) {
    INFO(spec);
    const auto loss = losses(scenario(spec, 3), data);
    CHECK(std::isfinite(loss.back()));
  }
}

TEST_CASE("A sparsifier that sends all trains like dSGD", "[sparsifier]") {
  const Dataset data = load_dataset("synthetic:20x4", 1);
  const auto expected = losses(scenario("dsgd", 3), data);
  for (const std::string spec : {"top-k:density=1", "random-k:density=1", "threshold:threshold=0",
                                 "gtop-k:density=1", "top-k:density=1,feedback=rate-inside"}) {
    const auto loss = losses(scenario(spec, 3), data);
    for (std::size_t t = 0; t < loss.size(); ++t)
      CHECK(loss[t] == Approx(expected[t]).epsilon(1e-4));
  }
}

TEST_CASE("A constant learning rate inside the memory equals one outside", "[sparsifier]") {
  const Dataset data = load_dataset("synthetic:20x4", 1);
  const auto outside = losses(scenario("top-k:density=0.1", 3), data);
  const auto inside = losses(scenario("top-k:density=0.1,feedback=rate-inside", 3), data);
  for (std::size_t t = 0; t < inside.size(); ++t)
    CHECK(inside[t] == Approx(outside[t]).epsilon(1e-3));
}
