#include "analysis/calibrate.h"

#ifdef GRADWIRE_WITH_GLOO

#include <catch2/catch.hpp>

using namespace gradwire;

namespace {

// Samples that a known calibration would give: 20 us and 30 us of a message, 1 and 2 ns of a byte.
CalibrationSamples ideal_samples() {
  CalibrationSamples s;
  s.network = "lab";
  s.cores = 2;
  s.one_machine = true;
  for (LaneSamples& lane : s.lanes) {
    for (const double bytes : {64.0, 4096.0, 1e5, 1e6})
      lane.messages.push_back({.bytes = bytes,
                               .one_way_s = {60e-6 + 3e-9 * bytes, 60e-6 + 3e-9 * bytes, 1},
                               .cpu_s = 70e-6 + 3e-9 * bytes});
    lane.short_burst_cpu_s = {4 * 50e-6 + 25e-6, 1, 4 * 50e-6 + 25e-6};
    lane.long_burst_cpu_s = {12 * 50e-6 + 25e-6, 12 * 50e-6 + 25e-6, 1};
  }
  s.streams = {{.bytes = 1, .goodput_bit_per_s = 1e6, .send_cpu_s = 2, .receive_cpu_s = 3},
               {.bytes = 1e6, .goodput_bit_per_s = 9e9, .send_cpu_s = 1e-3, .receive_cpu_s = 2e-3}};
  ShapedSamples shaped;
  shaped.bit_per_s = 1e8;
  shaped.one_way = {
      .bytes = 1e6, .goodput_bit_per_s = 0.95e8, .send_cpu_s = 4e-3, .receive_cpu_s = 5e-3};
  shaped.both_ways.goodput_bit_per_s = 1e8 / (1 / 0.95 + 0.02);
  s.shaped = {shaped};
  DelayedSamples delayed;
  delayed.one_way_s = 0.01;
  delayed.bit_per_s = 8e6;
  delayed.arrival_posted_early_s = {0.0101, 0.0102, 0.09};
  delayed.arrival_posted_together_s = {0.0201, 0.0202, 0.0203};
  delayed.short_message.one_way_s = {0.0102, 0.0103, 0.09};
  delayed.sent_bytes = 1e6;
  delayed.send_wait_s = 0.5;
  delayed.queue_s = 0.02;
  s.delayed = delayed;
  s.compute = {.product_flop_per_s = {1e10, 2e10, 9e10},
               .memory_byte_per_s = {1e9},
               .iteration_flop_per_s = {1e9}};
  return s;
}

}  // namespace

TEST_CASE("A line is fitted whatever one outlier says", "[calibrate]") {
  const Line line = fit_line({0, 1, 2, 3, 4}, {1, 3, 5, 70, 9});
  CHECK(line.slope == Approx(2));
  CHECK(line.intercept == Approx(1));
}

TEST_CASE("A calibration recovers what its samples were made of", "[calibrate]") {
  const Calibration c = fit(ideal_samples());
  for (const MessageCost& cost : c.message_costs) {
    CHECK(cost.send_s == Approx(20e-6));
    CHECK(cost.receive_s == Approx(30e-6));
    CHECK(cost.background_s == Approx(0).margin(1e-12));
    CHECK(cost.burst_s == Approx(25e-6));
  }
  CHECK(c.latency_s == Approx(10e-6));
  REQUIRE(c.byte_costs.size() == 2);
  CHECK(c.byte_costs[0].send_s == Approx(4e-9));
  CHECK(c.byte_costs[1].receive_s == Approx(2e-9));
  CHECK(c.payload_share == Approx(0.95));
  CHECK(c.acknowledgement_share == Approx(0.02));
  CHECK(c.rendezvous);
  CHECK(c.send_buffer_bytes == Approx(1e6 - 0.5 * 1e6 * 0.95));
  CHECK(c.queue_bytes == Approx(0.02 * 1e6));
  CHECK(c.switch_s == Approx(0.0103 - 0.01 - 60e-6));
  CHECK(c.flop_per_s == 2e10);
}

TEST_CASE("Processor time beyond a short message's one-way time is in the background",
          "[calibrate]") {
  CalibrationSamples s = ideal_samples();
  for (PingPong& p : s.lanes[0].messages) p.one_way_s.assign(3, 40e-6 + 3e-9 * p.bytes);
  const Calibration c = fit(s);
  CHECK(c.latency_s == 0);
  CHECK(c.message_costs[0].send_s == Approx(16e-6));  // 2 of 5, as streams share it
  CHECK(c.message_costs[0].receive_s == Approx(24e-6));
  CHECK(c.message_costs[0].background_s == Approx(5e-6));
  CHECK(c.message_costs[1].background_s == Approx(0).margin(1e-12));
}

TEST_CASE("An eager transport is told from one with a rendezvous", "[calibrate]") {
  CalibrationSamples s = ideal_samples();
  s.delayed->arrival_posted_together_s = s.delayed->arrival_posted_early_s;
  CHECK(!fit(s).rendezvous);
}

TEST_CASE("Without shaped ports headers and acknowledgements are those of full frames",
          "[calibrate]") {
  CalibrationSamples s = ideal_samples();
  s.shaped.clear();
  s.delayed.reset();
  CHECK(fit(s).payload_share == Approx(1448.0 / 1514));
  CHECK(fit(s).acknowledgement_share == Approx(33.0 / 1448));
}

TEST_CASE("A calibration file has parameters, fits and every sample", "[calibrate]") {
  const auto file = calibration_json(ideal_samples());
  CHECK(file["parameters"] == to_json(fit(ideal_samples())));
  CHECK(file["fits"]["stream_goodput"]["max_relative_error"].get<double>() < 1e-9);
  REQUIRE(file["samples"]["lanes"].size() == 2);
  const auto& lane = file["samples"]["lanes"][1];
  CHECK(lane["messages"].size() == 4);
  CHECK(lane["messages"][0]["one_way_s"].size() == 3);
  CHECK(lane["long_burst_cpu_s"].size() == 3);
}

#endif
