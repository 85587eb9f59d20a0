// One point to predict or to run: plain values, every unit in its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/options.h"
#include "models/model.h"
#include "models/optimizer.h"

namespace gradwire {

/// How mathematics becomes simulated seconds (sim/compute_model.h).
struct ComputeSpec {
  enum class Mode : std::uint8_t {
    kFlops,     ///< flops over device_flop_per_s, or memory_bytes over device_memory_byte_per_s if
                ///< longer
    kMeasured,  ///< the processor time that the mathematics took here
    kCalibrated,  ///< as kFlops, at the rates of the network model's calibration
    kGiven,       ///< forward_s and backward_s per batch; the rest as kFlops where a device was
                  ///< chosen, otherwise at the backward pass's flop rate
  };
  Mode mode = Mode::kFlops;
  double device_flop_per_s = 50e9;
  std::string device = "cpu-core";      ///< whose rate that is (algorithms/devices.h), unless
  bool device_rate_given = false;       ///< it was given
  double device_memory_byte_per_s = 0;  ///< 0: unlimited
  double forward_s = 0;
  double backward_s = 0;

  bool device_chosen() const { return device_rate_given || device != ComputeSpec{}.device; }
};

/// Plain forward and backward passes of one worker's batch: what ComputeSpec::kGiven spreads its
/// seconds over.
struct BatchWork {
  Work forward;
  Work backward;
};

struct Scenario {
  std::string platform;     ///< XML file, or the name of one in platforms/
  std::string hosts = "*";  ///< glob over host names: candidates for workers
  int workers = 2;
  int workers_per_host = 1;
  std::optional<double> bandwidth_bit_per_s;  ///< overrides the worker-facing links
  std::optional<double> latency_s;            ///< overrides the worker-facing links
  std::string network_model = "exact";        ///< `exact`, `calibrated:FILE` or `simgrid:NAME`
  bool exact_replay = false;  ///< replay call by call through SimGrid (sim/simulate.h)
  ComputeSpec compute;

  AlgorithmSpec algorithm = {.name = "dsgd", .options = {}};
  ModelSpec model;
  std::string dataset = "fashion-mnist";
  Fold fold;
  DataSplit split = DataSplit::kRandom;
  OptimizerSpec optimizer;
  Index batch_size = 64;  ///< per worker
  std::int64_t batches = 3;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 0;  ///< batches between evaluations on the test part; 0: never
  bool gradient_error = false;      ///< compare every applied gradient with the exact mean
};

}  // namespace gradwire
