// The `gradwire` command line as a function: parses, dispatches, maps exceptions to exit statuses.
#pragma once

#include <string>
#include <vector>

#include "analysis/command_line.h"

namespace gradwire {

/// Runs one command line, without the program's name.  Never throws: an error is one line
/// "gradwire: ..." on streams.err.  Returns 0 (ok), 1 (the run failed), 2 (usage) or 3 (bad input).
int run_command_line(const std::vector<std::string>& words, const Streams& streams);

}  // namespace gradwire
