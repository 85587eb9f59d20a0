// Labelled texts: lines `text TAB label` (UCI's sentiment sentences), or the folders of the Large
// Movie Review data set (aclImdb, Maas et al. 2011).  Words are runs of letters, digits,
// apostrophes and bytes beyond ASCII, in lower case; markup such as <br /> separates.  The
// vocabulary holds the most frequent words of the training part; token 0 is padding, 1 any other
// word.  Longer texts lose their end.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "models/dataset_formats.h"
#include "models/gzip_reader.h"
#include "models/input_file.h"

namespace gradwire {

namespace {

namespace fs = std::filesystem;

constexpr Index kFirstWord = 2;
constexpr std::size_t kMaxClasses = 1000;
constexpr double kMaxValues = 1 << 30;

struct Text {
  std::vector<std::string> words;
  std::string label;
};

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument("dataset: " + what); }

struct TextOptions {
  std::string path;
  std::string test;
  Index length = 512;        // the rank-dAD authors' values for IMDB
  Index vocabulary = 50000;  // with padding and the unknown word
};

TextOptions parse_options(const std::string& name, const std::string& arguments) {
  TextOptions options;
  std::set<std::string_view> given;
  for (const std::string_view argument : cut(arguments, ',')) {
    const std::size_t equals = argument.find('=');
    const std::string_view key = argument.substr(0, equals);
    if (options.path.empty() && equals == std::string_view::npos) {
      options.path = argument;
      continue;
    }
    const std::string value(equals == std::string_view::npos ? "" : argument.substr(equals + 1));
    Index number = 0;
    const char* const end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, number);
    const bool good = parsed.ec == std::errc{} && parsed.ptr == end && number <= 1 << 20;
    if (key == "test" && !value.empty()) {
      options.test = value;
    } else if (key == "length" && good && number >= 1) {
      options.length = number;
    } else if (key == "vocabulary" && good && number > kFirstWord) {
      options.vocabulary = number;
    } else {
      fail("\"" + name + "\": " + in_quotes(argument) +
           "; allowed after the path: test=FILE, length=1 to 1048576, vocabulary=3 to 1048576");
    }
    if (!given.insert(key).second)
      fail("\"" + name + "\": " + std::string(key) + " is given twice");
  }
  return options;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\'' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Up to `most` words.
std::vector<std::string> words_of(std::string_view text, Index most) {
  constexpr std::size_t kLongestTag = 12;
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (std::size_t i = 0; i < text.size() && static_cast<Index>(words.size()) < most; ++i) {
    char c = text[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (is_word(c)) {
      word += c;
      continue;
    }
    end_word();
    if (c != '<') continue;
    const std::size_t close = text.substr(i, kLongestTag).find('>');
    if (close != std::string_view::npos) i += close;
  }
  if (static_cast<Index>(words.size()) < most) end_word();
  return words;
}

std::vector<Text> read_lines(const std::string& path, const TextOptions& options) {
  const std::string content = GzipReader(path).read_all();
  Lines lines(content);
  std::vector<Text> texts;
  for (std::string_view line; lines.next(line);) {
    if (trimmed(line).empty()) continue;
    const std::size_t tab = line.rfind('\t');
    const std::string_view label =
        tab == std::string_view::npos ? "" : trimmed(line.substr(tab + 1));
    if (label.empty())
      fail(path + " line " + std::to_string(lines.number()) +
           " is not a text, a tab and a label: " + in_quotes(line));
    texts.push_back({words_of(line.substr(0, tab), options.length), std::string(label)});
  }
  if (texts.empty()) fail(path + " has no lines");
  return texts;
}

std::vector<Text> read_folder(const std::string& folder, const TextOptions& options) {
  std::vector<Text> texts;
  for (const char* label : {"neg", "pos"}) {
    const fs::path path = fs::path(folder) / label;
    check_folder(path.string());
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".txt") files.push_back(at->path());
    if (error) fail(path.string() + " cannot be read: " + error.message());
    if (files.empty()) fail(path.string() + " has no .txt files");
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files)
      texts.push_back(
          {words_of(without_mark(GzipReader(file.string()).read_all()), options.length), label});
  }
  return texts;
}

using Vocabulary = std::unordered_map<std::string, Index>;

Vocabulary make_vocabulary(const std::vector<Text>& texts, Index size) {
  std::map<std::string, Index> counts;
  for (const Text& text : texts)
    for (const std::string& word : text.words) ++counts[word];
  std::vector<std::pair<Index, std::string>> ranked;
  for (const auto& [word, count] : counts) ranked.emplace_back(-count, word);
  std::sort(ranked.begin(), ranked.end());
  Vocabulary vocabulary;
  for (const auto& [count, word] : ranked) {
    const Index token = kFirstWord + static_cast<Index>(vocabulary.size());
    if (token >= size) break;
    vocabulary.emplace(word, token);
  }
  return vocabulary;
}

std::map<std::string, int> make_classes(const std::string& path, const std::vector<Text>& texts) {
  std::set<std::string> labels;
  for (const Text& text : texts) labels.insert(text.label);
  if (labels.size() < 2 || labels.size() > kMaxClasses)
    fail(path + " has " + std::to_string(labels.size()) +
         " different labels in its training part; allowed: 2 to 1000");
  std::map<std::string, int> classes;
  for (const std::string& label : labels) classes.emplace(label, static_cast<int>(classes.size()));
  return classes;
}

Examples encode(const std::vector<Text>& texts, const std::map<std::string, int>& classes,
                const Vocabulary& vocabulary, Index steps) {
  const auto count = static_cast<Index>(texts.size());
  Examples examples{.inputs = Matrix::Zero(count, steps), .labels = {}};
  for (Index i = 0; i < count; ++i) {
    const Text& text = texts[static_cast<std::size_t>(i)];
    const auto label = classes.find(text.label);
    if (label == classes.end())
      fail("a text of the test part has the label " + in_quotes(text.label) +
           ", which no training text has");
    examples.labels.push_back(label->second);
    if (text.words.empty()) examples.inputs(i, 0) = kFirstWord - 1;  // not all padding
    const Index length = std::min(steps, static_cast<Index>(text.words.size()));
    for (Index t = 0; t < length; ++t) {
      const auto word = vocabulary.find(text.words[static_cast<std::size_t>(t)]);
      examples.inputs(i, t) =
          static_cast<Scalar>(word == vocabulary.end() ? kFirstWord - 1 : word->second);
    }
  }
  return examples;
}

Dataset to_dataset(const std::string& name, const TextOptions& options, std::vector<Text> texts,
                   std::vector<Text> test, const Fold& fold, std::uint64_t seed) {
  std::vector<Text> train;
  const std::vector<bool> held = held_out(texts.size(), fold, seed);
  if (fold.count > 0) test.clear();
  for (std::size_t i = 0; i < texts.size(); ++i)
    (held[i] ? test : train).push_back(std::move(texts[i]));
  Index steps = 1;
  for (const Text& text : train) steps = std::max(steps, static_cast<Index>(text.words.size()));
  if (static_cast<double>(steps) * static_cast<double>(train.size() + test.size()) > kMaxValues)
    fail(options.path +
         " has more than 2^30 tokens once its texts are of one length; lower "
         "length=" +
         std::to_string(options.length));
  const auto classes = make_classes(options.path, train);
  const Vocabulary vocabulary = make_vocabulary(train, options.vocabulary);
  return {.name = name,
          .synthetic = false,
          .shape = {.features = steps,
                    .classes = static_cast<int>(classes.size()),
                    .steps = steps,
                    .vocabulary = kFirstWord + static_cast<Index>(vocabulary.size())},
          .train = encode(train, classes, vocabulary, steps),
          .test = encode(test, classes, vocabulary, steps)};
}

}  // namespace

Dataset load_text(const std::string& name, const std::string& arguments, const Fold& fold,
                  std::uint64_t seed) {
  constexpr Fold kFifth{.index = 1, .count = 5};
  const TextOptions options = parse_options(name, arguments);
  auto train = read_lines(options.path, options);
  std::vector<Text> test;
  if (!options.test.empty()) test = read_lines(options.test, options);
  const bool split = options.test.empty() && fold.count == 0;
  if (split && train.size() < static_cast<std::size_t>(kFifth.count))
    fail(options.path + " has " + std::to_string(train.size()) +
         " texts; at least 5 are needed to hold a fifth out for testing, or give test=FILE");
  return to_dataset(name, options, std::move(train), std::move(test), split ? kFifth : fold, seed);
}

Dataset load_text_folder(const std::string& name, const std::string& arguments, const Fold& fold,
                         std::uint64_t seed) {
  const TextOptions options = parse_options(name, arguments);
  check_folder(options.path);
  auto train = read_folder((fs::path(options.path) / "train").string(), options);
  auto test = read_folder((fs::path(options.path) / "test").string(), options);
  return to_dataset(name, options, std::move(train), std::move(test), fold, seed);
}

}  // namespace gradwire
