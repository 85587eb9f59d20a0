// Recordings of the command line: what `run --record` writes and `replay` reads
// (algorithms/recording_file.h), and their export for SimGrid's SMPI.
#pragma once

#include <string>

#include "algorithms/recording_file.h"
#include "analysis/study.h"

namespace gradwire {

/// Throws std::invalid_argument unless one recording can serve all scenarios: the same mathematics,
/// of an algorithm whose numbers do not depend on time.
void check_recordable(const std::vector<Scenario>& scenarios);

/// The file of a study's rehearsal: the scenario's fields, data set and model as in its report.
RecordingFile recording_of(const Study& study, const Rehearsal& rehearsal);

/// One trace per worker in SimGrid's time-independent format, and `ti.list`, which names them for
/// smpirun: computation in flops, messages with a tag each.  Throws std::invalid_argument for
/// recordings that use the second lane, which the format has no word for.
void export_time_independent(const Recording& recording, const std::string& folder);

}  // namespace gradwire
