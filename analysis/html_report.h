// A scaling report as one HTML file with its pictures inside: no script, no font, no other file.
#pragma once

#include <string>

#include "analysis/scaling_report.h"

namespace gradwire {

std::string scaling_html(const ScalingReport& report, const SweepResults& results);

}  // namespace gradwire
