// A scaling report as JSON (schema: `gradwire list schema scaling`), as CSV and as a table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/scaling_report.h"

namespace gradwire {

nlohmann::ordered_json scaling_json(const ScalingReport& report, const SweepResults& results);

/// A line per point; undefined figures are empty.
std::string scaling_csv(const ScalingReport& report);

/// A line per evaluation on the test part (of the first worker's model).
std::string learning_csv(const ScalingReport& report);

/// Points, best choices, crossovers and times to targets, readable at 120 characters.
std::string scaling_table(const ScalingReport& report);

/// "no compression" or what the best choice gains.
std::string verdict(const ScalingReport& report, const BestChoice& best);

/// One sentence: who overtakes whom at which bandwidth.
std::string describe(const ScalingReport& report, const Crossover& crossover);

/// The schema's text: report.schema.json changed by scaling.schema.json, a merge patch (RFC 7396).
std::string scaling_schema();

}  // namespace gradwire
