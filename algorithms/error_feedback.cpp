#include "algorithms/error_feedback.h"

#include <algorithm>
#include <stdexcept>

namespace gradwire {

void ErrorFeedback::add(std::span<const Scalar> addend, Scalar factor, std::size_t begin) {
  if (memory_.empty()) memory_.resize(begin + addend.size());
  if (begin + addend.size() > memory_.size())
    throw std::logic_error("error feedback: the gradient has grown");
  for (std::size_t i = 0; i < addend.size(); ++i) memory_[begin + i] += factor * addend[i];
}

void ErrorFeedback::compensate(std::span<Scalar> gradient) {
  if (memory_.empty()) memory_.resize(gradient.size());
  if (gradient.size() != memory_.size())
    throw std::logic_error("error feedback: the gradient has changed its size");
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = memory_[i] += gradient[i];
}

void ErrorFeedback::add(const SparseList& entries) {
  for (std::size_t i = 0; i < entries.indices.size(); ++i)
    memory_[entries.indices[i]] += entries.values[i];
}

void ErrorFeedback::decay_and_add(Scalar factor, std::span<const Scalar> addend) {
  if (memory_.empty()) memory_.resize(addend.size());
  for (std::size_t i = 0; i < addend.size(); ++i) memory_[i] = factor * memory_[i] + addend[i];
}

void ErrorFeedback::clear(const Coordinates& sent) {
  for (const std::uint32_t i : sent) memory_[i] = 0;
}

void ErrorFeedback::clear() { std::fill(memory_.begin(), memory_.end(), Scalar{0}); }

void ErrorFeedback::subtract(std::span<const Scalar> sent) {
  for (std::size_t i = 0; i < sent.size(); ++i) memory_[i] -= sent[i];
}

double ErrorFeedback::norm() const { return gradwire::norm(memory_); }

}  // namespace gradwire
