#include "algorithms/recording_file.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

namespace gradwire {
namespace {

RecordingFile small_recording() {
  Scenario scenario;
  scenario.workers = 3;
  scenario.algorithm = parse_algorithm_spec("powersgd:rank=1");
  scenario.model.name = "mlp:6-5-4";
  scenario.dataset = "synthetic:6x4";
  scenario.batch_size = 4;
  scenario.batches = 2;
  scenario.evaluate_every = 1;
  scenario.gradient_error = true;
  return {"{\"workers\": 3}", "inputs",
          rehearse(scenario, load_dataset(scenario.dataset, scenario.seed))};
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

std::string refusal(const std::string& bytes) {
  try {
    decode_recording("f.rec", bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("a recording comes back from its bytes whole") {
  RecordingFile before = small_recording();
  before.rehearsal.workers[0].loss[0] = NAN;
  const RecordingFile after = decode_recording("f.rec", encode_recording(before));
  CHECK(after.scenario == before.scenario);
  CHECK(after.inputs == before.inputs);
  const Rehearsal &a = before.rehearsal, &b = after.rehearsal;
  REQUIRE(b.workers.size() == 3);
  CHECK(same_bits(a.gradient_relative_error, b.gradient_relative_error));
  CHECK(a.recording.batch_work.backward.flops == b.recording.batch_work.backward.flops);
  for (std::size_t w = 0; w < 3; ++w) {
    CHECK(same_bits(a.workers[w].loss, b.workers[w].loss));
    CHECK(a.workers[w].metrics == b.workers[w].metrics);
    CHECK(a.workers[w].parameter_hash == b.workers[w].parameter_hash);
    CHECK(a.workers[w].memory.total_bytes == b.workers[w].memory.total_bytes);
    CHECK(a.workers[w].memory.state_bytes == b.workers[w].memory.state_bytes);
    REQUIRE(a.workers[w].evaluations.size() == b.workers[w].evaluations.size());
    for (std::size_t e = 0; e < a.workers[w].evaluations.size(); ++e)
      CHECK(a.workers[w].evaluations[e].macro_auc == b.workers[w].evaluations[e].macro_auc);
    for (std::size_t lane = 0; lane < 2; ++lane) {
      const LaneRecording& x = a.recording.workers[w].lanes[lane];
      const LaneRecording& y = b.recording.workers[w].lanes[lane];
      REQUIRE(x.events.size() == y.events.size());
      CHECK(std::equal(x.events.begin(), x.events.end(), y.events.begin()));
      REQUIRE(x.charges.size() == y.charges.size());
      for (std::size_t c = 0; c < x.charges.size(); ++c)
        CHECK(x.charges[c].work.flops == y.charges[c].work.flops);
    }
  }
}

TEST_CASE("a recording of which any byte is changed or missing is refused") {
  const std::string bytes = encode_recording(small_recording());
  CHECK(refusal(bytes) == "accepted");
  for (std::size_t i = 0; i < bytes.size(); i += i < 64 ? 1 : 37) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CAPTURE(i);
    CHECK(refusal(changed).starts_with("f.rec: is "));
    CHECK(refusal(bytes.substr(0, i)).starts_with("f.rec: is "));
  }
  CHECK(refusal(bytes + "x").starts_with("f.rec: is a damaged recording"));
}

TEST_CASE("the refusal of a recording says what is wrong with it") {
  std::string bytes = encode_recording(small_recording());
  CHECK(refusal("PK") == "f.rec: is no recording; write one with gradwire run --record");
  CHECK(refusal(bytes.substr(0, 30)) == "f.rec: is a recording cut short");
  bytes[19] = 0;  // the version's lowest byte
  CHECK(refusal(bytes) ==
        "f.rec: is a recording of version 0; this gradwire reads version 3; record it again");
  CHECK_THROWS_WITH(load_recording("/no/such/file"),
                    Catch::StartsWith("/no/such/file: cannot be read"));
}

TEST_CASE("a recording that contradicts itself is refused although its checksum is right") {
  RecordingFile recording = small_recording();
  recording.rehearsal.recording.workers[1].lanes[0].add(
      {.kind = Event::Kind::kSend, .peer = 3, .value = 1});  // of 0, 1, 2
  CHECK(refusal(encode_recording(recording)) ==
        "f.rec: is a damaged recording (the content contradicts itself)");
  recording = small_recording();
  recording.rehearsal.recording.workers[1].lanes[0].add(
      {.kind = Event::Kind::kCharge, .value = 1'000'000});
  CHECK(refusal(encode_recording(recording)) ==
        "f.rec: is a damaged recording (the content contradicts itself)");
}

}  // namespace
}  // namespace gradwire
