// Results as text: aligned columns, readable at 100 characters.
#pragma once

#include <string>
#include <vector>

#include "algorithms/report.h"

namespace gradwire {

/// Cells in columns two spaces apart: the first column to the left, the others to the right.
std::string align(const std::vector<std::vector<std::string>>& rows);

/// Results of a grid, grouped by all but the algorithm; `*` marks the fastest of a group.
std::string results_table(const std::vector<Result>& results);

}  // namespace gradwire
