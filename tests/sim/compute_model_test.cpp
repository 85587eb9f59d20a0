// Simulated seconds of a charge in the three modes.
#include "sim/compute_model.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace gradwire {
namespace {

const BatchWork kBatch{.forward = {.flops = 100}, .backward = {.flops = 200}};

double seconds(const ComputeSpec& spec, Phase phase, const Work& work, double cpu_s = 0) {
  return ComputeModel(spec, kBatch).seconds(phase, {work, cpu_s});
}

TEST_CASE("flops take their time on the device, or their bytes do where those take longer") {
  ComputeSpec spec{.device_flop_per_s = 1e9};
  const Work work{.flops = 1e6, .memory_bytes = 8e6};
  CHECK(seconds(spec, Phase::kForward, work) == Approx(1e-3));
  spec.device_memory_byte_per_s = 16e9;
  CHECK(seconds(spec, Phase::kForward, work) == Approx(1e-3));
  spec.device_memory_byte_per_s = 4e9;
  CHECK(seconds(spec, Phase::kForward, work) == Approx(2e-3));
  spec.device_flop_per_s = INFINITY;
  spec.device_memory_byte_per_s = 0;
  CHECK(seconds(spec, Phase::kForward, work) == 0);
}

TEST_CASE("measured charges take the processor time that they took") {
  CHECK(seconds({.mode = ComputeSpec::Mode::kMeasured}, Phase::kCompression, {.flops = 1e9},
                0.25) == 0.25);
}

TEST_CASE("given seconds are spread over the passes, and rate everything else like backward") {
  const ComputeSpec spec{
      .mode = ComputeSpec::Mode::kGiven, .forward_s = 0.010, .backward_s = 0.040};
  CHECK(seconds(spec, Phase::kForward, kBatch.forward) == Approx(0.010));
  CHECK(seconds(spec, Phase::kForward, {.flops = 25}) == Approx(0.0025));
  CHECK(seconds(spec, Phase::kBackward, kBatch.backward) == Approx(0.040));
  CHECK(seconds(spec, Phase::kCompression, {.flops = 50}) == Approx(0.010));
  CHECK(seconds({.mode = ComputeSpec::Mode::kGiven}, Phase::kForward, kBatch.forward) == 0);
  CHECK(ComputeModel(spec, {}).seconds(Phase::kReduction, {{.flops = 7}}) == 0);
}

TEST_CASE("beside given seconds a chosen device rates what is neither forward nor backward") {
  ComputeSpec spec{.mode = ComputeSpec::Mode::kGiven, .forward_s = 0.010, .backward_s = 0.040};
  spec.device_flop_per_s = 1000;
  spec.device_rate_given = true;
  CHECK(seconds(spec, Phase::kBackward, kBatch.backward) == Approx(0.040));
  CHECK(seconds(spec, Phase::kCompression, {.flops = 50}) == Approx(0.050));
}

TEST_CASE("rates and times that cannot be are refused by name") {
  CHECK_THROWS_WITH(ComputeModel({.device_flop_per_s = 0}, kBatch),
                    Catch::StartsWith("device_flop_per_s: 0"));
  CHECK_THROWS_WITH(ComputeModel({.device_flop_per_s = NAN}, kBatch),
                    Catch::StartsWith("device_flop_per_s"));
  CHECK_THROWS_WITH(ComputeModel({.device_memory_byte_per_s = -1}, kBatch),
                    Catch::StartsWith("device_memory_byte_per_s: -1"));
  CHECK_THROWS_WITH(ComputeModel({.forward_s = -1}, kBatch), Catch::StartsWith("forward_s: -1"));
}

}  // namespace
}  // namespace gradwire
