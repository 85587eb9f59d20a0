// Arithmetic rates that devices achieve in training, not their peaks.
#pragma once

#include <string>
#include <vector>

namespace gradwire {

struct Device {
  std::string name;
  double flop_per_s = 0;
  std::string summary;
};
const std::vector<Device>& devices();

/// Throws std::invalid_argument naming the known devices.
const Device& find_device(const std::string& name);

}  // namespace gradwire
