// Without values an algorithm makes the same calls: same messages, same charges.
#include <catch2/catch.hpp>

#include "algorithms/spi.h"
#include "algorithms/training.h"
#include "models/cost_only.h"
#include "models/random.h"
#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;

struct Toy : TemporaryFolder {
  Toy() {
    write("t.json", R"([{"name": "emb.weight", "shape": [90, 64]},
                        {"name": "a.weight", "shape": [80, 64]}, {"name": "a.bias", "shape": [80]},
                        {"name": "b.weight", "shape": [70, 80]}, {"name": "scale", "shape": [9]}])");
  }
  Scenario scenario(const std::string& algorithm, int workers) const {
    Scenario s;
    s.workers = workers;
    s.algorithm = parse_algorithm_spec(algorithm);
    s.model.name = "table:" + path("t.json").string() + ",rows=40";
    s.batch_size = 2;
    s.batches = 2;
    return s;
  }
};

bool same(const LaneRecording& a, const LaneRecording& b) {
  const auto same_event = [](const Event& x, const Event& y) {
    return x.kind == y.kind && x.phase == y.phase && x.peer == y.peer && x.value == y.value;
  };
  const auto same_charge = [](const Charge& x, const Charge& y) {
    return x.work.flops == y.work.flops && x.work.memory_bytes == y.work.memory_bytes &&
           x.work.seconds == y.work.seconds;
  };
  return std::equal(a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
                    same_event) &&
         std::equal(a.charges.begin(), a.charges.end(), b.charges.begin(), b.charges.end(),
                    same_charge);
}

TEST_CASE("Sizes alone give the recording that values give") {
  const auto* const algorithm = GENERATE(
      "dsgd", "dsgd:exchange=halving-doubling,wire=fp16", "dsgd:exchange=tree",
      "dsgd:exchange=star,overlap=off", "dsgd:exchange=allgather,bucket-bytes=1000",
      "dsgd:form=authors,wire=bf16", "rank-dad", "rank-dad:exchange=star,rank=2",
      "rank-dad:exchange=two-way,bias=augmented",
      "rank-dad:spi=authors,tol=0,rank=5,drop-last=1,bias=authors", "powersgd",
      "powersgd:flavour=authors", "powersgd:error-feedback=off,warm-start=off,exchange=tree");
  const int workers = GENERATE(1, 2, 5);
  CAPTURE(algorithm, workers);
  const Toy toy;
  Scenario s = toy.scenario(algorithm, workers);
  const Rehearsal with = rehearse(s, no_dataset());
  s.model.values = false;
  const Rehearsal without = rehearse(s, no_dataset());
  CHECK(without.workers.front().memory.total_bytes == with.workers.front().memory.total_bytes);
  CHECK(without.workers.front().memory.state_bytes == with.workers.front().memory.state_bytes);
  REQUIRE(with.recording.workers.size() == without.recording.workers.size());
  for (std::size_t w = 0; w < with.recording.workers.size(); ++w)
    for (const std::size_t lane : {0U, 1U})
      CHECK(same(with.recording.workers[w].lanes[lane], without.recording.workers[w].lanes[lane]));
  CHECK(with.workers.front().loss.empty());
  CHECK(without.workers.front().parameter_hash == 0);
}

TEST_CASE("An algorithm that sizes alone are not implemented for is refused without values") {
  const Toy toy;
  Scenario s = toy.scenario("top-k", 2);
  s.model.values = false;
  CHECK_THROWS_WITH(rehearse(s, no_dataset()), Contains("top-k") && Contains("rank-dad"));
  s = toy.scenario("dsgd", 2);
  s.evaluate_every = 1;
  CHECK_THROWS_WITH(rehearse(s, no_dataset()), Contains("evaluate-every"));
}

TEST_CASE("The work of full rank is what power iterations do on a matrix of full rank") {
  const auto mode = GENERATE(SpiMode::kRobust, SpiMode::kAuthors);
  const auto [n, in, out] = GENERATE(table<Index, Index, Index>({{7, 30, 20}, {90, 12, 9}}));
  Matrix a(n, in), d(n, out);
  RandomStream(1, Purpose::kSyntheticTensor).fill_normal(a);
  RandomStream(2, Purpose::kSyntheticTensor).fill_normal(d);
  const SpiOptions options{.mode = mode, .rank = 4, .iterations = 2};
  const SpiResult real = structured_power_iterations(a, d, options, [](Index k, Matrix& x) {
    RandomStream(3, Purpose::kSpiStart, static_cast<std::uint64_t>(k)).fill_uniform(x);
  });
  const SpiResult sizes = spi_of_full_rank(a, d, options);
  REQUIRE(real.rank() == 4);
  CHECK(sizes.rank() == 4);
  CHECK(sizes.work.flops == Approx(real.work.flops));
  CHECK(sizes.work.memory_bytes == Approx(real.work.memory_bytes));
}

}  // namespace
}  // namespace gradwire
