// From the samples of a calibration to its parameters, with what the fits leave over.
#pragma once
#ifdef GRADWIRE_WITH_GLOO

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "real/measure.h"
#include "sim/calibration.h"

namespace gradwire {

/// Streams over ports of a known rate.
struct ShapedSamples {
  double bit_per_s = 0;
  Stream one_way, both_ways, fan_out, fan_in;
};

/// Over cables of a known delay, where what a message waits for can be told apart.
struct DelayedSamples {
  double one_way_s = 0;
  double bit_per_s = 0;
  std::vector<double> arrival_posted_early_s, arrival_posted_together_s;
  PingPong short_message;  ///< one delay each way, receives being posted before
  double sent_bytes = 0;
  double send_wait_s = 0;  ///< until the sender of so many bytes may go on
  double queue_s = 0;      ///< what a short message waits behind another connection's stream
};

/// Messages on a lane of its own thread and scheduling.
struct LaneSamples {
  static constexpr int kShortBurst = 4, kLongBurst = 12;  // messages
  std::vector<PingPong> messages;  ///< over a network without limits of its own
  std::vector<double> short_burst_cpu_s, long_burst_cpu_s;  ///< where workers crowd all cores
};

struct CalibrationSamples {
  std::string network;  ///< lab, loopback or cluster
  int cores = 1;
  bool one_machine = false;
  bool pinned = false;
  std::array<LaneSamples, 2> lanes;  ///< main, second
  std::vector<Stream> streams;       ///< one way, over a network without limits of its own
  std::vector<ShapedSamples> shaped;
  std::optional<DelayedSamples> delayed;
  std::vector<TokenBucket> token_buckets;
  ComputeRates compute;
};

/// y = intercept + slope x by the median of all pairs' slopes (Theil 1950, Sen 1968), not below 0.
struct Line {
  double intercept = 0;
  double slope = 0;
};
Line fit_line(const std::vector<double>& x, const std::vector<double>& y);

/// Without shaped samples the shares are those of full Ethernet frames, every second acknowledged.
Calibration fit(const CalibrationSamples& samples);

/// The calibration file: parameters, their units, relative residuals of the fits, all samples.
nlohmann::ordered_json calibration_json(const CalibrationSamples& samples);

}  // namespace gradwire

#endif
