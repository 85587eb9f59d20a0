#include "analysis/command_line.h"

#include <catch2/catch.hpp>

namespace gradwire {

namespace {

const std::vector<Flag> kFlags{{"workers", "N", ""},
                               {"seed", "S", ""},
                               {"json", "", ""},
                               {"gradient-error", "", ""},
                               {"algorithm", "NAME ...", "", "", /*several=*/true}};

Arguments parse(const std::vector<std::string>& words) { return {kFlags, words}; }

}  // namespace

TEST_CASE("a flag's value follows it as a word or after an equals sign") {
  CHECK(parse({"--workers", "4"}).value("workers") == "4");
  CHECK(parse({"--workers=4"}).value("workers") == "4");
  CHECK(parse({}).value("workers", "2") == "2");
}

TEST_CASE("a negative number is a value, not a flag") {
  CHECK(parse({"--workers", "-3"}).value("workers") == "-3");
}

TEST_CASE("a switch takes no word from its neighbours") {
  const Arguments arguments = parse({"--json", "check", "--gradient-error", "file.xml"});
  CHECK(arguments.has("json"));
  CHECK(arguments.value("gradient-error") == "on");
  CHECK(arguments.positional() == std::vector<std::string>{"check", "file.xml"});
  CHECK(parse({"--gradient-error=off"}).value("gradient-error") == "off");
}

TEST_CASE("algorithms are several words or a repeated flag, in order") {
  for (const auto& words : {std::vector<std::string>{"--algorithm", "b:rank=2,x=1", "a", "--json"},
                            {"--algorithm", "b:rank=2,x=1", "--json", "--algorithm", "a"}}) {
    Grid grid;
    parse(words).apply_to(grid);
    CHECK(grid.echo()["algorithm"].dump() == R"(["b:rank=2,x=1","a"])");
  }
}

TEST_CASE("an unknown flag is refused with the nearest one, and no flag may be shortened") {
  CHECK_THROWS_AS(parse({"--worker", "4"}), UsageError);
  CHECK_THROWS_WITH(parse({"--worker", "4"}), "unknown option --worker; did you mean --workers?");
  CHECK_THROWS_WITH(parse({"--worker=4"}), "unknown option --worker; did you mean --workers?");
  CHECK_THROWS_WITH(parse({"--frobnicate"}), "unknown option --frobnicate");
}

TEST_CASE("a flag without its value, or given twice, is a usage error") {
  CHECK_THROWS_WITH(parse({"--workers"}), "--workers needs a value");
  CHECK_THROWS_AS(parse({"--workers="}), UsageError);
  CHECK_THROWS_AS(parse({"--workers", "--json"}), UsageError);
  CHECK_THROWS_WITH(parse({"--seed", "1", "--seed", "2"}), "--seed is given twice");
}

TEST_CASE("comma lists set a grid's axes") {
  Grid grid;
  parse({"--workers", "2,4"}).apply_to(grid);
  CHECK(grid.points().size() == 2);
}

TEST_CASE("help shows every flag in at most 100 columns") {
  for (const Command& command :
       {run_command(), list_command(), platform_command(), collective_command()}) {
    const std::string help = command_help(command);
    CHECK_THAT(help, Catch::Contains("Examples:\n  gradwire " + command.name));
    for (const Flag& flag : command.flags) CHECK_THAT(help, Catch::Contains("--" + flag.key));
    std::size_t longest = 0;
    for (std::size_t begin = 0; begin < help.size();) {
      const std::size_t end = help.find('\n', begin);
      longest = std::max(longest, end - begin);
      begin = end + 1;
    }
    CHECK(longest <= 100);
  }
}

}  // namespace gradwire
