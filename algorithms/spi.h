// Structured power iterations (Baker et al., arXiv 2102.09631): the leading components of a weight
// gradient G = A^T D from its factors A (n, in) and D (n, out), without forming G where n is small.
//
// Component k starts from a given vector x of length out and repeats x <- (G^T G) x, less the
// earlier components, normalised, `iterations` times; then b = x, sigma = |G b|, c = G b / sigma,
// and G ~ sum_k c_k sigma_k b_k^T.  A pure kernel: it charges nothing, but says what it spent.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/matrix.h"

namespace gradwire {

/// How earlier components are kept out, and when it stops before `rank` of them.
///   kRobust   Every iterate is orthogonalised against them.  The result is a projection of G: its
///             error never grows with the rank, however few iterations.  Stops where the rank is
///             exhausted (|G^T G x| at rounding level) and where sigma_k <= theta sigma_1.
///   kAuthors  The authors' Hotelling deflation, sigma_l^2 b_l b_l^T subtracted from G^T G, which
///             needs about 10 iterations to be of use.  From the third component on it stops where
///             |b_k - b_{k-1}| < tolerance, dropping both; of what it then has stored it drops the
///             last `drop_last` (dad-torch 1, edad 2).
enum class SpiMode : std::uint8_t { kRobust, kAuthors };

struct SpiOptions {
  SpiMode mode = SpiMode::kRobust;
  Index rank = 4;  ///< most components, at least 1
  int iterations = 3;
  double theta = 1e-6;   ///< robust only, relative to the first sigma
  double tolerance = 0;  ///< authors only; 0: never stops there
  Index drop_last = 0;   ///< authors only, below rank
};

enum class SpiStop : std::uint8_t { kMaxRank, kNull, kTheta, kTolerance, kNotFinite };

/// r rows that stand for the n rows of a layer: G ~ activation^T delta.
struct Factors {
  Matrix activation;  ///< (r, in)
  Matrix delta;       ///< (r, out)
};

struct SpiResult {
  Factors factors;            ///< activation: rows c_k; delta: rows sigma_k b_k
  std::vector<double> sigma;  ///< one per row
  SpiStop stop = SpiStop::kMaxRank;
  Work work;
  Index rank() const { return factors.delta.rows(); }  ///< the effective rank, perhaps 0
};

/// Fills `start` (1, out) for component k = 0, 1, ...
using SpiStart = std::function<void(Index component, Matrix& start)>;

/// At most min(rank, n, in, out) components.  A zero factor (norm below 1e-19 in float) gives none;
/// neither does one with a NaN or an infinity (kNotFinite): the caller sees the divergence in the
/// loss that the factors come from.  Depends on no address: equal inputs give equal bits.
SpiResult structured_power_iterations(const Matrix& activation, const Matrix& delta,
                                      const SpiOptions& options, const SpiStart& start);

/// The work of finding as many components as there can be, and zero factors of that rank; reads no
/// values.
SpiResult spi_of_full_rank(const Matrix& activation, const Matrix& delta,
                           const SpiOptions& options);

}  // namespace gradwire
