// What a calibration measures: single messages and streams over a Communicator, and how fast this
// machine computes.  Raw samples only; analysis/calibrate.cpp draws the conclusions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/communicator.h"

namespace gradwire {

/// Messages of one size to and fro between workers 0 and 1, receives posted before.
struct PingPong {
  double bytes = 0;
  std::vector<double> one_way_s;  ///< half of each round trip
  double cpu_s = 0;               ///< of one message, both ends together, mean
};

/// Messages of one size in a row, several under way at once.
struct Stream {
  double bytes = 0;              ///< of a message
  double goodput_bit_per_s = 0;  ///< of payload from one worker to another, mean over the pairs
  double send_cpu_s = 0;         ///< processor time of one message at its sender
  double receive_cpu_s = 0;      ///< and at its receiver
};
/// Worker 0 to 1; these two to each other; worker 0 to all others; all others to worker 0.
enum class StreamPattern : std::uint8_t { kOneWay, kBothWays, kFanOut, kFanIn };

/// Each is called by all workers of the communicator; the result is worker 0's.
PingPong measure_ping_pong(Communicator& comm, std::size_t bytes, int round_trips);
/// Processor time beside the mathematics of one burst of short messages, both ends together, where
/// all workers compute and pass so many round a ring in turns: between mathematics on the main
/// lane, meanwhile on the second.
double measure_burst(Communicator& comm, bool second_lane, int messages);
Stream measure_stream(Communicator& comm, StreamPattern pattern, std::size_t bytes, int messages);
/// From the sending of a short message by worker 0 to its arrival at worker 1, whose receive is
/// posted `early_s` before that (0: at the same moment); both on one clock.
std::vector<double> measure_arrival(Communicator& comm, double early_s, int times);
/// How long worker 0 waits until it may go on with a message for worker 1.
double measure_send_wait(Communicator& comm, std::size_t bytes);
/// How much longer short messages to and fro between workers 0 and 2 take while worker 0 sends
/// worker 1 so many of 256 KiB, median; one for each of those.
double measure_queue(Communicator& comm, int messages);

/// Rates of one core while all cores do the same.
struct ComputeRates {
  std::vector<double> product_flop_per_s;    ///< of a batch's matrix products, per repetition
  std::vector<double> memory_byte_per_s;     ///< of y += a x over arrays beyond the caches
  std::vector<double> iteration_flop_per_s;  ///< of structured power iterations
};
ComputeRates measure_compute(int cores);

}  // namespace gradwire
