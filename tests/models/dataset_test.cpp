// Which data sets are known, and how batches are cut.
#include "models/dataset.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <set>

namespace gradwire {
namespace {

using Catch::Contains;

TEST_CASE("An unknown data set is refused with what is allowed") {
  CHECK_THROWS_WITH(load_dataset("cifar", 1),
                    Contains("\"cifar\"") && Contains("fashion-mnist, idx:FOLDER, cifar10:FOLDER"));
}

// --- Folds ---

TEST_CASE("The folds hold every training example out once, the same for a seed") {
  const Dataset whole = load_dataset("synthetic-texts:4x60x2", 3);
  std::vector<Index> sizes;
  double held_sum = 0;
  for (int i = 1; i <= 3; ++i) {
    const Dataset data = load_dataset("synthetic-texts:4x60x2", 3, {.index = i, .count = 3});
    CHECK(data.train.inputs.rows() + data.test.inputs.rows() == 4000);
    CHECK(data.test.labels.size() == static_cast<std::size_t>(data.test.inputs.rows()));
    sizes.push_back(data.test.inputs.rows());
    held_sum += data.test.inputs.cast<double>().sum();
    const Dataset again = load_dataset("synthetic-texts:4x60x2", 3, {.index = i, .count = 3});
    CHECK(again.test.inputs == data.test.inputs);
  }
  CHECK(sizes == std::vector<Index>{1333, 1333, 1334});
  CHECK(held_sum == whole.train.inputs.cast<double>().sum());
}

TEST_CASE("A fold that does not exist is refused") {
  for (const Fold fold : {Fold{0, 5}, Fold{6, 5}, Fold{1, 1}, Fold{1, 5000}})
    CHECK_THROWS_WITH(load_dataset("synthetic-texts:4x60x2", 1, fold),
                      Contains("fold: ") && Contains("1 <= I <= K"));
}

// --- Batches ---

// n examples whose only feature is their own index.
Dataset numbered(Index n) {
  Dataset data{.name = "numbered", .synthetic = true, .shape = {1, 2}, .train = {}, .test = {}};
  data.train.inputs.resize(n, 1);
  for (Index i = 0; i < n; ++i) {
    data.train.inputs(i, 0) = static_cast<Scalar>(i);
    data.train.labels.push_back(static_cast<int>(i % 2));
  }
  return data;
}

TEST_CASE("N workers of batch B see what one worker of batch N B sees") {
  const Dataset data = numbered(50);
  BatchSource one(data, 12, 0, 1, 7);
  for (std::int64_t step = 0; step < 9; ++step) {  // 4 steps per epoch
    const Batch whole = one.at(step);
    for (int rank = 0; rank < 4; ++rank) {
      const Index first = Index{3} * rank;
      const Batch part = BatchSource(data, 3, rank, 4, 7).at(step);
      CHECK(part.inputs == whole.inputs.middleRows(first, 3));
      CHECK(std::equal(part.labels.begin(), part.labels.end(), whole.labels.begin() + first));
    }
  }
}

TEST_CASE("An epoch visits every example once, but for the incomplete last batch") {
  const Dataset data = numbered(50);
  BatchSource source(data, 12, 0, 1, 7);
  std::array<std::set<Scalar>, 2> seen;
  for (std::int64_t step = 0; step < 8; ++step) {
    const Batch batch = source.at(step);
    auto& epoch = seen.at(static_cast<std::size_t>(step / 4));
    for (Index i = 0; i < 12; ++i) {
      const Scalar example = batch.inputs(i, 0);
      epoch.insert(example);
      CHECK(batch.labels[static_cast<std::size_t>(i)] == static_cast<int>(example) % 2);
    }
  }
  CHECK(seen[0].size() == 48);
  CHECK(seen[1].size() == 48);
  CHECK(source.at(0).inputs != source.at(4).inputs);  // another permutation
}

TEST_CASE("Steps may be asked for in any order") {
  const Dataset data = numbered(20);
  BatchSource source(data, 5, 0, 1, 7);
  const Matrix late = source.at(9).inputs;
  source.at(2);
  CHECK(source.at(9).inputs == late);
  CHECK(BatchSource(data, 5, 0, 1, 8).at(9).inputs != late);  // another seed
}

TEST_CASE("By class, workers share the examples out and see few classes each") {
  Dataset data = numbered(60);
  data.shape.classes = 6;
  for (std::size_t i = 0; i < 60; ++i) data.train.labels[i] = static_cast<int>(i % 6);
  std::set<Scalar> seen;
  for (int rank = 0; rank < 3; ++rank) {
    BatchSource source(data, 5, rank, 3, 7, DataSplit::kByClass);
    std::set<Scalar> own;
    for (std::int64_t step = 0; step < 4; ++step) {  // an epoch of 20 examples
      const Batch batch = source.at(step);
      for (const int label : batch.labels) CHECK(label / 2 == rank);
      for (Index i = 0; i < 5; ++i) own.insert(batch.inputs(i, 0));
    }
    CHECK(own.size() == 20);
    seen.merge(own);
    CHECK(source.at(0).inputs != source.at(4).inputs);  // another permutation
    const Batch again = BatchSource(data, 5, rank, 3, 7, DataSplit::kByClass).at(4);
    CHECK(again.inputs == source.at(4).inputs);
  }
  CHECK(seen.size() == 60);
}

TEST_CASE("A global batch beyond the training examples is refused") {
  const Dataset data = numbered(50);
  CHECK_NOTHROW(BatchSource(data, 25, 1, 2, 1));
  for (const Index batch : {Index{26}, Index{0}, Index{-1}, std::numeric_limits<Index>::max()})
    CHECK_THROWS_WITH(BatchSource(data, batch, 0, 2, 1),
                      Contains("batch-size: " + std::to_string(batch)) &&
                          Contains("50 training examples of numbered"));
  CHECK_THROWS_AS(BatchSource(data, 1, 0, 51, 1), std::invalid_argument);
  CHECK_THROWS_AS(BatchSource(data, 1, 2, 2, 1), std::logic_error);
}

}  // namespace
}  // namespace gradwire
