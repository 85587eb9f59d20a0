// What a charge of mathematics costs in simulated seconds.
#pragma once

#include "algorithms/communicator.h"
#include "algorithms/scenario.h"

namespace gradwire {

class ComputeModel {
 public:
  /// Throws std::invalid_argument for rates not above 0 and negative times.
  ComputeModel(const ComputeSpec& spec, const BatchWork& batch_work);
  double seconds(Phase phase, const Charge& charge) const;

 private:
  ComputeSpec spec_;
  double forward_flop_per_s_;
  double backward_flop_per_s_;
};

}  // namespace gradwire
