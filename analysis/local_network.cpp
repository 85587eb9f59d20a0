#include "analysis/local_network.h"

#ifdef GRADWIRE_WITH_GLOO

#include <cmath>
#include <vector>

#include "analysis/text.h"
#include "analysis/units.h"

namespace gradwire {

const NetLab* LocalNetwork::of(const Scenario& s) {
  const Key wanted{s.workers, s.bandwidth_bit_per_s.value_or(0), s.latency_s.value_or(0)};
  if (wanted == key_) return lab_.get();
  key_ = wanted;
  lab_.reset();
  if (s.workers < 2 || (!s.bandwidth_bit_per_s && !s.latency_s)) return nullptr;
  const auto [workers, bit_per_s, latency_s] = wanted;
  try {
    lab_ = std::make_unique<NetLab>(std::vector<SwitchPort>(
        static_cast<std::size_t>(workers),
        {.up_bit_per_s = bit_per_s, .down_bit_per_s = bit_per_s, .delay_s = latency_s}));
    check_ = lab_->check();
  } catch (const LabUnavailable& error) {
    lab_.reset();
    obstacle_ = error.what();
  }
  return lab_.get();
}

std::string LocalNetwork::complaint() const {
  const double expected = check_.expected_goodput_bit_per_s;
  constexpr double kTolerance = 0.1, kSlack_s = 5e-3;
  const bool right =
      (expected <= 0 || std::abs(check_.goodput_bit_per_s / expected - 1) <= kTolerance) &&
      check_.round_trip_s <= check_.expected_round_trip_s + kSlack_s;
  if (right) return "";
  return "the network lab does not keep its promise: " +
         format_bandwidth(check_.goodput_bit_per_s) + " and " + format_time(check_.round_trip_s) +
         " there and back instead of " + format_bandwidth(expected) + " and " +
         format_time(check_.expected_round_trip_s);
}

void LocalNetwork::describe(Result& result) const {
  result.network.emplace_back("lab_measured_goodput_bit_per_s", shortest(check_.goodput_bit_per_s));
  result.network.emplace_back("lab_measured_round_trip_s", shortest(check_.round_trip_s));
  if (const std::string what = complaint(); !what.empty()) result.warnings.push_back(what);
}

}  // namespace gradwire

#endif
