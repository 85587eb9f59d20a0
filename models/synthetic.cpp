// Deterministic stand-ins for data that a machine may not have, each learnable in seconds:
// images from low-frequency class prototypes, sequences from class trajectories plus
// autoregressive noise (13 channels of up to 93 steps, as the spoken Arabic digits of the UEA
// archive), texts from a Zipf vocabulary with marker words.  Values are whole multiples of a power
// of two or of 1/255: rounding hides the last bits, in which processors and libraries differ.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "models/dataset_formats.h"
#include "models/random.h"

namespace gradwire {

namespace {

constexpr Index kMaxFeatures = 1 << 20;
constexpr int kMaxClasses = 1000;
constexpr Index kMaxValues = 1 << 26;  // of all training examples

double cosine(Index frequency, double place) {
  return std::cos(std::numbers::pi * static_cast<double>(frequency) * place);
}

using Amplitudes = Eigen::VectorXd;

Amplitudes random_amplitudes(Index count, RandomStream& stream) {
  Amplitudes a(count);
  for (double& x : a) x = stream.normal();
  return a;
}

std::vector<Amplitudes> class_amplitudes(int classes, Index count, std::uint64_t seed) {
  std::vector<Amplitudes> all;
  for (int c = 0; c < classes; ++c) {
    RandomStream stream(seed, Purpose::kSyntheticData, 0, static_cast<std::uint64_t>(c));
    all.push_back(random_amplitudes(count, stream));
  }
  return all;
}

// Training and test examples, labels in turn; fill(label, stream, row) writes one of them.
template <class Fill>
Dataset make_dataset(const std::string& spec, const DataShape& shape, Index count,
                     std::uint64_t seed, const Fill& fill) {
  const auto make = [&](Index examples, std::uint64_t part) {
    Examples made{.inputs = Matrix::Zero(examples, shape.features), .labels = {}};
    for (Index i = 0; i < examples; ++i) {
      RandomStream stream(seed, Purpose::kSyntheticData, part, static_cast<std::uint64_t>(i));
      made.labels.push_back(static_cast<int>(i % shape.classes));
      fill(made.labels.back(), stream, made.inputs.row(i));
    }
    return made;
  };
  count = std::clamp<Index>(kMaxValues / shape.features, 1, count);
  return {.name = spec,
          .synthetic = true,
          .shape = shape,
          .train = make(count, 1),
          .test = make(std::min<Index>(2000, count), 2)};
}

// --- Images ---

constexpr Index kFrequencies = 4;  // per direction
constexpr Index kWaves = kFrequencies * kFrequencies;
constexpr double kWithinClass = 1.2;  // of a wave's amplitude, where classes differ by N(0, 1)
constexpr double kContrast = 0.08;
constexpr double kNoise = 0.2;  // pixel noise is uniform in +-kNoise/2

// Cosines over a plane, (waves, pixels); `pixels` may end within its last row.
Eigen::MatrixXd make_waves(Index pixels, Index width) {
  const Index height = (pixels + width - 1) / width;
  const auto wave = [](Index frequency, Index at, Index length) {
    return cosine(frequency, (static_cast<double>(at) + 0.5) / static_cast<double>(length));
  };
  Eigen::MatrixXd waves(kWaves, pixels);
  for (Index w = 0; w < kWaves; ++w)
    for (Index p = 0; p < pixels; ++p)
      waves(w, p) =
          wave(w / kFrequencies, p / width, height) * wave(w % kFrequencies, p % width, width);
  return waves;
}

Dataset make_images(const std::string& spec, const DataShape& shape, Index width, Index count,
                    std::uint64_t seed) {
  const Index pixels = shape.features / shape.channels;
  const Eigen::MatrixXd waves = make_waves(pixels, width);
  const auto classes = class_amplitudes(shape.classes, kWaves * shape.channels, seed);
  return make_dataset(spec, shape, count, seed, [&](int label, RandomStream& stream, auto row) {
    const auto& prototype = classes[static_cast<std::size_t>(label)];
    const Amplitudes a =
        kContrast * (prototype + kWithinClass * random_amplitudes(prototype.size(), stream));
    std::uint64_t noise = 0;
    for (Index f = 0; f < shape.features; ++f) {
      noise = f % 8 == 0 ? stream.bits() : noise >> 8U;
      double pixel = 0.5 + kNoise * (static_cast<double>(noise & 255U) / 255 - 0.5);
      for (Index w = 0; w < kWaves; ++w) pixel += a[f / pixels * kWaves + w] * waves(w, f % pixels);
      row[f] = static_cast<Scalar>(std::round(255 * std::clamp(pixel, 0.0, 1.0))) / Scalar{255};
    }
  });
}

// --- Sequences ---

constexpr Index kHarmonics = 4;          // of a channel's trajectory over the whole sequence
constexpr double kTrajectory = 0.35;     // scale of a class's trajectory
constexpr double kWithinSequence = 0.9;  // of a harmonic's amplitude, where classes differ by 1
constexpr double kFirstLag = 0.9;        // the noise: x_t = 0.9 x_{t-1} - 0.3 x_{t-2} + N(0, 0.25)
constexpr double kSecondLag = -0.3;
constexpr double kInnovation = 0.5;

Dataset make_sequences(const std::string& spec, const DataShape& shape, std::uint64_t seed) {
  constexpr Index kExamples = 6600;
  const auto classes = class_amplitudes(shape.classes, kHarmonics * shape.channels, seed);
  return make_dataset(spec, shape, kExamples, seed, [&](int label, RandomStream& stream, auto row) {
    const auto& prototype = classes[static_cast<std::size_t>(label)];
    const Amplitudes a =
        kTrajectory * (prototype + kWithinSequence * random_amplitudes(prototype.size(), stream));
    const Index shortest = (shape.steps + 3) / 4;
    const auto lengths = static_cast<std::uint64_t>(shape.steps - shortest + 1);
    const Index length = shortest + static_cast<Index>(stream.below(lengths));
    std::array<Eigen::VectorXd, 2> past{Eigen::VectorXd::Zero(shape.channels),
                                        Eigen::VectorXd::Zero(shape.channels)};
    for (Index t = 0; t < length; ++t) {
      std::array<double, kHarmonics> wave{};
      for (Index h = 0; h < kHarmonics; ++h)
        wave.at(static_cast<std::size_t>(h)) =
            cosine(h, (static_cast<double>(t) + 0.5) / static_cast<double>(length));
      for (Index c = 0; c < shape.channels; ++c) {
        double value =
            kFirstLag * past[0][c] + kSecondLag * past[1][c] + kInnovation * stream.normal();
        past[1][c] = past[0][c];
        past[0][c] = value;
        for (Index h = 0; h < kHarmonics; ++h)
          value += a[c * kHarmonics + h] * wave.at(static_cast<std::size_t>(h));
        row[t * shape.channels + c] = static_cast<Scalar>(std::round(256 * value)) / Scalar{256};
      }
    }
  });
}

// --- Texts ---

constexpr std::uint64_t kMarkers = 20;  // words that speak for a class
constexpr double kMarkerShare = 0.1;    // of all words
constexpr double kTrueMarkers = 0.75;   // of those: of the text's own class; the rest of any

// Words after the two of padding and the unknown: markers class by class, then the common ones,
// whose frequency halves where the rank doubles (Zipf's law in steps, without floating point).
Dataset make_texts(const std::string& spec, const DataShape& shape, std::uint64_t seed) {
  constexpr Index kExamples = 4000;
  const auto classes = static_cast<std::uint64_t>(shape.classes);
  const std::uint64_t first_common = 2 + kMarkers * classes;
  const std::uint64_t common = static_cast<std::uint64_t>(shape.vocabulary) - first_common;
  const auto octaves = static_cast<std::uint64_t>(std::bit_width(common));
  return make_dataset(spec, shape, kExamples, seed, [&](int label, RandomStream& stream, auto row) {
    const Index shortest = (shape.steps + 3) / 4;
    const auto lengths = static_cast<std::uint64_t>(shape.steps - shortest + 1);
    const Index length = shortest + static_cast<Index>(stream.below(lengths));
    for (Index t = 0; t < length; ++t) {
      std::uint64_t word = common;
      if (stream.uniform() < kMarkerShare) {
        const bool own = stream.uniform() < kTrueMarkers;
        const std::uint64_t speaks_for =
            own ? static_cast<std::uint64_t>(label) : stream.below(classes);
        word = 2 + speaks_for * kMarkers + stream.below(kMarkers);
      } else {
        while (word >= common) {
          const std::uint64_t octave = std::uint64_t{1} << stream.below(octaves);
          word = octave - 1 + stream.below(octave);
        }
        word += first_common;
      }
      row[t] = static_cast<Scalar>(word);
    }
  });
}

// --- Specifications ---

void check(const std::string& spec, bool good, const std::string& allowed) {
  if (!good) throw std::invalid_argument("dataset: \"" + spec + "\" needs " + allowed);
}

// The `count` numbers of "NAME:AxBxC", each at least 1, at most 2^20; none for "NAME".
std::vector<Index> parse_sizes(const std::string& spec, std::size_t count,
                               const std::string& allowed) {
  std::vector<Index> sizes;
  const auto colon = spec.find(':');
  if (colon == std::string::npos) return sizes;
  const char* const end = spec.data() + spec.size();
  const char* at = spec.data() + colon + 1;
  bool good = true;
  while (good && sizes.size() < count) {
    Index size = 0;
    const auto parsed = std::from_chars(at, end, size);
    good = parsed.ec == std::errc{} && size >= 1 && size <= kMaxFeatures;
    sizes.push_back(size);
    const bool last = sizes.size() == count;
    good = good && (last ? parsed.ptr == end : parsed.ptr != end && *parsed.ptr == 'x');
    at = parsed.ptr + 1;
  }
  check(spec, good, allowed);
  return sizes;
}

bool classes_fit(Index classes) { return classes >= 2 && classes <= kMaxClasses; }

Dataset make_plain(const std::string& spec, std::uint64_t seed) {
  const std::string allowed = "1 to 65536 features and 2 to 1000 classes, such as synthetic:784x10";
  const auto sizes = parse_sizes(spec, 2, allowed);
  DataShape shape{.features = 784, .classes = 10};
  if (!sizes.empty()) {
    check(spec, sizes[0] <= 1 << 16 && classes_fit(sizes[1]), allowed);
    shape = {.features = sizes[0], .classes = static_cast<int>(sizes[1])};
  }
  const auto side =
      std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(shape.features))));
  if (side * side == shape.features) shape.height = shape.width = side;
  return make_images(spec, shape, side, 20000, seed);
}

Dataset make_colour(const std::string& spec, std::uint64_t seed) {
  const std::string allowed =
      "at most 1048576 values and 2 to 1000 classes, such as synthetic-images:3x32x32x10 "
      "(channels, height, width, classes)";
  auto sizes = parse_sizes(spec, 4, allowed);
  if (sizes.empty()) sizes = {3, 32, 32, 10};
  const double values = static_cast<double>(sizes[0] * sizes[1]) * static_cast<double>(sizes[2]);
  check(spec, values <= kMaxFeatures && classes_fit(sizes[3]), allowed);
  const DataShape shape{.features = sizes[0] * sizes[1] * sizes[2],
                        .classes = static_cast<int>(sizes[3]),
                        .channels = sizes[0],
                        .height = sizes[1],
                        .width = sizes[2]};
  return make_images(spec, shape, shape.width, 10000, seed);
}

Dataset make_sequences(const std::string& spec, std::uint64_t seed) {
  const std::string allowed =
      "at most 1048576 values and 2 to 1000 classes, such as synthetic-sequences:93x13x10 (steps, "
      "channels, classes)";
  auto sizes = parse_sizes(spec, 3, allowed);
  if (sizes.empty()) sizes = {93, 13, 10};
  check(spec, sizes[0] * sizes[1] <= kMaxFeatures && classes_fit(sizes[2]), allowed);
  return make_sequences(spec,
                        {.features = sizes[0] * sizes[1],
                         .classes = static_cast<int>(sizes[2]),
                         .steps = sizes[0],
                         .channels = sizes[1]},
                        seed);
}

Dataset make_texts(const std::string& spec, std::uint64_t seed) {
  const std::string allowed =
      "2 to 1000 classes and a vocabulary of at least 20 words per class and 10 more, such as "
      "synthetic-texts:64x2000x2 (steps, vocabulary, classes)";
  auto sizes = parse_sizes(spec, 3, allowed);
  if (sizes.empty()) sizes = {64, 2000, 2};
  const auto markers = static_cast<Index>(kMarkers) * sizes[2];
  check(spec, classes_fit(sizes[2]) && sizes[1] >= markers + 10, allowed);
  return make_texts(spec,
                    {.features = sizes[0],
                     .classes = static_cast<int>(sizes[2]),
                     .steps = sizes[0],
                     .vocabulary = sizes[1]},
                    seed);
}

}  // namespace

Dataset make_synthetic(const std::string& spec, std::uint64_t seed) {
  const std::string name = spec.substr(0, spec.find(':'));
  if (name == "synthetic-images") return make_colour(spec, seed);
  if (name == "synthetic-sequences") return make_sequences(spec, seed);
  if (name == "synthetic-texts") return make_texts(spec, seed);
  return make_plain(spec, seed);
}

}  // namespace gradwire
