// What `run` and `real` do with a finished study: warnings, the report, the table.
#pragma once

#include <string>
#include <vector>

#include "analysis/command_line.h"
#include "analysis/study.h"

namespace gradwire {

/// The flags that publish() and check_publishable() look at.
std::vector<Flag> publishing_flags();

/// Throws std::invalid_argument before the work is done if the report could not be written after
/// it; `here`: by this process.
void check_publishable(const Arguments& arguments, bool here = true);

Flag trace_flag();

/// Whether a timeline is wanted.  Throws UsageError unless it is of one scenario and has a file of
/// its own, std::invalid_argument if that could not be written (`here`).
bool check_trace(const Arguments& arguments, std::size_t scenarios, bool here = true);

void publish(const Study& study, const Grid& grid, const Arguments& arguments,
             const std::string& command_line, const Streams& streams);

}  // namespace gradwire
