// What `gradwire calibrate` measured of a machine and its transport, as simulations use it
// (--network-model calibrated:FILE).  The file has its samples and fits beside these parameters.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gradwire {

/// Processor time of a message beside that of its bytes.
struct MessageCost {
  double send_s = 0;  ///< in its way, at its sender
  double receive_s = 0;
  double background_s = 0;  ///< and what each end spends meanwhile or afterwards
  double burst_s = 0;       ///< before the first one after mathematics
};

/// Processor time per byte of payload at a rate: bytes of a slow stream come in smaller pieces.
struct ByteCost {
  double bit_per_s = 0;
  double send_s = 0;
  double receive_s = 0;
};

/// A token bucket: a port of at most this rate that was idle passes this much at once.
struct TokenBucket {
  double up_to_bit_per_s = 0;
  double bytes = 0;
};

struct Calibration {
  int cores = 1;                     ///< of a machine
  bool one_machine = false;          ///< all workers compute on one machine, else each host is one
  bool pinned = false;               ///< there worker w stays on core w mod cores
  double latency_s = 0;              ///< of a message beyond the platform's and its processor time
  double payload_share = 1;          ///< of a link's rate, what payload gets; the rest are headers
  double acknowledgement_share = 0;  ///< bytes that go back per byte of payload
  bool rendezvous = false;  ///< payload waits for the receiver's note, which travels as payload
  double send_buffer_bytes = 0;  ///< what the system takes of a message before it has left
  double queue_bytes = 0;  ///< of one connection before those of another, in a port both share
  /// By lane: the main one's thread changes its scheduling for every call, the second one's not.
  std::array<MessageCost, 2> message_costs;
  std::vector<ByteCost> byte_costs;        ///< by rising rate, at least one
  std::vector<TokenBucket> token_buckets;  ///< by rising rate
  /// Above 0: routes with a latency lead through a switch that takes this time for each message,
  /// and that of a frame at the port's rate, and passes nothing at once (real/delay_switch.h).
  double switch_s = 0;
  double flop_per_s = 50e9;      ///< of one core, matrix products
  double memory_byte_per_s = 0;  ///< of one core; 0: unlimited
  double uncertainty = 0;        ///< relative, of a predicted time; from the fits

  double burst_bytes(double bit_per_s) const;
  /// Between measured rates, in proportion to the logarithm of the rate.
  ByteCost byte_cost(double bit_per_s) const;
};

/// Throws std::invalid_argument naming the file and the key that is missing or makes no sense.
Calibration read_calibration(const std::string& path);

/// The root of the sum of the squares of the fits' median relative errors.
double uncertainty_of(const nlohmann::ordered_json& calibration_file);

/// The file's "parameters".
nlohmann::ordered_json to_json(const Calibration& calibration);

/// Goes up when a file of before would mean something else.
inline constexpr int kCalibrationVersion = 3;
inline constexpr const char* kCalibrationFormat = "gradwire calibration";

/// The file that a network model `calibrated:FILE` names; empty for other models.
std::string calibration_file(const std::string& network_model);

}  // namespace gradwire
