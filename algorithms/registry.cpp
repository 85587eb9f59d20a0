// Every training algorithm: one row each, defined in the algorithm's own file.
#include <algorithm>
#include <stdexcept>

#include "algorithms/algorithm.h"

namespace gradwire {

AlgorithmRow dsgd_row();
AlgorithmRow dad_row();
AlgorithmRow edad_row();
AlgorithmRow rank_dad_row();
AlgorithmRow top_columns_row();
AlgorithmRow powersgd_row();
AlgorithmRow top_k_row();
AlgorithmRow random_k_row();
AlgorithmRow random_block_row();
AlgorithmRow threshold_row();
AlgorithmRow gaussian_k_row();
AlgorithmRow gtop_k_row();
AlgorithmRow dgc_row();
AlgorithmRow micro_row();
AlgorithmRow exdyna_row();
AlgorithmRow deft_row();
AlgorithmRow lags_row();
AlgorithmRow omgs_row();
AlgorithmRow d_psgd_row();
AlgorithmRow sgp_row();
AlgorithmRow crossover_row();

const std::vector<AlgorithmRow>& algorithm_registry() {
  static const std::vector<AlgorithmRow> rows{
      dsgd_row(),       dad_row(),    edad_row(),     rank_dad_row(),     top_columns_row(),
      powersgd_row(),   top_k_row(),  random_k_row(), random_block_row(), threshold_row(),
      gaussian_k_row(), gtop_k_row(), dgc_row(),      micro_row(),        exdyna_row(),
      deft_row(),       lags_row(),   omgs_row(),     d_psgd_row(),       sgp_row(),
      crossover_row(),
  };
  return rows;
}

const AlgorithmRow& find_algorithm(const std::string& name) {
  const auto& rows = algorithm_registry();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.name == name; });
  if (row != rows.end()) return *row;
  std::string known;
  for (const AlgorithmRow& r : rows) known += (known.empty() ? "" : ", ") + r.name;
  throw std::invalid_argument("unknown algorithm " + name + "; known: " + known);
}

std::unique_ptr<Algorithm> make_algorithm(const AlgorithmSpec& spec) {
  const AlgorithmRow& row = find_algorithm(spec.name);
  return row.make(Options("algorithm " + row.name, row.options, spec.options));
}

}  // namespace gradwire
