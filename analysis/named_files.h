// Files that a command line names must not overwrite each other.
#pragma once

#include <string>

#include "analysis/command_line.h"

namespace gradwire {

/// Throws UsageError naming both options where a file would be written that is also read, or
/// written twice.  Files are read by positional words, --scenario, --merge, --calibration and what
/// `grid` says of platform, network model, model and data set.  `output`: where --output goes if it
/// is not given.
void check_files_differ(const Arguments& arguments, const Grid& grid = {},
                        const std::string& output = "");

}  // namespace gradwire
