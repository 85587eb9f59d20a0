// CIFAR-10's binary files, good and bad.
#include <catch2/catch.hpp>
#include <cmath>

#include "models/dataset.h"
#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;

// A label, then 1024 bytes of each colour.
std::string record(int label, int red, int green, int blue) {
  std::string bytes(1, static_cast<char>(label));
  for (const int colour : {red, green, blue}) bytes += std::string(1024, static_cast<char>(colour));
  return bytes;
}

// One image per training file, red 0 to 4, green 200, blue 7 or 9; one test image.
struct CifarFolder : TemporaryFolder {
  CifarFolder() {
    for (int i = 1; i <= 5; ++i)
      write("data_batch_" + std::to_string(i) + ".bin", record(i, i - 1, 200, i % 2 == 0 ? 9 : 7));
    write("test_batch.bin", record(9, 2, 200, 255));
  }
  Dataset load(const Fold& fold = {}) const {
    return load_dataset("cifar10:" + path().string(), 1, fold);
  }
};

TEST_CASE("CIFAR-10 files become planes standardised by the training part") {
  const CifarFolder folder;
  const Dataset data = folder.load();
  CHECK(data.shape.features == 3072);
  CHECK(data.shape.channels == 3);
  CHECK(data.shape.height == 32);
  CHECK(data.shape.width == 32);
  CHECK(data.shape.classes == 10);
  CHECK(data.train.labels == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(data.test.labels == std::vector<int>{9});
  const double step = 1 / std::sqrt(2.0);  // red is 0 to 4: mean 2, variance 2
  for (Index i = 0; i < 5; ++i)
    CHECK(data.train.inputs(i, 0) == Approx(static_cast<double>(i - 2) * step).margin(1e-6));
  CHECK(data.train.inputs.middleCols(1024, 1024).isZero());  // green is constant
  CHECK(data.test.inputs(0, 0) == 0);
  const double mean = (3 * 7 + 2 * 9) / 5.0;
  const double deviation = std::sqrt((3 * std::pow(7 - mean, 2) + 2 * std::pow(9 - mean, 2)) / 5);
  CHECK(data.test.inputs(0, 3071) == Approx((255 - mean) / deviation));
}

TEST_CASE("CIFAR-10 files may be gzipped") {
  const CifarFolder folder;
  const Matrix plain = folder.load().train.inputs;
  folder.compress("data_batch_3.bin");
  CHECK(folder.load().train.inputs == plain);
}

TEST_CASE("A fold's statistics leave the held-out examples aside") {
  const CifarFolder folder;
  const Dataset data = folder.load({.index = 2, .count = 5});
  REQUIRE(data.train.inputs.rows() == 4);
  REQUIRE(data.test.inputs.rows() == 1);
  CHECK(data.train.inputs.col(0).sum() == Approx(0).margin(1e-5));
  CHECK(data.train.inputs.col(0).squaredNorm() == Approx(4));
}

TEST_CASE("A malformed CIFAR-10 file is refused with its name and what is wrong") {
  const auto [bytes, message] = GENERATE(table<std::string, std::string>({
      {"", "is empty"},
      {record(0, 1, 2, 3).substr(0, 3072), "truncated: 3072 of 3073 bytes at record 0"},
      {record(0, 1, 2, 3) + "\1", "truncated: 1 of 3073 bytes at record 1"},
      {record(10, 1, 2, 3), "label 10 at record 0; allowed: 0 to 9"},
      {record(0, 1, 2, 3) + record(255, 1, 2, 3), "label 255 at record 1"},
  }));
  const CifarFolder folder;
  folder.write("data_batch_4.bin", bytes);
  CHECK_THROWS_WITH(folder.load(), Contains("data_batch_4.bin") && Contains(message));
  folder.remove("data_batch_4.bin");
  CHECK_THROWS_WITH(folder.load(), Contains("no file data_batch_4.bin"));
}

}  // namespace
}  // namespace gradwire
