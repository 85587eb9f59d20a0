// What the benchmarks of kernels share.
#pragma once

#include "models/model.h"
#include "models/random.h"

namespace gradwire {

inline Matrix normal_matrix(Index rows, Index cols, std::uint64_t id) {
  Matrix m(rows, cols);
  RandomStream(1, Purpose::kSyntheticTensor, id).fill_normal(m);
  return m;
}

/// Making a model is what sets OpenBLAS to one thread.
inline void one_blas_thread() { make_model({.name = "mlp:1-1"}, {.features = 1, .classes = 1}, 1); }

}  // namespace gradwire
