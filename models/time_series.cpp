// Multivariate time series in the UEA archive's .ts format (timeseriesclassification.com; sktime's
// dialect too): headers `@name value..`, then one series per line after `@data`, its dimensions
// separated by ':', their values by ',', the label last.  Dimensions and series may differ in
// length, '?' and NaN are missing values, '#' begins a comment.  Steps at a series' end that are
// zero in all dimensions are padding (sktime's copies) and left out.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "models/dataset_formats.h"
#include "models/gzip_reader.h"

namespace gradwire {

namespace {

constexpr double kMaxValues = 1 << 30;  // of a padded part: 4 GiB as float
constexpr Scalar kMissing = std::numeric_limits<Scalar>::quiet_NaN();

struct Series {
  std::vector<std::vector<Scalar>> channels;
  Index steps = 0;
  int label = 0;
};

struct Part {
  std::string path;
  std::vector<std::string> classes;
  std::vector<Series> series;

  Index channels() const { return static_cast<Index>(series.front().channels.size()); }
  Index steps() const {
    Index longest = 1;
    for (const Series& s : series) longest = std::max(longest, s.steps);
    return longest;
  }
};

class Parser {
 public:
  explicit Parser(std::string path) { part_.path = std::move(path); }

  Part parse() {
    const std::string text = GzipReader(part_.path).read_all();
    Lines lines(text);
    bool in_data = false;
    for (std::string_view line; lines.next(line);) {
      line = trimmed(line);
      line_ = lines.number();
      if (line.empty() || line.front() == '#') continue;
      if (in_data) {
        part_.series.push_back(series(line));
      } else if (line.front() == '@') {
        in_data = header(line.substr(1));
      } else {
        fail("begins with neither @ nor #: " + in_quotes(line));
      }
    }
    if (!in_data) fail_file("has no @data line");
    if (part_.series.empty()) fail_file("has no series after @data");
    return std::move(part_);
  }

 private:
  [[noreturn]] void fail_file(const std::string& what) const {
    throw std::invalid_argument("dataset: " + part_.path + " " + what);
  }
  [[noreturn]] void fail(const std::string& what) const {
    fail_file("line " + std::to_string(line_) + " " + what);
  }

  // Whether the data begin.
  bool header(std::string_view line) {
    std::vector<std::string> words;
    for (const std::string_view word : cut(line, ' '))
      if (!trimmed(word).empty()) words.emplace_back(trimmed(word));
    if (words.empty()) fail("is an @ without a name");
    std::string& name = words.front();
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const bool on = words.size() > 1 && words[1] == "true";
    if (name == "timestamps" && on) fail("asks for time stamps, which are not supported");
    if (name == "targetlabel" && on) fail("is of a regression problem; a class label is needed");
    if (name == "dimensions" || name == "dimension" || name == "multivariate") {
      const std::string& last = words.back();
      if (name != "multivariate" || words.size() > 2) dimensions_ = count(last);
    }
    if (name == "univariate" && on) univariate_ = true;
    if (univariate_ && dimensions_ > 1)
      fail("contradicts @univariate true with " + std::to_string(dimensions_) + " dimensions");
    if (univariate_) dimensions_ = 1;
    if (name == "missing" && words.size() > 1) none_missing_ = words[1] == "false";
    if (name == "serieslength" && words.size() > 1) length_ = count(words[1]);
    if (name == "equallength") equal_length_ = on;
    if (name == "classlabel") declare_classes(words);
    if (name == "data" && part_.classes.empty()) fail("begins the data without @classLabel true");
    return name == "data";
  }

  void declare_classes(const std::vector<std::string>& words) {
    if (words.size() < 3 || words[1] != "true")
      fail("needs true and the class labels: data without classes are not supported");
    part_.classes.assign(words.begin() + 2, words.end());
    auto sorted = part_.classes;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) fail("declares the class " + in_quotes(*twice) + " twice");
  }

  Index count(const std::string& text) const {
    constexpr Index kMost = 1 << 20;
    Index value = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc{} || parsed.ptr != end || value < 1 || value > kMost)
      fail("says " + in_quotes(text) + "; allowed: 1 to 1048576");
    return value;
  }

  Series series(std::string_view line) {
    const std::vector<std::string_view> fields = cut(line, ':');
    const auto dimensions = static_cast<Index>(fields.size()) - 1;
    const Index expected =
        dimensions_ > 0 ? dimensions_ : (part_.series.empty() ? dimensions : part_.channels());
    if (dimensions < 1 || dimensions != expected)
      fail("has " + std::to_string(dimensions) + " dimensions before its label, not " +
           std::to_string(std::max<Index>(expected, 1)));
    Series result{.channels = {}, .label = label(trimmed(fields.back()))};
    for (Index d = 0; d < dimensions; ++d) {
      std::vector<Scalar>& channel = result.channels.emplace_back();
      for (const std::string_view value : cut(fields[static_cast<std::size_t>(d)], ','))
        channel.push_back(number(trimmed(value)));
      const auto length = static_cast<Index>(channel.size());
      if (equal_length_ && length_ == 0) length_ = length;
      if (equal_length_ && length != length_)
        fail("has " + std::to_string(length) + " values in dimension " + std::to_string(d + 1) +
             ", not " + std::to_string(length_) + " as with @equalLength true");
      result.steps = std::max(result.steps, length);
    }
    while (result.steps > 1 && is_padding(result, result.steps - 1)) --result.steps;
    return result;
  }

  static bool is_padding(const Series& series, Index step) {
    const auto at = static_cast<std::size_t>(step);
    return std::all_of(series.channels.begin(), series.channels.end(),
                       [&](const auto& c) { return at >= c.size() || c[at] == 0; });
  }

  int label(std::string_view text) const {
    const auto& known = part_.classes;
    const auto found = std::find(known.begin(), known.end(), text);
    if (found == known.end()) {
      std::string all;
      for (const std::string& name : known) all += " " + name;
      fail("has the label " + in_quotes(text) + "; @classLabel declares " +
           in_quotes(trimmed(all)));
    }
    return static_cast<int>(found - known.begin());
  }

  Scalar number(std::string_view text) const {
    if (text == "?" || text == "NaN" || text == "nan") {
      if (none_missing_) fail("has " + in_quotes(text) + ", but the header says @missing false");
      return kMissing;
    }
    if (text.starts_with('+')) text.remove_prefix(1);
    Scalar value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() ||
        !std::isfinite(value))
      fail("has " + in_quotes(text) + " where a number or ? is needed");
    return value;
  }

  Part part_;
  std::size_t line_ = 0;
  Index dimensions_ = 0;  // 0: not declared
  Index length_ = 0;
  bool equal_length_ = false;
  bool univariate_ = false;
  bool none_missing_ = false;
};

Examples to_examples(const Part& part, Index steps) {
  const Index channels = part.channels();
  const auto count = static_cast<Index>(part.series.size());
  Examples examples{.inputs = Matrix::Constant(count, steps * channels, kMissing), .labels = {}};
  for (Index i = 0; i < count; ++i) {
    const Series& s = part.series[static_cast<std::size_t>(i)];
    examples.labels.push_back(s.label);
    for (Index c = 0; c < channels; ++c) {
      const auto& values = s.channels[static_cast<std::size_t>(c)];
      const Index length = std::min(s.steps, static_cast<Index>(values.size()));
      for (Index t = 0; t < length; ++t)
        examples.inputs(i, t * channels + c) = values[static_cast<std::size_t>(t)];
    }
  }
  return examples;
}

// FILE_TRAIN.ts, FILE_TEST.ts, with .gz or without, or FILE alone.
std::string stem(std::string path) {
  for (const char* ending : {".gz", ".ts", "_TRAIN", "_TEST"})
    if (path.ends_with(ending)) path.resize(path.size() - std::string_view(ending).size());
  return path;
}

}  // namespace

Dataset load_time_series(const std::string& name, const std::string& path) {
  const std::filesystem::path common = stem(path);
  const std::string folder = common.has_parent_path() ? common.parent_path().string() : ".";
  const auto part = [&](const char* which) {
    return Parser(find_plain_or_gz(folder, common.filename().string() + which)).parse();
  };
  const Part train = part("_TRAIN.ts");
  const Part test = part("_TEST.ts");
  if (test.classes != train.classes || test.channels() != train.channels())
    throw std::invalid_argument("dataset: " + test.path + " has " +
                                std::to_string(test.channels()) + " dimensions and " +
                                std::to_string(test.classes.size()) + " classes, but " +
                                train.path + " has " + std::to_string(train.channels()) + " and " +
                                std::to_string(train.classes.size()) + ", or names others");
  const DataShape shape{.features = std::max(train.steps(), test.steps()) * train.channels(),
                        .classes = static_cast<int>(train.classes.size()),
                        .steps = std::max(train.steps(), test.steps()),
                        .channels = train.channels()};
  const auto longest = std::max(train.series.size(), test.series.size());
  if (static_cast<double>(longest) * static_cast<double>(shape.features) > kMaxValues)
    throw std::invalid_argument("dataset: " + train.path + " needs " + std::to_string(longest) +
                                " series of " + std::to_string(shape.features) +
                                " values once they are of one length; allowed: 2^30 in all");
  return {.name = name,
          .synthetic = false,
          .shape = shape,
          .train = to_examples(train, shape.steps),
          .test = to_examples(test, shape.steps)};
}

}  // namespace gradwire
