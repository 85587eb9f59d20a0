// Reports against their published schemas.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace gradwire {

/// What a JSON schema says against a document; empty if nothing.
inline std::string violations(const std::string& schema_text, const nlohmann::json& document) {
  valijson::Schema schema;
  const nlohmann::json text = nlohmann::json::parse(schema_text);
  valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  valijson::ValidationResults results;
  valijson::Validator().validate(schema, valijson::adapters::NlohmannJsonAdapter(document),
                                 &results);
  std::string found;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    for (const std::string& place : error.context) found += place;
    found.append(": ").append(error.description).append("\n");
  }
  return found;
}

}  // namespace gradwire
