// What one element of a platform file may say by itself: SimGrid 3.32's simgrid.dtd less what
// gradwire does not simulate, and quantities that SimGrid would misread or crash on.
#pragma once

#include <string>

#include "sim/platform_tags.h"

namespace gradwire {

/// Throws std::invalid_argument "<link id="l"> bandwidth="fast" is not ..., ..." for an unknown
/// element or attribute, a missing attribute, a value that is none of a choice's, a quantity out of
/// range or without its unit.  `tag` is no closing tag.
void check_element(const Tag& tag);

/// The hosts that a cluster's `radical` asks for: "0-3,7" -> 5.  Throws as above, also for more
/// than `most`.
long count_hosts(const Tag& cluster, long most);

/// `number` to four digits with the prefix that keeps it at 1 or above: 1e9 -> "1G", 5e-5 -> "50u".
std::string with_prefix(double number);

}  // namespace gradwire
