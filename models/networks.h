// The networks that make_model() knows, and their registry rows.  A new network is one file that
// defines its row, and the row's name in model.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"

namespace gradwire {

struct NetworkRow {
  std::string name;
  std::string summary;  ///< one line
  std::vector<OptionSpec> options;
  std::unique_ptr<Model> (*make)(const Options& options, const ModelSpec& spec,
                                 const DataShape& shape, std::uint64_t seed) = nullptr;
};

NetworkRow gru_row();
NetworkRow transformer_row();
NetworkRow vit_row();

/// An MLP of widths joined by '-': inputs, hidden layers, classes.
std::unique_ptr<Model> make_mlp(const std::string& widths, const ModelSpec& spec,
                                const DataShape& shape, std::uint64_t seed);

/// Widths joined by '-'.  Throws std::invalid_argument that begins with `subject`.
std::vector<Index> parse_widths(const std::string& subject, const std::string& text);

/// Throws std::invalid_argument where a network has more than 2^28 parameters (1 GiB in float).
void check_parameter_count(const std::string& name, double parameters);

}  // namespace gradwire
