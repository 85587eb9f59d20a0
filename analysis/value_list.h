// What a scenario file may give for a field: a value, a list, a range ({"from": "10Mbps",
// "to": "100Gbps", "points": 9, "spacing": "log"}), or algorithms as objects whose options are
// lists ({"name": "rank-dad", "rank": [2, 4, 8]}).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/fields.h"

namespace gradwire {

/// Every value as the text that Field::set reads.  Throws std::invalid_argument naming the key,
/// what is wrong and what is allowed; an empty list gives no values.
std::vector<std::string> expand_values(const Field& field, const nlohmann::ordered_json& json);

}  // namespace gradwire
