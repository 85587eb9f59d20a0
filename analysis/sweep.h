// A sweep: a grid of scenarios from a file in which every field may be a list or a range, with weak
// scaling (batch-size, per worker) or strong scaling (global-batch-size, shared out).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/fields.h"

namespace gradwire {

struct Sweep {
  Grid grid{Grid::Lists::kEverywhere};
  std::optional<Index> global_batch_size;  ///< strong scaling; batch-size is not given then
  bool crossovers = true;                  ///< look for them between the grid's bandwidths

  std::uint64_t size() const { return grid.size(); }
  /// Throws std::invalid_argument where the global batch cannot be shared out equally.
  Scenario point(std::uint64_t index) const;
  /// What a point's speed-up is measured against: one worker, no network, plain dSGD, the batch per
  /// worker (weak scaling) or the global batch (strong scaling).
  Scenario reference(const Scenario& point) const;

  /// Every key of the sweep, defaults included: a scenario file again.
  nlohmann::ordered_json echo() const;
};

/// `fields`: what the command line sets; it overrides the file.  Throws std::invalid_argument
/// naming the file, the key, and the nearest known key of an unknown one.
Sweep load_sweep(const std::string& path, const Grid& fields);

/// From an echo.
Sweep parse_sweep(const nlohmann::ordered_json& echo);

/// What must not differ between runs that add to one sweep: the echo, the text of every platform
/// file, the versions of gradwire and SimGrid.  The last member, hash, covers the others.
nlohmann::ordered_json sweep_identity(const Sweep& sweep);

}  // namespace gradwire
