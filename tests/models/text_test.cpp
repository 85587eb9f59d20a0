// Labelled texts: tokens, vocabulary, and what is refused.
#include <catch2/catch.hpp>
#include <set>

#include "models/dataset.h"
#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;

struct TextFolder : TemporaryFolder {
  TextFolder() {
    write("train.tsv", "Good, GOOD film!\t1\nbad<br />film \t0\n\n...\t0\n");
    write("test.tsv", "a good\tbad film of films\t1\n");
  }
  Dataset load(const std::string& options = "", const Fold& fold = {}) const {
    const std::string test = fold.count > 0 ? "" : ",test=" + path("test.tsv").string();
    return load_dataset("text:" + path("train.tsv").string() + test + options, 1, fold);
  }
};

TEST_CASE("Words are numbered by their frequency in the training part, from 2") {
  const Dataset data = TextFolder().load();
  CHECK(data.shape.steps == 3);
  CHECK(data.shape.features == 3);
  CHECK(data.shape.vocabulary == 5);  // padding, unknown, film, good, bad
  CHECK(data.shape.classes == 2);
  // film and good twice each, in alphabetical order, then bad; the third text has no words
  CHECK(data.train.inputs == Matrix{{3, 3, 2}, {4, 2, 0}, {1, 0, 0}});
  CHECK(data.train.labels == std::vector<int>{1, 0, 0});
  CHECK(data.test.inputs == Matrix{{1, 3, 4}});  // the label follows the last tab; cut at 3
  CHECK(data.test.labels == std::vector<int>{1});
}

TEST_CASE("Length and vocabulary are limited as asked") {
  const Dataset data = TextFolder().load(",length=2,vocabulary=4");
  CHECK(data.shape.steps == 2);
  CHECK(data.shape.vocabulary == 4);  // good twice, bad and film once each: bad is first
  CHECK(data.train.inputs == Matrix{{2, 2}, {3, 1}, {1, 0}});
}

TEST_CASE("A word that only held-out texts have is unknown") {
  const TextFolder folder;
  std::string lines;
  for (int i = 0; i < 10; ++i)
    lines += "word" + std::to_string(i) + "\t" + std::to_string(i % 2) + "\n";
  folder.write("train.tsv", lines);
  std::set<Scalar> held;
  for (int fold = 1; fold <= 5; ++fold) {
    const Dataset data = folder.load("", {.index = fold, .count = 5});
    CHECK(data.train.inputs.rows() == 8);
    CHECK(data.shape.vocabulary == 10);
    REQUIRE(data.test.inputs.rows() == 2);
    CHECK(data.test.inputs == Matrix{{1}, {1}});
  }
}

TEST_CASE("A lone file holds a fifth of its lines out for testing") {
  const TextFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "word\t" + std::to_string(i % 2) + "\n";
  folder.write("train.tsv", lines);
  const Dataset data = load_dataset("text:" + folder.path("train.tsv").string(), 1);
  CHECK(data.train.inputs.rows() == 16);
  CHECK(data.test.inputs.rows() == 4);
}

struct ReviewFolder : TemporaryFolder {
  ReviewFolder() {
    write("train/pos/0_9.txt", "great<br /><br />fun");
    write("train/neg/1_2.txt", "dull");
    write("train/neg/0_1.txt", "dull dull");
    write("test/pos/0_10.txt", "fun");
    write("test/neg/0_3.txt", "awful");
  }
  Dataset load() const { return load_dataset("aclImdb:" + path().string(), 1); }
};

TEST_CASE("An aclImdb folder is read in the order of its file names, neg before pos") {
  const Dataset data = ReviewFolder().load();
  CHECK(data.train.labels == std::vector<int>{0, 0, 1});
  CHECK(data.test.labels == std::vector<int>{0, 1});
  CHECK(data.train.inputs == Matrix{{2, 2}, {2, 0}, {4, 3}});
  CHECK(data.test.inputs == Matrix{{1, 0}, {3, 0}});
}

TEST_CASE("A malformed text file is refused with its name, line and what is wrong") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"", "has no lines"},
      {"no tab\n", "line 1 is not a text, a tab and a label: \"no tab\""},
      {"good\t1\n\xff\xfe binary\n", "line 2 is not a text, a tab and a label: \"?? binary\""},
      {"good\t1\nbad\t\n", "line 2 is not a text"},
      {"good\t1\n", "has 1 different labels in its training part"},
      {"good\t1\nfine\t2\n", "label \"0\", which no training text has"},
  }));
  const TextFolder folder;
  folder.write("train.tsv", text);
  folder.write("test.tsv", "bad\t0\n");
  CHECK_THROWS_AS(folder.load(), std::invalid_argument);
  CHECK_THROWS_WITH(folder.load(), Contains(message));
}

TEST_CASE("Bad options of a text are refused with what is allowed") {
  const auto* const option = GENERATE(",length=0", ",length=x", ",vocabulary=2", ",length", ",a=1",
                                      ",vocabulary=99999999999999999999", ",test=");
  CHECK_THROWS_WITH(TextFolder().load(option), Contains("allowed after the path"));
}

TEST_CASE("An incomplete aclImdb folder is refused with what is missing") {
  const ReviewFolder folder;
  folder.remove("test/pos/0_10.txt");
  CHECK_THROWS_WITH(folder.load(), Contains("test/pos has no .txt files"));
  folder.remove("test/pos");
  CHECK_THROWS_WITH(folder.load(), Contains("test/pos is not a folder"));
}

TEST_CASE("An option of a text that is given twice is refused") {
  CHECK_THROWS_WITH(TextFolder().load(",length=5,length=6"), Contains("length is given twice"));
}

TEST_CASE("A text of too few lines is asked for a test file, not for a fold that nobody gave") {
  const TextFolder folder;
  folder.write("one.tsv", "good\t1\n");
  CHECK_THROWS_WITH(load_dataset("text:" + folder.path("one.tsv").string(), 1),
                    Contains("has 1 texts; at least 5") && Contains("test=FILE"));
}

TEST_CASE("A byte order mark is no part of the first word") {
  const TextFolder folder;
  const Matrix inputs = folder.load().train.inputs;
  folder.write("train.tsv", "\xEF\xBB\xBF" + folder.read("train.tsv"));
  CHECK(folder.load().train.inputs == inputs);
}

}  // namespace
}  // namespace gradwire
