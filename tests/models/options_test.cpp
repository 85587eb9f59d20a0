// Options of algorithms and networks: defaults, overrides, and messages that name what is allowed.
#include "models/options.h"

#include <catch2/catch.hpp>

using namespace gradwire;

namespace {

const std::vector<OptionSpec>& specs() {
  static const std::vector<OptionSpec> all{
      {"overlap", "off", "", {"on", "off"}}, {"rank", "4", "", {}}, {"theta", "0.5", "", {}}};
  return all;
}

Options options(const std::map<std::string, std::string>& given = {}) {
  return {"algorithm rank-dad", specs(), given};
}

}  // namespace

TEST_CASE("options have their defaults unless given") {
  CHECK(options().integer("rank", 1) == 4);
  CHECK(options().real("theta", 0, 1) == 0.5);
  CHECK_FALSE(options().flag("overlap"));
  CHECK(options().choice("overlap") == "off");
  CHECK(options({{"overlap", "on"}}).flag("overlap"));
  CHECK(options({{"rank", "8"}}).integer("rank", 1) == 8);
  CHECK(options({{"theta", "1e-3"}}).real("theta", 0, 1) == 1e-3);
  CHECK(options({{"rank", "8"}}).values() ==
        std::map<std::string, std::string>{{"overlap", "off"}, {"rank", "8"}, {"theta", "0.5"}});
}

TEST_CASE("an unknown option is refused, naming those that exist") {
  CHECK_THROWS_AS(options({{"rnak", "3"}}), std::invalid_argument);
  CHECK_THROWS_WITH(options({{"rnak", "3"}}),
                    "algorithm rank-dad: unknown option rnak=3; allowed: overlap, rank, theta");
  CHECK_THROWS_WITH(Options("algorithm dsgd", {}, {{"rank", "3"}}),
                    "algorithm dsgd: unknown option rank=3; it has none");
}

TEST_CASE("a choice outside its list is refused, naming the list") {
  CHECK_THROWS_WITH(options({{"overlap", "yes"}}),
                    "algorithm rank-dad: overlap=yes; allowed: on, off");
}

TEST_CASE("an integer out of range or with anything else around it is refused") {
  for (const char* text : {"0", "65", "-1", "3.5", "3x", "", " 3", "99999999999999999999"})
    CHECK_THROWS_WITH(
        options({{"rank", text}}).integer("rank", 1, 64),
        "algorithm rank-dad: rank=" + std::string(text) + "; allowed: an integer from 1 to 64");
  CHECK_THROWS_WITH(options({{"rank", "0"}}).integer("rank", 1),
                    "algorithm rank-dad: rank=0; allowed: an integer of at least 1");
  CHECK(options({{"rank", "64"}}).integer("rank", 1, 64) == 64);
}

TEST_CASE("a number out of range, not finite or with anything else around it is refused") {
  for (const char* text : {"-0.1", "1.5", "nan", "inf", "0.5x", "", "0,5"})
    CHECK_THROWS_WITH(
        options({{"theta", text}}).real("theta", 0, 1),
        "algorithm rank-dad: theta=" + std::string(text) + "; allowed: a number from 0 to 1");
  CHECK(options({{"theta", "1"}}).real("theta", 0, 1) == 1);
}

TEST_CASE("asking for an option that is not declared is a mistake of the algorithm") {
  CHECK_THROWS_AS(options().flag("wire"), std::logic_error);
}

TEST_CASE("a specification is a name and its options") {
  const Spec plain = parse_spec("algorithm", "dsgd");
  CHECK(plain.name == "dsgd");
  CHECK(plain.options.empty());
  const Spec spec = parse_spec("algorithm", "rank-dad:rank=8,bias=exact,note=a=b");
  CHECK(spec.name == "rank-dad");
  CHECK(spec.options ==
        std::map<std::string, std::string>{{"rank", "8"}, {"bias", "exact"}, {"note", "a=b"}});
}

TEST_CASE("a specification's text is canonical and reads back as itself") {
  const Spec spec = parse_spec("algorithm", "rank-dad:theta=0.1,rank=8");
  CHECK(spec.text() == "rank-dad:rank=8,theta=0.1");
  CHECK(parse_spec("algorithm", spec.text()).options == spec.options);
  CHECK(parse_spec("algorithm", "dsgd").text() == "dsgd");
}

TEST_CASE("a malformed specification is refused") {
  CHECK_THROWS_WITH(parse_spec("algorithm", ""), "algorithm \"\": no name");
  CHECK_THROWS_WITH(parse_spec("algorithm", ":rank=3"), "algorithm \":rank=3\": no name");
  CHECK_THROWS_WITH(parse_spec("algorithm", "dsgd:"), "algorithm \"dsgd:\": \"\" is not key=value");
  CHECK_THROWS_WITH(parse_spec("algorithm", "dsgd:ring"),
                    "algorithm \"dsgd:ring\": \"ring\" is not key=value");
  CHECK_THROWS_WITH(parse_spec("algorithm", "dsgd:=ring"),
                    "algorithm \"dsgd:=ring\": \"=ring\" is not key=value");
  CHECK_THROWS_WITH(parse_spec("algorithm", "dsgd:a=1,"),
                    "algorithm \"dsgd:a=1,\": \"\" is not key=value");
  CHECK_THROWS_WITH(parse_spec("algorithm", "dsgd:a=1,a=2"),
                    "algorithm \"dsgd:a=1,a=2\": a is given twice");
}
