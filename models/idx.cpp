// The IDX files of MNIST's page (yann.lecun.com/exdb/mnist): a big-endian header, then bytes.
// Pixels are scaled to [0, 1].
#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "models/dataset_formats.h"
#include "models/gzip_reader.h"

namespace gradwire {

namespace {

constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";
constexpr double kMaxElements = 4e9;  // 16 GB as float
constexpr std::size_t kChunk = 1 << 20;

struct Idx {
  std::string path;
  std::vector<std::uint32_t> dims;
  std::vector<unsigned char> bytes;
};

std::string shape_text(const std::vector<std::uint32_t>& dims) {
  std::string text;
  for (const std::uint32_t d : dims) {
    if (!text.empty()) text += 'x';
    text += std::to_string(d);
  }
  return text;
}

std::string size_text(const DataShape& shape) {
  return std::to_string(shape.height) + "x" + std::to_string(shape.width);
}

// Reads as it goes, in chunks: a header that lies about the size cannot allocate much.
Idx read_idx(const std::string& path, std::size_t dimensions) {
  GzipReader reader(path);
  std::vector<unsigned char> header(4 + 4 * dimensions);
  const std::size_t got = reader.read(header);
  const auto word = [&](std::size_t i) {
    return std::uint32_t{header[4 * i]} << 24U | std::uint32_t{header[4 * i + 1]} << 16U |
           std::uint32_t{header[4 * i + 2]} << 8U | std::uint32_t{header[4 * i + 3]};
  };
  const auto magic = static_cast<std::uint32_t>(0x800 + dimensions);
  if (got >= 4 && word(0) != magic)
    reader.fail("is not an IDX file of " + std::to_string(dimensions) +
                "-dimensional bytes: it starts with " + std::to_string(word(0)) + ", not " +
                std::to_string(magic));
  if (got < header.size())
    reader.fail("is truncated: " + std::to_string(got) + " of " + std::to_string(header.size()) +
                " header bytes");

  Idx idx{.path = path, .dims = {}, .bytes = {}};
  double elements = 1;
  for (std::size_t i = 1; i <= dimensions; ++i) {
    idx.dims.push_back(word(i));
    elements *= word(i);
  }
  if (elements < 1 || elements > kMaxElements)
    reader.fail("has a header that says " + shape_text(idx.dims) +
                " values; allowed: 1 to 4000000000 in all");
  const auto size = static_cast<std::size_t>(elements);
  while (idx.bytes.size() < size) {
    const std::size_t at = idx.bytes.size();
    idx.bytes.resize(std::min(size, at + kChunk));
    const std::size_t more = reader.read(std::span(idx.bytes).subspan(at));
    if (more < idx.bytes.size() - at)
      reader.fail("is truncated: " + std::to_string(at + more) + " of " + std::to_string(size) +
                  " values");
  }
  unsigned char extra = 0;
  if (reader.read({&extra, 1}) != 0)
    reader.fail("has bytes after the " + shape_text(idx.dims) + " values of its header");
  return idx;
}

Examples read_examples(const std::string& folder, const std::string& prefix, DataShape& shape) {
  const Idx images = read_idx(find_plain_or_gz(folder, prefix + "-images-idx3-ubyte"), 3);
  const Idx labels = read_idx(find_plain_or_gz(folder, prefix + "-labels-idx1-ubyte"), 1);
  const auto count = static_cast<Index>(images.dims[0]);
  if (labels.dims[0] != images.dims[0])
    throw std::invalid_argument("dataset: " + labels.path + " has " +
                                std::to_string(labels.dims[0]) + " labels, but " + images.path +
                                " has " + std::to_string(count) + " images");
  shape.height = static_cast<Index>(images.dims[1]);
  shape.width = static_cast<Index>(images.dims[2]);
  shape.features = shape.height * shape.width;
  Examples examples{.inputs = Matrix(count, shape.features),
                    .labels = std::vector<int>(labels.bytes.begin(), labels.bytes.end())};
  for (Index i = 0; i < examples.inputs.size(); ++i)
    examples.inputs.data()[i] =
        static_cast<Scalar>(images.bytes[static_cast<std::size_t>(i)]) / Scalar{255};
  return examples;
}

}  // namespace

Dataset load_idx(const std::string& name, const std::string& folder) {
  check_folder(folder);
  Dataset data{.name = name, .synthetic = false, .shape = {}, .train = {}, .test = {}};
  DataShape test_shape;
  data.train = read_examples(folder, "train", data.shape);
  data.test = read_examples(folder, "t10k", test_shape);
  data.shape.classes = 1 + *std::max_element(data.train.labels.begin(), data.train.labels.end());
  if (test_shape.height != data.shape.height || test_shape.width != data.shape.width)
    throw std::invalid_argument("dataset: " + folder + " has training images of " +
                                size_text(data.shape) + " pixels but test images of " +
                                size_text(test_shape));
  for (std::size_t i = 0; i < data.test.labels.size(); ++i)
    if (data.test.labels[i] >= data.shape.classes)
      throw std::invalid_argument("dataset: " + folder + " has label " +
                                  std::to_string(data.test.labels[i]) + " at test example " +
                                  std::to_string(i) + ", but training labels end at " +
                                  std::to_string(data.shape.classes - 1));
  return data;
}

Dataset load_fashion_mnist() {
  std::error_code error;
  if (!std::filesystem::is_directory(kFashionFolder, error))
    throw std::invalid_argument(
        std::string("dataset: fashion-mnist is not in ") + kFashionFolder +
        "; install the Debian package dataset-fashion-mnist, or use idx:FOLDER or synthetic");
  return load_idx("fashion-mnist", kFashionFolder);
}

}  // namespace gradwire
