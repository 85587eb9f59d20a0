#include "analysis/text.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "models/options.h"

namespace gradwire {

TEST_CASE("splitting and joining a list are inverse") {
  for (const std::string text : {"", "a", "a,b", ",", "a,,b,"}) {
    CAPTURE(text);
    CHECK(join(split(text, ','), ",") == text);
  }
  CHECK(split("2,4,8", ',') == std::vector<std::string>{"2", "4", "8"});
}

TEST_CASE("an entry's explanation is broken between words and lines up") {
  CHECK(entry("--a", "first", 8) == "--a     first\n");
  CHECK(entry("--longer", "first", 8) == "--longer\n        first\n");
  const std::string word(60, 'x');
  CHECK(entry("--a", word + " " + word, 8) == "--a     " + word + "\n        " + word + "\n");
}

TEST_CASE("a near miss is suggested and a far one is not") {
  const std::vector<std::string> known{"run", "list", "platform", "collective"};
  CHECK(nearest("rn", known) == "run");
  CHECK(nearest("colective", known) == "collective");
  CHECK(nearest("plat", known) == "platform");  // a beginning
  CHECK(nearest("validate", known).empty());
  CHECK(nearest("xyz", known).empty());
  CHECK(did_you_mean("lsit", known) == "; did you mean list?");
}

TEST_CASE("an integer is read whole and within its range") {
  CHECK(parse_integer("workers", "12", 1) == 12);
  for (const char* text :
       {"", "-3", "0", "2.5", "2x", " 2", "1e3", "99999999999999999999", "nan"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_integer("workers", text, 1), std::invalid_argument);
  }
  CHECK_THROWS_WITH(parse_integer("workers", "-3", 1),
                    "workers: \"-3\" is not an integer of at least 1");
  CHECK_THROWS_WITH(parse_integer("jobs", "9", 0, 4), "jobs: \"9\" is not an integer from 0 to 4");
}

TEST_CASE("a real number is finite and within its range") {
  CHECK(parse_real("momentum", "0.5", 0, 1) == 0.5);
  for (const char* text : {"nan", "inf", "-0.1", "1.5", "half", ""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_real("momentum", text, 0, 1), std::invalid_argument);
  }
}

TEST_CASE("the shortest text of a number reads back as the same number") {
  CHECK(shortest(0.1) == "0.1");
  for (const double x : {1.0 / 3, 1e308, 0.0, 50e-6}) CHECK(std::stod(shortest(x)) == x);
}

}  // namespace gradwire
