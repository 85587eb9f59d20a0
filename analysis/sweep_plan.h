// What a sweep has to compute and in which order: points that share their mathematics together, and
// the groups whose algorithms are compared with each other together.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/sweep.h"

namespace gradwire {

/// Points that one rehearsal serves.
struct SweepGroup {
  std::vector<std::uint64_t> points;
};

/// Two algorithms over the grid's bandwidths, all else being equal.
struct SweepPair {
  std::array<std::size_t, 2> groups{};                     ///< indices into the family
  std::array<std::vector<std::uint64_t>, 2> by_bandwidth;  ///< points, slowest network first
  /// What it is called in a sweep's file.
  std::pair<std::uint64_t, std::uint64_t> id() const {
    return {by_bandwidth[0].front(), by_bandwidth[1].front()};
  }
};

/// Groups that differ in nothing but the algorithm.
struct SweepFamily {
  std::vector<SweepGroup> groups;
  std::vector<SweepPair> pairs;
};

struct SweepPlan {
  explicit SweepPlan(const Sweep& sweep);

  /// Points of the grid, then the references.
  Scenario scenario(std::uint64_t index) const;
  std::uint64_t size() const { return reference_of.size() + references.size(); }

  Sweep sweep;
  std::vector<SweepFamily> families;
  std::vector<Scenario> references;         ///< single workers; indices from sweep.size() on
  std::vector<std::uint64_t> reference_of;  ///< by point of the grid
};

}  // namespace gradwire
