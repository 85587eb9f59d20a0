#include "sim/calibration.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "models/input_file.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

const ordered_json& member(const ordered_json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key))
    throw std::invalid_argument(key + " is missing");
  return object[key];
}

double number(const ordered_json& object, const std::string& key, double min,
              double max = INFINITY) {
  const ordered_json& value = member(object, key);
  if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max))
    throw std::invalid_argument(key + ": " + shown(value) + " is not a number from " +
                                ordered_json(min).dump() +
                                (std::isinf(max) ? " on" : " to " + ordered_json(max).dump()));
  return value.get<double>();
}

bool truth(const ordered_json& object, const std::string& key) {
  const ordered_json& value = member(object, key);
  if (!value.is_boolean())
    throw std::invalid_argument(key + ": " + shown(value) + " is not true or false");
  return value.get<bool>();
}

const ordered_json& list(const ordered_json& object, const std::string& key) {
  const ordered_json& value = member(object, key);
  if (!value.is_array()) throw std::invalid_argument(key + " is not a list");
  return value;
}

// Rates of a table must rise.
double rate(const ordered_json& row, const std::string& key, double previous) {
  return number(row, key, std::nextafter(previous, INFINITY));
}

Calibration from_json(const ordered_json& file) {
  if (member(file, "format") != kCalibrationFormat)
    throw std::invalid_argument("format is not \"" + std::string(kCalibrationFormat) + "\"");
  if (member(file, "version") != kCalibrationVersion)
    throw std::invalid_argument("version " + shown(file["version"]) + " is not " +
                                std::to_string(kCalibrationVersion) + "; calibrate again");
  const ordered_json& p = member(file, "parameters");
  Calibration c;
  c.cores = static_cast<int>(number(p, "cores", 1, 1e6));
  c.one_machine = truth(p, "one_machine");
  c.pinned = truth(p, "pinned");
  c.latency_s = number(p, "latency_s", 0);
  c.payload_share = number(p, "payload_share", 1e-3, 1);
  c.acknowledgement_share = number(p, "acknowledgement_share", 0, 1);
  c.rendezvous = truth(p, "rendezvous");
  c.send_buffer_bytes = number(p, "send_buffer_bytes", 0);
  c.queue_bytes = number(p, "queue_bytes", 0);
  const ordered_json& lanes = list(p, "message_costs");
  if (lanes.size() != c.message_costs.size())
    throw std::invalid_argument("message_costs has " + std::to_string(lanes.size()) +
                                " rows, not one for each of two lanes");
  std::transform(lanes.begin(), lanes.end(), c.message_costs.begin(), [](const ordered_json& row) {
    return MessageCost{.send_s = number(row, "send_s", 0),
                       .receive_s = number(row, "receive_s", 0),
                       .background_s = number(row, "background_s", 0),
                       .burst_s = number(row, "burst_s", 0)};
  });
  double previous = 0;
  for (const ordered_json& row : list(p, "byte_costs"))
    c.byte_costs.push_back({.bit_per_s = previous = rate(row, "bit_per_s", previous),
                            .send_s = number(row, "send_s", 0),
                            .receive_s = number(row, "receive_s", 0)});
  if (c.byte_costs.empty()) throw std::invalid_argument("byte_costs is empty");
  previous = 0;
  for (const ordered_json& row : list(p, "token_buckets"))
    c.token_buckets.push_back({.up_to_bit_per_s = previous = rate(row, "up_to_bit_per_s", previous),
                               .bytes = number(row, "bytes", 0)});
  c.switch_s = number(p, "switch_s", 0);
  c.flop_per_s = number(p, "flop_per_s", 1);
  c.memory_byte_per_s = number(p, "memory_byte_per_s", 0);
  c.uncertainty = uncertainty_of(file);
  return c;
}

}  // namespace

double Calibration::burst_bytes(double bit_per_s) const {
  for (const TokenBucket& bucket : token_buckets)
    if (bit_per_s <= bucket.up_to_bit_per_s) return bucket.bytes;
  return 0;
}

ByteCost Calibration::byte_cost(double bit_per_s) const {
  const auto above = std::find_if(byte_costs.begin(), byte_costs.end(), [&](const ByteCost& cost) {
    return cost.bit_per_s >= bit_per_s;
  });
  if (above == byte_costs.begin()) return *above;
  if (above == byte_costs.end()) return byte_costs.back();
  const ByteCost& below = *(above - 1);
  const double part =
      std::log(bit_per_s / below.bit_per_s) / std::log(above->bit_per_s / below.bit_per_s);
  return {.bit_per_s = bit_per_s,
          .send_s = std::lerp(below.send_s, above->send_s, part),
          .receive_s = std::lerp(below.receive_s, above->receive_s, part)};
}

double uncertainty_of(const ordered_json& calibration_file) {
  double uncertainty = 0;
  if (calibration_file.contains("fits"))
    for (const ordered_json& fit : calibration_file["fits"])
      if (fit.is_object() && fit.contains("median_relative_error"))
        uncertainty = std::hypot(uncertainty, number(fit, "median_relative_error", 0));
  return uncertainty;
}

Calibration read_calibration(const std::string& path) {
  try {
    return from_json(parse_input("", read_input("", path)));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what());
  }
}

ordered_json to_json(const Calibration& c) {
  ordered_json lanes = ordered_json::array();
  for (const MessageCost& cost : c.message_costs)
    lanes.push_back({{"send_s", cost.send_s},
                     {"receive_s", cost.receive_s},
                     {"background_s", cost.background_s},
                     {"burst_s", cost.burst_s}});
  ordered_json costs = ordered_json::array();
  for (const ByteCost& cost : c.byte_costs)
    costs.push_back(
        {{"bit_per_s", cost.bit_per_s}, {"send_s", cost.send_s}, {"receive_s", cost.receive_s}});
  ordered_json buckets = ordered_json::array();
  for (const TokenBucket& bucket : c.token_buckets)
    buckets.push_back({{"up_to_bit_per_s", bucket.up_to_bit_per_s}, {"bytes", bucket.bytes}});
  return {{"cores", c.cores},
          {"one_machine", c.one_machine},
          {"pinned", c.pinned},
          {"latency_s", c.latency_s},
          {"payload_share", c.payload_share},
          {"acknowledgement_share", c.acknowledgement_share},
          {"rendezvous", c.rendezvous},
          {"send_buffer_bytes", c.send_buffer_bytes},
          {"queue_bytes", c.queue_bytes},
          {"message_costs", std::move(lanes)},
          {"byte_costs", std::move(costs)},
          {"token_buckets", std::move(buckets)},
          {"switch_s", c.switch_s},
          {"flop_per_s", c.flop_per_s},
          {"memory_byte_per_s", c.memory_byte_per_s}};
}

std::string calibration_file(const std::string& network_model) {
  constexpr std::string_view kPrefix = "calibrated:";
  return network_model.starts_with(kPrefix) ? network_model.substr(kPrefix.size()) : "";
}

}  // namespace gradwire
