#include "algorithms/error_feedback.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace gradwire;

namespace {

// Gradients of small integers: float sums of them are exact.
std::vector<Scalar> integers(std::size_t d, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::kSyntheticTensor);
  std::vector<Scalar> values(d);
  for (Scalar& x : values) x = static_cast<Scalar>(stream.below(201)) - 100;
  return values;
}

}  // namespace

TEST_CASE("What was sent plus what is kept is exactly the sum of the gradients",
          "[error_feedback]") {
  constexpr std::size_t kSize = 300;
  ErrorFeedback memory;
  std::vector<Scalar> sent(kSize);
  std::vector<Scalar> total(kSize);
  for (std::uint64_t t = 0; t < 50; ++t) {
    const auto gradient = integers(kSize, t);
    memory.add(gradient, 1);
    const auto indices = top_k(memory.values(), 7).indices;
    for (const auto i : indices) sent[i] += memory.values()[i];
    memory.clear(indices);
    for (std::size_t i = 0; i < kSize; ++i) total[i] += gradient[i];
  }
  for (std::size_t i = 0; i < kSize; ++i) CHECK(sent[i] + memory.values()[i] == total[i]);
}

TEST_CASE("Each step sends or keeps every bit of memory plus gradient", "[error_feedback]") {
  RandomStream stream(3, Purpose::kSyntheticTensor);
  ErrorFeedback memory;
  for (int t = 0; t < 20; ++t) {
    std::vector<Scalar> gradient(100);
    for (Scalar& x : gradient) x = static_cast<Scalar>(stream.normal());
    memory.add(gradient, Scalar{0.3F});
    const std::vector<Scalar> before(memory.values().begin(), memory.values().end());
    const auto indices = top_k(before, 10).indices;
    memory.clear(indices);
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
      const bool was_sent = next < indices.size() && indices[next] == i;
      next += static_cast<std::size_t>(was_sent);
      CHECK(memory.values()[i] == (was_sent ? 0 : before[i]));
    }
  }
}

TEST_CASE("A learning rate inside weighs each gradient with its own step's rate",
          "[error_feedback]") {
  ErrorFeedback memory;
  memory.add(std::vector<Scalar>{8, 4}, Scalar{0.5});
  memory.add(std::vector<Scalar>{8, 4}, Scalar{0.25});
  CHECK(memory.values()[0] == 6);
  CHECK(memory.values()[1] == 3);
}

TEST_CASE("Parts of a gradient join the memory at their place", "[error_feedback]") {
  ErrorFeedback memory;
  memory.resize(4);
  memory.add(std::vector<Scalar>{5, 6}, 1, 2);
  memory.add(std::vector<Scalar>{1, 2}, 1, 0);
  CHECK(std::vector<Scalar>(memory.values().begin(), memory.values().end()) ==
        std::vector<Scalar>{1, 2, 5, 6});
  CHECK(memory.norm() == Approx(std::sqrt(66.0)));
  CHECK_THROWS_AS(memory.add(std::vector<Scalar>{1, 2}, 1, 3), std::logic_error);
}

TEST_CASE("A compensated gradient is what the memory then holds", "[error_feedback]") {
  ErrorFeedback memory;
  std::vector<Scalar> gradient{3, -2};
  memory.compensate(gradient);
  CHECK(gradient == std::vector<Scalar>{3, -2});
  memory.subtract(std::vector<Scalar>{2, 0});
  gradient = {10, 20};
  memory.compensate(gradient);
  CHECK(gradient == std::vector<Scalar>{11, 18});
  CHECK(std::vector<Scalar>(memory.values().begin(), memory.values().end()) == gradient);
  std::vector<Scalar> shorter{1};
  CHECK_THROWS_AS(memory.compensate(shorter), std::logic_error);
}

TEST_CASE("Subtracting an image leaves its error", "[error_feedback]") {
  ErrorFeedback memory;
  memory.add(std::vector<Scalar>{3, -2}, 1);
  memory.subtract(std::vector<Scalar>{2, -4});
  CHECK(memory.values()[0] == 1);
  CHECK(memory.values()[1] == 2);
}

TEST_CASE("Decaying sums are geometric", "[error_feedback]") {
  ErrorFeedback momentum;
  for (int t = 0; t < 3; ++t) momentum.decay_and_add(Scalar{0.5}, std::vector<Scalar>{4});
  CHECK(momentum.values()[0] == 7);  // 4 + 2 + 1
}
