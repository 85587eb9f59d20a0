// Data sets: the IDX files of MNIST's page (yann.lecun.com/exdb/mnist: big-endian header, then
// bytes), and a synthetic stand-in for machines without them.
#include "models/dataset.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numbers>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "models/random.h"

namespace gradwire {

namespace {

constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";

// --- IDX ---

constexpr double kMaxElements = 4e9;  // 16 GB as float
constexpr std::size_t kChunk = 1 << 20;

// A plain or gzipped file (zlib reads both), with errors that name it.
class ByteReader {
 public:
  explicit ByteReader(std::string path) : path_(std::move(path)), file_(open(path_), gzclose) {}

  // Up to bytes.size(); fewer only at the end of the file.
  std::size_t read(std::span<unsigned char> bytes) {
    const int got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
    int status = Z_OK;
    const char* const message = gzerror(file_.get(), &status);
    if (got < 0) fail(std::string("cannot be read: ") + message);
    if (status == Z_BUF_ERROR) fail("is truncated: its gzip stream stops early");
    return static_cast<std::size_t>(got);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("dataset: " + path_ + " " + what);
  }

 private:
  using File = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

  gzFile open(const std::string& path) const {
    errno = 0;
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr)
      fail("cannot be opened: " +
           std::generic_category().message(errno != 0 ? errno : static_cast<int>(ENOMEM)));
    return file;
  }

  std::string path_;
  File file_;
};

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

std::string find_idx(const std::string& folder, const std::string& name) {
  for (const std::string& candidate : {name, name + ".gz"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / candidate;
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path.string();
  }
  throw std::invalid_argument("dataset: " + folder + " has no file " + name + " or " + name +
                              ".gz");
}

// Reads as it goes, in chunks: a header that lies about the size cannot allocate much.
Idx read_idx(const std::string& path, std::size_t dimensions) {
  ByteReader reader(path);
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

Examples read_examples(const std::string& folder, const std::string& prefix) {
  const Idx images = read_idx(find_idx(folder, prefix + "-images-idx3-ubyte"), 3);
  const Idx labels = read_idx(find_idx(folder, prefix + "-labels-idx1-ubyte"), 1);
  const auto count = static_cast<Index>(images.dims[0]);
  if (labels.dims[0] != images.dims[0])
    throw std::invalid_argument("dataset: " + labels.path + " has " +
                                std::to_string(labels.dims[0]) + " labels, but " + images.path +
                                " has " + std::to_string(count) + " images");
  const Index features = static_cast<Index>(images.dims[1]) * static_cast<Index>(images.dims[2]);
  Examples examples{.inputs = Matrix(count, features),
                    .labels = std::vector<int>(labels.bytes.begin(), labels.bytes.end())};
  for (Index i = 0; i < examples.inputs.size(); ++i)
    examples.inputs.data()[i] =
        static_cast<Scalar>(images.bytes[static_cast<std::size_t>(i)]) / Scalar{255};
  return examples;
}

Dataset load_idx(const std::string& name, const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw std::invalid_argument("dataset: " + folder + " is not a folder");
  Dataset data{.name = name,
               .synthetic = false,
               .shape = {},
               .train = read_examples(folder, "train"),
               .test = read_examples(folder, "t10k")};
  data.shape.features = data.train.inputs.cols();
  data.shape.classes = 1 + *std::max_element(data.train.labels.begin(), data.train.labels.end());
  if (data.test.inputs.cols() != data.shape.features)
    throw std::invalid_argument(
        "dataset: " + folder + " has training images of " + std::to_string(data.shape.features) +
        " pixels but test images of " + std::to_string(data.test.inputs.cols()));
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

// --- Synthetic ---

constexpr Index kFrequencies = 4;  // per direction
constexpr Index kWaves = kFrequencies * kFrequencies;
constexpr double kWithinClass = 1.2;  // of a wave's amplitude, where classes differ by N(0, 1)
constexpr double kContrast = 0.08;
constexpr double kNoise = 0.2;  // pixel noise is uniform in +-kNoise/2
constexpr Index kMaxFeatures = 1 << 16;
constexpr int kMaxClasses = 1000;
constexpr Index kMaxPixels = 1 << 26;

using Waves = Eigen::Matrix<double, kWaves, Eigen::Dynamic>;
using Amplitudes = Eigen::Matrix<double, kWaves, 1>;

// Cosines over the features laid out as a square image, (waves, features).
Waves make_waves(Index features) {
  const auto side =
      std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(features))));
  const Index height = (features + side - 1) / side;
  const auto wave = [](Index frequency, Index at, Index length) {
    return std::cos(std::numbers::pi * static_cast<double>(frequency) *
                    (static_cast<double>(at) + 0.5) / static_cast<double>(length));
  };
  Waves waves(kWaves, features);
  for (Index w = 0; w < kWaves; ++w)
    for (Index f = 0; f < features; ++f)
      waves(w, f) =
          wave(w / kFrequencies, f / side, height) * wave(w % kFrequencies, f % side, side);
  return waves;
}

Amplitudes random_amplitudes(RandomStream& stream) {
  Amplitudes a;
  for (double& x : a) x = stream.normal();
  return a;
}

// Values are multiples of 1/255, as in real images: rounding hides the last bits, in which
// processors and mathematical libraries differ.
Examples make_examples(const Waves& waves, const std::vector<Amplitudes>& classes, Index count,
                       std::uint64_t seed, std::uint64_t part) {
  Examples examples{.inputs = Matrix(count, waves.cols()), .labels = {}};
  for (Index i = 0; i < count; ++i) {
    RandomStream stream(seed, Purpose::kSyntheticData, part, static_cast<std::uint64_t>(i));
    const auto label = static_cast<std::size_t>(i) % classes.size();
    const Amplitudes a = kContrast * (classes[label] + kWithinClass * random_amplitudes(stream));
    std::uint64_t noise = 0;
    for (Index f = 0; f < waves.cols(); ++f) {
      noise = f % 8 == 0 ? stream.bits() : noise >> 8U;
      double pixel = 0.5 + kNoise * (static_cast<double>(noise & 255U) / 255 - 0.5);
      for (Index w = 0; w < kWaves; ++w) pixel += a[w] * waves(w, f);
      examples.inputs(i, f) =
          static_cast<Scalar>(std::round(255 * std::clamp(pixel, 0.0, 1.0))) / Scalar{255};
    }
    examples.labels.push_back(static_cast<int>(label));
  }
  return examples;
}

DataShape parse_synthetic(const std::string& spec) {
  if (spec == "synthetic") return {.features = 784, .classes = 10};
  DataShape shape;
  const char* const end = spec.data() + spec.size();
  const auto features =
      std::from_chars(spec.data() + std::string("synthetic:").size(), end, shape.features);
  const bool separated = features.ec == std::errc{} && features.ptr != end && *features.ptr == 'x';
  const auto classes = separated ? std::from_chars(features.ptr + 1, end, shape.classes) : features;
  if (!separated || classes.ec != std::errc{} || classes.ptr != end || shape.features < 1 ||
      shape.features > kMaxFeatures || shape.classes < 2 || shape.classes > kMaxClasses)
    throw std::invalid_argument("dataset: \"" + spec +
                                "\" needs 1 to 65536 features and 2 to 1000 classes, such as "
                                "synthetic:784x10");
  return shape;
}

Dataset make_synthetic(const std::string& spec, std::uint64_t seed) {
  const DataShape shape = parse_synthetic(spec);
  const Waves waves = make_waves(shape.features);
  std::vector<Amplitudes> classes;
  for (int c = 0; c < shape.classes; ++c) {
    RandomStream stream(seed, Purpose::kSyntheticData, 0, static_cast<std::uint64_t>(c));
    classes.push_back(random_amplitudes(stream));
  }
  const Index count = std::min<Index>(20000, kMaxPixels / shape.features);
  return {.name = spec,
          .synthetic = true,
          .shape = shape,
          .train = make_examples(waves, classes, count, seed, 1),
          .test = make_examples(waves, classes, std::min<Index>(2000, count), seed, 2)};
}

}  // namespace

Dataset load_dataset(const std::string& spec, std::uint64_t seed) {
  if (spec == "fashion-mnist") return load_fashion_mnist();
  if (spec.starts_with("idx:")) return load_idx(spec, spec.substr(4));
  if (spec == "synthetic" || spec.starts_with("synthetic:")) return make_synthetic(spec, seed);
  throw std::invalid_argument("dataset: \"" + spec +
                              "\" is not known; allowed: fashion-mnist, idx:FOLDER, synthetic, "
                              "synthetic:FxC (F features, C classes)");
}

BatchSource::BatchSource(const Dataset& dataset, Index batch_size, int rank, int workers,
                         std::uint64_t seed)
    : dataset_(dataset), batch_size_(batch_size), rank_(rank), workers_(workers), seed_(seed) {
  if (workers < 1 || rank < 0 || rank >= workers)
    throw std::logic_error("rank " + std::to_string(rank) + " of " + std::to_string(workers) +
                           " workers");
  const Index examples = dataset.train.inputs.rows();
  if (batch_size < 1 || batch_size > examples / workers)
    throw std::invalid_argument(
        "batch-size: " + std::to_string(batch_size) + " on each of " + std::to_string(workers) +
        " workers is not allowed; they need at least 1 each and share the " +
        std::to_string(examples) + " training examples of " + dataset.name);
  steps_per_epoch_ = examples / (batch_size * workers);
}

Batch BatchSource::at(std::int64_t step) {
  const std::int64_t epoch = step / steps_per_epoch_;
  if (epoch != epoch_) {
    order_ = random_permutation(
        static_cast<std::uint32_t>(dataset_.train.inputs.rows()),
        RandomStream(seed_, Purpose::kShuffle, static_cast<std::uint64_t>(epoch)));
    epoch_ = epoch;
  }
  const Index first = (step % steps_per_epoch_ * workers_ + rank_) * batch_size_;
  Batch batch{.inputs = Matrix(batch_size_, dataset_.shape.features), .labels = {}};
  for (Index i = 0; i < batch_size_; ++i) {
    const auto example = order_[static_cast<std::size_t>(first + i)];
    batch.inputs.row(i) = dataset_.train.inputs.row(static_cast<Index>(example));
    batch.labels.push_back(dataset_.train.labels[example]);
  }
  return batch;
}

}  // namespace gradwire
