// The synthetic stand-ins: their shapes, that they are the same everywhere, and that they teach.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <utility>

#include "models/dataset.h"
#include "models/metrics.h"
#include "models/optimizer.h"

namespace gradwire {
namespace {

using Catch::Contains;

TEST_CASE("The synthetic data set is 28x28 with 10 balanced classes, or as asked") {
  const Dataset data = load_dataset("synthetic", 1);
  CHECK(data.synthetic);
  CHECK(data.shape.features == 784);
  CHECK(data.shape.classes == 10);
  CHECK(data.train.inputs.rows() == 20000);
  CHECK(data.train.inputs.minCoeff() >= 0);
  CHECK(data.train.inputs.maxCoeff() <= 1);
  for (int c = 0; c < 10; ++c)
    CHECK(std::count(data.test.labels.begin(), data.test.labels.end(), c) == 200);
  const Dataset small = load_dataset("synthetic:12x4", 1);
  CHECK(small.train.inputs.cols() == 12);
  CHECK(*std::max_element(small.train.labels.begin(), small.train.labels.end()) == 3);
  CHECK(load_dataset("synthetic:1x2", 1).train.inputs.cols() == 1);
}

TEST_CASE("Synthetic pixels are whole 255ths, follow the seed and are the same everywhere") {
  const Dataset data = load_dataset("synthetic:64x3", 1);
  double sum = 0;
  for (Index i = 0; i < 6400; ++i) {
    const double level = 255 * static_cast<double>(data.train.inputs.data()[i]);
    REQUIRE(std::abs(level - std::round(level)) < 1e-4);
    sum += std::round(level);
  }
  CHECK(sum == 790393);
  CHECK(data.train.inputs == load_dataset("synthetic:64x3", 1).train.inputs);
  CHECK(data.train.inputs != load_dataset("synthetic:64x3", 2).train.inputs);
  CHECK(data.train.inputs.topRows(100) != data.test.inputs.topRows(100));
}

// Trains an MLP with the batches of one worker and evaluates it on the test part.
Evaluation learn(const Dataset& data, const std::string& hidden, std::int64_t steps) {
  const auto model = make_model({.name = "mlp:" + std::to_string(data.shape.features) + "-" +
                                         hidden + "-" + std::to_string(data.shape.classes)},
                                data.shape, 1);
  const auto optimizer = make_optimizer({});
  BatchSource batches(data, 64, 0, 1, 1);
  for (std::int64_t step = 0; step < steps; ++step) {
    const Batch batch = batches.at(step);
    const Loss loss = softmax_cross_entropy(model->forward(batch), batch.labels);
    Gradients mean = zero_gradients(*model);
    model->backward(loss.delta / 64, {.linear =
                                          [&](const LayerTrace& trace, const Work&) {
                                            const std::size_t w =
                                                2 * static_cast<std::size_t>(trace.map);
                                            mean[w] = trace.activation.transpose() * trace.delta;
                                            mean[w + 1] = trace.delta.colwise().sum();
                                          },
                                      .direct = {}});
    optimizer->step(model->mutable_parameters(), mean);
  }
  return evaluate(*model, data.test);
}

TEST_CASE("Synthetic data can be learnt") {
  const auto* const spec =
      GENERATE("synthetic:100x5", "synthetic-images:3x8x8x5", "synthetic-sequences:20x6x5");
  CAPTURE(spec);
  const Evaluation e = learn(load_dataset(spec, 1), "32", 200);
  CHECK(e.loss < 0.5 * std::log(5.0));
  CHECK(e.accuracy > 0.8);
  CHECK(e.macro_auc > 0.95);
}

TEST_CASE("Synthetic images are channel planes of height x width") {
  const Dataset data = load_dataset("synthetic-images:2x4x8x3", 1);
  CHECK(data.synthetic);
  CHECK(data.shape.features == 64);
  CHECK(data.shape.classes == 3);
  CHECK(std::pair(data.shape.steps, data.shape.channels) == std::pair<Index, Index>(1, 2));
  CHECK(std::pair(data.shape.height, data.shape.width) == std::pair<Index, Index>(4, 8));
  const Matrix mean = data.train.inputs.colwise().mean();
  const auto plane = [&](Index c) { return mean.middleCols(32 * c, 32); };
  CHECK((plane(0) - plane(1)).norm() > 0.05);  // channels differ
}

Index length_of(const Dataset& data, Index example) {
  const Index width = data.shape.features / data.shape.steps;
  Index length = data.shape.steps;
  while (length > 0 &&
         (data.train.inputs.row(example).segment((length - 1) * width, width).array() == 0).all())
    --length;
  return length;
}

TEST_CASE("Synthetic sequences are a quarter to all of their steps long, then zero") {
  const Dataset data = load_dataset("synthetic-sequences:12x5x3", 1);
  CHECK(data.shape.features == 60);
  CHECK(data.shape.steps == 12);
  CHECK(data.shape.channels == 5);
  CHECK(data.shape.vocabulary == 0);
  std::set<Index> lengths;
  for (Index i = 0; i < 200; ++i) lengths.insert(length_of(data, i));
  CHECK(lengths == std::set<Index>{3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
}

TEST_CASE("The default stand-ins have the shapes of the rank-dAD paper's data") {
  const DataShape sequences = load_dataset("synthetic-sequences", 1).shape;
  CHECK(sequences.channels == 13);
  CHECK(sequences.steps == 93);
  CHECK(sequences.classes == 10);
  const DataShape images = load_dataset("synthetic-images", 1).shape;
  CHECK(images.features == 3072);
  CHECK(images.classes == 10);
}

TEST_CASE("Synthetic texts hold words of the vocabulary, whose markers tell the class") {
  const Dataset data = load_dataset("synthetic-texts:40x300x3", 1);
  CHECK(data.shape.features == 40);
  CHECK(data.shape.vocabulary == 300);
  int right = 0;
  std::vector<int> count(300, 0);
  for (Index i = 0; i < 900; ++i) {
    Eigen::Vector3d votes = Eigen::Vector3d::Zero();
    for (Index t = 0; t < 40; ++t) {
      const auto word = static_cast<Index>(data.train.inputs(i, t));
      REQUIRE(static_cast<Scalar>(word) == data.train.inputs(i, t));
      REQUIRE((t >= length_of(data, i) ? word == 0 : word >= 2 && word < 300));
      ++count[static_cast<std::size_t>(word)];
      if (word >= 2 && word < 62) votes[(word - 2) / 20] += 1;
    }
    Index said = 0;
    votes.maxCoeff(&said);
    if (said == data.train.labels[static_cast<std::size_t>(i)]) ++right;
  }
  CHECK(right > 600);
  CHECK(right < 900);                  // a word alone does not prove a class
  CHECK(count[62] > 10 * count[100]);  // Zipf
  CHECK(count[63] < count[62]);
}

TEST_CASE("A synthetic specification that makes no sense is refused with an example") {
  const auto* const spec =
      GENERATE("synthetic:", "synthetic:x", "synthetic:10", "synthetic:10x", "synthetic:0x2",
               "synthetic:10x1", "synthetic:-3x2", "synthetic:10x2 ", "synthetic:10x2x3",
               "synthetic:65537x2", "synthetic:10x1001", "synthetic:99999999999999999999x2");
  CHECK_THROWS_WITH(load_dataset(spec, 1), Contains(spec) && Contains("synthetic:784x10"));
  const std::tuple<const char*, const char*> bad = GENERATE(table<const char*, const char*>({
      {"synthetic-images:3x32x32", "synthetic-images:3x32x32x10"},
      {"synthetic-images:3x0x32x10", "synthetic-images:3x32x32x10"},
      {"synthetic-images:1024x1024x1024x10", "synthetic-images:3x32x32x10"},
      {"synthetic-sequences:93x13x1", "synthetic-sequences:93x13x10"},
      {"synthetic-sequences:93x13x10x1", "synthetic-sequences:93x13x10"},
      {"synthetic-texts:64x49x2", "synthetic-texts:64x2000x2"},
      {"synthetic-texts:", "synthetic-texts:64x2000x2"},
  }));
  CHECK_THROWS_WITH(load_dataset(std::get<0>(bad), 1),
                    Contains(std::get<0>(bad)) && Contains(std::get<1>(bad)));
}

}  // namespace
}  // namespace gradwire
