// Error feedback (Seide et al. 2014; Stich et al. 2018): what a worker has not sent stays in a
// memory m and joins the next gradient: a = m + f g; send s = C(a); m = a - s.  With f the learning
// rate of the step ("inside") the memory holds pending updates; with f = 1 ("outside") pending
// gradients.  The two are the same as long as the learning rate is.
//
// Whatever sends entries of a unchanged telescopes exactly: each entry of a is either sent or kept,
// bit for bit, so sum of sent + m = sum of f g up to the rounding of the additions m + f g alone.
#pragma once

#include <span>
#include <vector>

#include "algorithms/sparse_codec.h"

namespace gradwire {

class ErrorFeedback {
 public:
  /// m <- m + factor * addend, from coordinate `begin` on; the memory is sized by its first use.
  void add(std::span<const Scalar> addend, Scalar factor, std::size_t begin = 0);

  /// m <- m + gradient; gradient <- m: what is to be compressed and sent whole.
  void compensate(std::span<Scalar> gradient);

  /// Gives entries back.
  void add(const SparseList& entries);

  /// m <- factor * m + addend (momentum).
  void decay_and_add(Scalar factor, std::span<const Scalar> addend);

  /// These entries have been sent.  With the union of all workers' selections, where each worker
  /// contributes its own entries at all of it ("union-zeroing"), the telescope is exact as well.
  void clear(const Coordinates& sent);

  /// Everything has been sent, or is to be forgotten.
  void clear();

  /// A compressed image of the memory has been sent (PowerSGD, signs).
  void subtract(std::span<const Scalar> sent);

  std::span<const Scalar> values() const { return memory_; }
  void resize(std::size_t d) { memory_.resize(d); }
  double bytes() const { return static_cast<double>(memory_.size() * sizeof(Scalar)); }

  /// Euclidean norm, a diagnostic.
  double norm() const;

 private:
  std::vector<Scalar> memory_;
};

}  // namespace gradwire
