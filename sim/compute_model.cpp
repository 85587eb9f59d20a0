#include "sim/compute_model.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace gradwire {

namespace {

void require(bool legal, const char* what, double value, const char* allowed) {
  if (!legal)
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(value) + " is not " +
                                allowed);
}

// Seconds are spread over the work of a plain pass; without any, mathematics is free.
double rate(const Work& work, double seconds) {
  return work.flops > 0 ? work.flops / seconds : std::numeric_limits<double>::infinity();
}

}  // namespace

ComputeModel::ComputeModel(const ComputeSpec& spec, const BatchWork& batch_work)
    : spec_(spec),
      forward_flop_per_s_(rate(batch_work.forward, spec.forward_s)),
      backward_flop_per_s_(rate(batch_work.backward, spec.backward_s)) {
  require(spec.device_flop_per_s > 0, "device_flop_per_s", spec.device_flop_per_s, "above 0");
  require(spec.device_memory_byte_per_s >= 0, "device_memory_byte_per_s",
          spec.device_memory_byte_per_s, "0 (unlimited) or more");
  require(spec.forward_s >= 0, "forward_s", spec.forward_s, "0 or more");
  require(spec.backward_s >= 0, "backward_s", spec.backward_s, "0 or more");
}

double ComputeModel::seconds(Phase phase, const Charge& charge) const {
  switch (spec_.mode) {
    case ComputeSpec::Mode::kMeasured:
      return charge.cpu_s;
    case ComputeSpec::Mode::kGiven:
      if (phase != Phase::kForward && phase != Phase::kBackward && spec_.device_chosen()) break;
      return charge.work.flops /
             (phase == Phase::kForward ? forward_flop_per_s_ : backward_flop_per_s_);
    case ComputeSpec::Mode::kFlops:
    case ComputeSpec::Mode::kCalibrated:
      break;
  }
  double work_s = charge.work.flops / spec_.device_flop_per_s;
  if (spec_.device_memory_byte_per_s > 0) {
    const double memory_s = charge.work.memory_bytes / spec_.device_memory_byte_per_s;
    work_s = charge.work.flops < 0 ? std::min(work_s, memory_s) : std::max(work_s, memory_s);
  }
  return std::max(0.0, charge.work.seconds + work_s);  // given times may come short of the flops
}

}  // namespace gradwire
