#include "sim/compute_model.h"

#include <algorithm>

namespace gradwire {

ComputeModel::ComputeModel(const ComputeSpec& spec, const BatchWork& batch_work) : spec_(spec) {
  if (spec.mode != ComputeSpec::Mode::kGiven) return;
  forward_flop_per_s_ = batch_work.forward.flops / spec.forward_s;
  backward_flop_per_s_ = batch_work.backward.flops / spec.backward_s;
}

double ComputeModel::seconds(Phase phase, const Charge& charge) const {
  switch (spec_.mode) {
    case ComputeSpec::Mode::kMeasured:
      return charge.cpu_s;
    case ComputeSpec::Mode::kGiven:
      return charge.work.flops /
             (phase == Phase::kForward ? forward_flop_per_s_ : backward_flop_per_s_);
    case ComputeSpec::Mode::kFlops:
      break;
  }
  const double arithmetic_s = charge.work.flops / spec_.device_flop_per_s;
  if (spec_.device_memory_byte_per_s <= 0) return arithmetic_s;
  return std::max(arithmetic_s, charge.work.memory_bytes / spec_.device_memory_byte_per_s);
}

}  // namespace gradwire
