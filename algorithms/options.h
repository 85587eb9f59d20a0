// An algorithm by name and options.
#pragma once

#include "models/options.h"

namespace gradwire {

using AlgorithmSpec = Spec;

inline AlgorithmSpec parse_algorithm_spec(std::string_view text) {
  return parse_spec("algorithm", text);
}

}  // namespace gradwire
