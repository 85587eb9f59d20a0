// The JSON report of a study (schema: analysis/report.schema.json): SI base units, the unit in each
// key; undefined numbers are null with a reason, never NaN.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/fields.h"
#include "analysis/study.h"

namespace gradwire {

struct ReportOptions {
  std::string command_line = {};
  bool wall_clock = false;  ///< adds the one block that differs from run to run
};
nlohmann::ordered_json report_json(const Study& study, const Grid& grid,
                                   const ReportOptions& options);

nlohmann::ordered_json dataset_json(const DatasetInfo& dataset);
nlohmann::ordered_json model_json(const ModelInfo& model);
/// The links, routes and warnings of a platform.
nlohmann::ordered_json routes_json(const PlatformInfo& platform);
/// One result as the reports have it, with every constant of its network.
nlohmann::ordered_json result_json(const Result& result);

/// Sixteen hexadecimal digits.
std::string hex(std::uint64_t value);

/// Indented, lists of plain values on one line, a newline at the end.
std::string dump(const nlohmann::ordered_json& json);

/// gradwire, SimGrid, Eigen, Boost, nlohmann-json and the compiler.
nlohmann::ordered_json versions();

/// The text of analysis/report.schema.json.
const std::string& report_schema();

/// The first batch whose loss is not finite, or -1.
std::int64_t diverged_at(const Result& result);

}  // namespace gradwire
