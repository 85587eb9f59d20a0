// Golden values (tests/golden/golden.json; its schema is inside): float64, made by an independent
// NumPy implementation and checked against PyTorch autograd and torch's powerSGD_hook.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "models/matrix.h"

namespace gradwire {

inline const nlohmann::json& golden() {
  static const nlohmann::json values =
      nlohmann::json::parse(std::ifstream(GRADWIRE_SOURCE_DIR "/tests/golden/golden.json"));
  return values;
}

/// A list of rows, or one row.
inline Matrix golden_matrix(const nlohmann::json& rows) {
  if (rows.empty()) return {};
  if (!rows.front().is_array()) {
    Matrix m(1, static_cast<Index>(rows.size()));
    for (Index j = 0; j < m.cols(); ++j) m(0, j) = rows[static_cast<std::size_t>(j)].get<Scalar>();
    return m;
  }
  Matrix m(static_cast<Index>(rows.size()), static_cast<Index>(rows.front().size()));
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j)
      m(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)].get<Scalar>();
  return m;
}

/// Largest absolute difference.
inline double max_difference(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return INFINITY;
  return a.size() == 0 ? 0 : static_cast<double>((a - b).cwiseAbs().maxCoeff());
}

}  // namespace gradwire
