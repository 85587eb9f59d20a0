// The one matrix type: row-major, batch in rows, as NumPy and PyTorch store it.
// Scalar is float; the library is built a second time in double (GRADWIRE_DOUBLE) for golden values
// and finite differences.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace gradwire {

#ifdef GRADWIRE_DOUBLE
using Scalar = double;
#else
using Scalar = float;
#endif

using Index = Eigen::Index;
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// One matrix per model parameter, in the order of Model::parameters(); vectors are (1, n).
using Gradients = std::vector<Matrix>;

/// What a piece of mathematics costs, for the compute model.
struct Work {
  double flops = 0;         ///< floating-point operations (a multiply-add is two)
  double memory_bytes = 0;  ///< bytes read and written where that, not arithmetic, is the limit
  double seconds = 0;       ///< as a layer table gives them, on top of the two

  Work& operator+=(const Work& other) {
    flops += other.flops;
    memory_bytes += other.memory_bytes;
    seconds += other.seconds;
    return *this;
  }
  friend Work operator+(Work a, const Work& b) { return a += b; }
};

/// (m, k) times (k, n).
inline Work gemm_work(Index m, Index k, Index n) {
  const auto dm = static_cast<double>(m), dk = static_cast<double>(k), dn = static_cast<double>(n);
  return {.flops = 2 * dm * dk * dn,
          .memory_bytes = sizeof(Scalar) * (dm * dk + dk * dn + dm * dn)};
}

/// A pass over n scalars: `flops_each` operations and `accesses_each` reads or writes per scalar.
inline Work pass_work(Index n, double flops_each, double accesses_each) {
  const auto dn = static_cast<double>(n);
  return {.flops = flops_each * dn, .memory_bytes = sizeof(Scalar) * accesses_each * dn};
}

}  // namespace gradwire
