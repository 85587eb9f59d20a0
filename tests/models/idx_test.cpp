// IDX files, good and bad.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "models/dataset.h"
#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

std::string big_endian(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const std::uint32_t w : words)
    for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(w >> shift & 255U);
  return bytes;
}

// 3 training and 2 test images of 2x2, labels 0 to 2.
struct IdxFolder : TemporaryFolder {
  IdxFolder() {
    write("train-images-idx3-ubyte",
          big_endian({0x803, 3, 2, 2}) + std::string("\0\x33\xff\0\1\2\3\4\5\6\7\x08", 12));
    write("train-labels-idx1-ubyte", big_endian({0x801, 3}) + std::string("\0\2\1", 3));
    write("t10k-images-idx3-ubyte", big_endian({0x803, 2, 2, 2}) + std::string(8, '\xff'));
    write("t10k-labels-idx1-ubyte", big_endian({0x801, 2}) + std::string("\2\0", 2));
  }
  Dataset load() const { return load_dataset("idx:" + path().string(), 1); }
};

TEST_CASE("An IDX folder becomes rows in [0, 1] with their labels") {
  const IdxFolder folder;
  const Dataset data = folder.load();
  CHECK_FALSE(data.synthetic);
  CHECK(data.shape.features == 4);
  CHECK(data.shape.classes == 3);
  CHECK(data.shape.channels == 1);
  CHECK(data.shape.height == 2);
  CHECK(data.shape.width == 2);
  CHECK(data.train.inputs.row(0) == Matrix{{0, Scalar(0.2), 1, 0}});
  CHECK(data.train.inputs(2, 3) == Scalar(8) / 255);
  CHECK(data.train.labels == std::vector<int>{0, 2, 1});
  CHECK(data.test.inputs == Matrix::Ones(2, 4));
  CHECK(data.test.labels == std::vector<int>{2, 0});
}

TEST_CASE("Gzipped IDX files load like plain ones") {
  const IdxFolder plain, packed;
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    packed.compress(name);
  CHECK(packed.load().train.inputs == plain.load().train.inputs);
  CHECK(packed.load().test.labels == plain.load().test.labels);
}

TEST_CASE("A missing folder or file is named") {
  const IdxFolder folder;
  CHECK_THROWS_WITH(load_dataset("idx:/no/such/folder", 1),
                    Contains("/no/such/folder is not a folder"));
  CHECK_THROWS_WITH(load_dataset("idx:", 1), Contains("not a folder"));
  folder.remove("t10k-labels-idx1-ubyte");
  CHECK_THROWS_WITH(folder.load(), Contains("no file t10k-labels-idx1-ubyte or "
                                            "t10k-labels-idx1-ubyte.gz"));
  fs::create_directory(folder.path("t10k-labels-idx1-ubyte"));
  CHECK_THROWS_WITH(folder.load(), Contains("no file t10k-labels-idx1-ubyte"));
}

struct Fault {
  const char* file;
  std::string bytes;
  const char* message;
};

TEST_CASE("A malformed IDX file is refused with its name and what is wrong") {
  const char* const images = "train-images-idx3-ubyte";
  const char* const labels = "train-labels-idx1-ubyte";
  const char* const test_images = "t10k-images-idx3-ubyte";
  const char* const test_labels = "t10k-labels-idx1-ubyte";
  const auto fault = GENERATE_COPY(values<Fault>({
      {images, "", "truncated: 0 of 16 header bytes"},
      {images, "\x08", "truncated: 1 of 16 header bytes"},
      {images, big_endian({0x803, 3}), "truncated: 8 of 16 header bytes"},
      {images, big_endian({0x801, 3}) + "abc", "starts with 2049, not 2051"},
      {images, "<!DOCTYPE html><html></html>", "not an IDX file"},
      {labels, big_endian({0x803, 3, 2, 2}) + std::string(12, 'a'), "starts with 2051, not 2049"},
      {images, big_endian({0xD03, 3, 2, 2}) + std::string(12, 'a'), "starts with 3331"},
      {images, big_endian({0x803, 3, 2, 2}) + std::string(11, 'a'), "truncated: 11 of 12 values"},
      {images, big_endian({0x803, 3, 2, 2}) + std::string(13, 'a'), "bytes after the 3x2x2 values"},
      {images, big_endian({0x803, 0, 2, 2}), "0x2x2"},
      {images, big_endian({0x803, 3, 0, 2}), "3x0x2"},
      {images, big_endian({0x803, 0xffffffff, 0xffffffff, 0xffffffff}), "4294967295x4294967295"},
      {images, big_endian({0x803, 4000, 1000, 1000}) + "ab", "truncated: 2 of 4000000000 values"},
      {labels, big_endian({0x801, 2}) + std::string("\0\1", 2), "has 2 labels, but"},
      {labels, big_endian({0x801, 3}) + std::string("\0\1", 2), "truncated: 2 of 3 values"},
      {test_images, big_endian({0x803, 2, 1, 3}) + std::string(6, 'a'), "test images of 1x3"},
      {test_labels, big_endian({0x801, 2}) + std::string("\0\3", 2), "label 3 at test example 1"},
  }));
  const IdxFolder folder;
  folder.write(fault.file, fault.bytes);
  CAPTURE(fault.file, fault.message);
  CHECK_THROWS_AS(folder.load(), std::invalid_argument);
  CHECK_THROWS_WITH(folder.load(), Contains("dataset: ") && Contains(fault.message));
}

TEST_CASE("A damaged gzip file is refused with its name") {
  const IdxFolder folder;
  const std::string name = "train-images-idx3-ubyte";
  folder.compress(name);
  const std::string good = folder.read(name + ".gz");
  for (const std::size_t kept : {good.size() - 1, good.size() - 9, std::size_t{12}}) {
    folder.write(name + ".gz", good.substr(0, kept));
    CAPTURE(kept);
    CHECK_THROWS_WITH(folder.load(), Contains(name + ".gz") && Contains("truncated"));
  }
  std::string bad = good;
  bad[bad.size() - 8] = static_cast<char>(bad[bad.size() - 8] + 1);  // the checksum
  folder.write(name + ".gz", bad);
  CHECK_THROWS_WITH(folder.load(), Contains(name + ".gz") && Contains("cannot be read"));
}

TEST_CASE("Fashion-MNIST has its published shape, or names the package to install") {
  if (!fs::exists("/usr/share/datasets/fashion-mnist")) {
    CHECK_THROWS_WITH(load_dataset("fashion-mnist", 1), Contains("dataset-fashion-mnist"));
    return;
  }
  const Dataset data = load_dataset("fashion-mnist", 1);
  CHECK(data.train.inputs.rows() == 60000);
  CHECK(data.test.inputs.rows() == 10000);
  CHECK(data.shape.features == 784);
  CHECK(data.shape.classes == 10);
  for (int c = 0; c < 10; ++c)
    CHECK(std::count(data.train.labels.begin(), data.train.labels.end(), c) == 6000);
}

}  // namespace
}  // namespace gradwire
