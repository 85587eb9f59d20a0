#include "models/input_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/scratch.h"

namespace gradwire {

namespace {

std::string nested(int levels) {
  const auto n = static_cast<std::size_t>(levels);
  return std::string(n, '[') + std::string(n, ']');
}

}  // namespace

TEST_CASE("JSON of 100 000 levels is refused instead of crashing") {
  CHECK_NOTHROW(parse_input("f", nested(100)));
  CHECK_THROWS_WITH(parse_input("f", nested(101)),
                    "f has more than 100 levels of lists or objects");
  CHECK_THROWS_AS(parse_input("f", nested(100'000)), std::invalid_argument);
  CHECK_THROWS_AS(parse_input("f", std::string(100'000, '[')), std::invalid_argument);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK_THROWS_AS(parse_input("f", objects), std::invalid_argument);
}

TEST_CASE("JSON may begin with a byte order mark, and no object may have a key twice") {
  CHECK(parse_input("", "\xEF\xBB\xBF{\"a\": 1}").at("a") == 1);
  CHECK_THROWS_WITH(parse_input("f:", R"([{"a": 1, "a": 2}])"), "f: has \"a\" twice");
  CHECK_NOTHROW(parse_input("f:", R"([{"a": 1}, {"a": 2}])"));
}

TEST_CASE("what is no JSON is told in one short line without the parser's own codes") {
  const std::string junk = "\"" + std::string(10'000, 'x') + "\n";
  CHECK_THROWS_WITH(parse_input("f", junk), Catch::StartsWith("f is not JSON: parse error at") &&
                                                !Catch::Contains("json.exception"));
  try {
    parse_input("f", junk);
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()).size() < 250);
  }
}

TEST_CASE("a value of any size is shown in some sixty characters") {
  CHECK(shown({1, 2}) == "[1,2]");
  CHECK(shown(std::string(1000, 'x')).size() == 63);
}

TEST_CASE("what is no regular file is refused instead of hanging or being read without end") {
  const ScratchFolder folder;
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "fifo", std::string("/dev/zero")}) {
    CAPTURE(path);
    CHECK_THROWS_WITH(read_input("f", path), "f is not a regular file");
    CHECK_THROWS_WITH(check_input("f", path), "f is not a regular file");
  }
  CHECK_THROWS_WITH(read_input("f:", folder.path()), "f: is a folder");
  CHECK_THROWS_WITH(read_input("f:", folder / "none"),
                    "f: cannot be read: No such file or directory");
  CHECK_THROWS_WITH(read_input("f", "/dev/zero", {.pipes = true}), "f is not a regular file");
}

TEST_CASE("a pipe is read where pipes will do, and refused where nobody writes to it") {
  const ScratchFolder folder;
  const std::string path = folder / "fifo";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(path) << "a text"; });
  CHECK(read_input("f", path, {.pipes = true}) == "a text");
  writer.join();
  CHECK_THROWS_WITH(read_input("f", path, {.pipes = true}), "f is a pipe that nobody writes to");
}

TEST_CASE("a file is read whole, as far as wanted, or refused as too large") {
  const ScratchFile file("f", "twelve bytes");
  CHECK(read_input("f", file.path()) == "twelve bytes");
  CHECK(read_input("f", file.path(), {.first_bytes = 6}) == "twelve");
  CHECK_THROWS_WITH(read_input("f", file.path(), {.most_bytes = 11}), Catch::Contains("larger"));
}

}  // namespace gradwire
