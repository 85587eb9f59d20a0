// Structured power iterations: the leading singular triplets of a weight gradient G = A^T D without
// its singular value decomposition, and without forming G where that is dearer (rank-dAD, Baker et
// al., arXiv 2102.09631; authors' loop: bbradt/catalyst-dad, trendscenter/dad-torch).
#pragma once

#include <functional>
#include <vector>

#include "models/matrix.h"

namespace gradwire {

/// Low-rank factors of a gradient (in, out) ~ right^T left, a component per row.
struct Factors {
  Matrix left;   ///< (rank, out): sigma_k b_k
  Matrix right;  ///< (rank, in): c_k, of unit length
  Index rank() const { return left.rows(); }
};

struct SpiOptions {
  bool authors = false;  ///< their loop: Hotelling deflation, no re-orthogonalisation
  Index rank = 4;        ///< most components
  int iterations = 3;    ///< J, per component
  double theta = 1e-6;   ///< robust: stop when sigma_k <= theta sigma_1
  double tolerance = 0;  ///< authors: stop when b_k is that close to b_(k-1)
  Index drop_last = 0;   ///< authors: components dropped from the end (dad-torch 1, edad 2)
};

/// Fills x (1, out) with the start vector of component k; the same on every worker.
using SpiStart = std::function<void(Index k, Matrix& x)>;

struct SpiResult {
  Factors factors;
  std::vector<double> sigma;
  Work work;  ///< what it cost
};

/// Factors of activation^T delta; activation (rows, in), delta (rows, out), any number of rows.
///
/// Robust (default): every iterate is orthogonalised against the earlier components, so that the
/// result is the projection of G on span(b): its error falls with the rank and never exceeds |G|,
/// for any J.  Ends early, down to rank 0, where nothing but rounding is left or sigma falls to
/// theta; a NaN or infinity in the input ends it, too.
///
/// Authors': as their code does, for reproduction.  It double-counts what has not converged (error
/// above 1 at J=1) and lets in noise once the rank is exhausted.
SpiResult structured_power_iterations(const Matrix& activation, const Matrix& delta,
                                      const SpiOptions& options, const SpiStart& start);

}  // namespace gradwire
