#include "models/dataset_formats.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "models/input_file.h"
#include "models/random.h"

namespace gradwire {

namespace {

Examples take(const Examples& from, const std::vector<bool>& chosen, bool wanted) {
  std::vector<Index> rows;
  Examples taken;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != wanted) continue;
    rows.push_back(static_cast<Index>(i));
    taken.labels.push_back(from.labels[i]);
  }
  taken.inputs.resize(static_cast<Index>(rows.size()), from.inputs.cols());
  for (std::size_t i = 0; i < rows.size(); ++i)
    taken.inputs.row(static_cast<Index>(i)) = from.inputs.row(rows[i]);
  return taken;
}

}  // namespace

std::vector<bool> held_out(std::size_t n, const Fold& fold, std::uint64_t seed) {
  std::vector<bool> held(n, false);
  if (fold.count == 0) return held;
  const auto count = static_cast<std::size_t>(fold.count);
  if (fold.index < 1 || fold.index > fold.count || count < 2 || count > n)
    throw std::invalid_argument("fold: " + std::to_string(fold.index) + "/" +
                                std::to_string(fold.count) + " of " + std::to_string(n) +
                                " training examples; allowed: I/K with 1 <= I <= K and K from 2 to "
                                "the number of examples");
  const auto order =
      random_permutation(static_cast<std::uint32_t>(n), RandomStream(seed, Purpose::kFold));
  const auto index = static_cast<std::size_t>(fold.index);
  for (std::size_t i = n * (index - 1) / count; i < n * index / count; ++i) held[order[i]] = true;
  return held;
}

void hold_out(Dataset& data, const Fold& fold, std::uint64_t seed) {
  if (fold.count == 0) return;
  const std::vector<bool> held = held_out(data.train.labels.size(), fold, seed);
  data.test = take(data.train, held, true);
  data.train = take(data.train, held, false);
}

void standardize(Dataset& data) {
  const DataShape& shape = data.shape;
  const bool planes = shape.height * shape.width > 1;
  const auto channel = [&](Index column) {
    return planes ? column / (shape.height * shape.width) : column % shape.channels;
  };
  Eigen::ArrayXd count = Eigen::ArrayXd::Zero(shape.channels), sum = count, squares = count;
  const auto over_training = [&](auto&& use) {
    for (Index i = 0; i < data.train.inputs.rows(); ++i)
      for (Index j = 0; j < shape.features; ++j) {
        const auto value = static_cast<double>(data.train.inputs(i, j));
        if (!std::isnan(value)) use(channel(j), value);
      }
  };
  over_training([&](Index c, double value) {
    count[c] += 1;
    sum[c] += value;
  });
  const Eigen::ArrayXd mean = sum / count.max(1);
  over_training([&](Index c, double value) { squares[c] += std::pow(value - mean[c], 2); });
  Eigen::ArrayXd scale = (squares / count.max(1)).sqrt();
  for (double& s : scale) s = s > 0 && std::isfinite(s) ? 1 / s : 0;  // a constant tells nothing
  for (Examples* part : {&data.train, &data.test})
    for (Index i = 0; i < part->inputs.rows(); ++i)
      for (Index j = 0; j < shape.features; ++j) {
        Scalar& x = part->inputs(i, j);
        const Index c = channel(j);
        x = std::isnan(x) ? Scalar{0}
                          : static_cast<Scalar>((static_cast<double>(x) - mean[c]) * scale[c]);
      }
}

std::string find_plain_or_gz(const std::string& folder, const std::string& name) {
  for (const std::string& candidate : {name, name + ".gz"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / candidate;
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path.string();
    if (error == std::errc::permission_denied) check_input("dataset: " + path.string(), path);
  }
  throw std::invalid_argument("dataset: " + folder + " has no file " + name + " or " + name +
                              ".gz");
}

void check_folder(const std::string& folder) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(folder, error);
  if (error == std::errc::permission_denied) check_input("dataset: " + folder, folder);
  if (!is_folder) throw std::invalid_argument("dataset: " + folder + " is not a folder");
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string result = "\"";
  for (const char c : text.substr(0, kLongest)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > kLongest ? "...\"" : "\"");
}

Lines::Lines(std::string_view text) : rest_(without_mark(text)) {}

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string_view> cut(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace gradwire
