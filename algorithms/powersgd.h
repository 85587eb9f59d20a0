// PowerSGD's mathematics on matrices: what algorithms/powersgd.cpp does to each weight gradient.
// A gradient M is (n, m); P (n, r) and Q (m, r) are its factors.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algorithms/collectives.h"
#include "algorithms/error_feedback.h"

namespace gradwire {

/// Gram-Schmidt, each column twice ("twice is enough"), in place: the columns of p (n, r) become
/// orthonormal, each divided by its norm + epsilon.  A column that depends on earlier ones, up to
/// rounding, becomes some further orthonormal direction, or zero where not even that is left:
/// either way P P^T stays a projection.
void orthogonalize(Matrix& p, double epsilon);
Work orthogonalize_work(Index n, Index r);

/// What a worker keeps of one gradient.
struct PowerSgdState {
  Matrix q;  ///< (m, r), equal on all workers; in: the start, out: the next step's warm start
  std::optional<ErrorFeedback> error = {};  ///< (n, m) by rows; without: none is kept
};

/// Replaces each worker's gradients by a low-rank approximation of the workers' mean (Vogels et
/// al. 2019, algorithms 1 and 2): M = gradient + error, P = orthogonalized sum of M Q, Q = mean of
/// M^T P, gradient = P Q^T, error = M - P Q^T.  Two all-reduces for all gradients together.
void power_sgd(Communicator& comm, std::span<Matrix* const> gradients,
               std::span<PowerSgdState* const> states, AllReduce all_reduce, double epsilon);

/// The rank-dAD authors' baseline: every worker orthogonalizes its own P and forms its own Q from
/// it; the gradient becomes mean(P) mean(Q)^T, which is no approximation of the mean gradient
/// unless the P happen to agree.  Two blocking all-gathers per gradient, no error feedback; the
/// warm start is the worker's own Q.
void authors_power_sgd(Communicator& comm, std::span<Matrix* const> gradients,
                       std::span<PowerSgdState* const> states, double epsilon);

/// Whether rank r makes an (n, m) gradient enough smaller: min(n, m, r) (n + m) rate < n m, never
/// for a vector.
bool worth_compressing(Index n, Index m, Index r, double min_compression_rate);

}  // namespace gradwire
