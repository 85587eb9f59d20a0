#include "analysis/value_list.h"

#include <catch2/catch.hpp>
#include <stdexcept>

namespace gradwire {

namespace {

using Texts = std::vector<std::string>;

Texts expand(const char* key, const char* json) {
  return expand_values(find_field(key), nlohmann::ordered_json::parse(json));
}

void check_refused(const char* key, const char* json, const char* message) {
  CAPTURE(json);
  CHECK_THROWS_WITH(expand(key, json), Catch::StartsWith(key) && Catch::Contains(message));
  CHECK_THROWS_AS(expand(key, json), std::invalid_argument);
}

}  // namespace

TEST_CASE("a value and a list are themselves") {
  CHECK(expand("workers", "4") == Texts{"4"});
  CHECK(expand("workers", "[2, \"8\"]") == Texts{"2", "8"});
  CHECK(expand("gradient-error", "true") == Texts{"true"});
  CHECK(expand("workers", "[]").empty());
}

TEST_CASE("a logarithmic range passes through the decades exactly") {
  CHECK(expand("bandwidth", R"({"from":"10Mbps","to":"100Gbps","points":5,"spacing":"log"})") ==
        Texts{"10Mbps", "100Mbps", "1Gbps", "10Gbps", "100Gbps"});
  CHECK(expand("latency", R"({"from":"1us","to":"100us","factor":10})") ==
        Texts{"1us", "10us", "0.1ms"});
}

TEST_CASE("a range counts by points, by step or by factor, and ends at its end or before it") {
  CHECK(expand("workers", R"({"from":2,"to":8,"points":4})") == Texts{"2", "4", "6", "8"});
  CHECK(expand("workers", R"({"from":2,"to":9,"step":3})") == Texts{"2", "5", "8"});
  CHECK(expand("workers", R"({"from":2,"to":63,"factor":2})") == Texts{"2", "4", "8", "16", "32"});
  CHECK(expand("workers", R"({"from":3,"to":3,"points":1})") == Texts{"3"});
  CHECK(expand("device-rate", R"({"from":"1Gf","to":"2Gf","step":"500Mf"})") ==
        Texts{"1Gf", "1.5Gf", "2Gf"});
}

TEST_CASE("a range of whole numbers gives each once, a range of others keeps its fractions") {
  CHECK(expand("workers", R"({"from":1,"to":4,"points":7,"spacing":"log"})") ==
        Texts{"1", "2", "3", "4"});
  CHECK(expand("learning-rate", R"({"from":0.25,"to":1.0,"points":4})") ==
        Texts{"0.25", "0.5", "0.75", "1"});
}

TEST_CASE("an algorithm's options may be lists: every combination, the last one fastest") {
  CHECK(expand("algorithm", R"(["dsgd", {"name":"rank-dad","rank":[2,4],"exchange":["star","x"]},
                               {"name":"dgc","overlap":true}])") ==
        Texts{"dsgd", "rank-dad:rank=2,exchange=star", "rank-dad:rank=2,exchange=x",
              "rank-dad:rank=4,exchange=star", "rank-dad:rank=4,exchange=x", "dgc:overlap=on"});
}

TEST_CASE("a range that says too little, too much or nonsense is refused by name") {
  check_refused("workers", R"({"from":2,"too":8,"points":2})", "unknown key too; did you mean to?");
  check_refused("workers", R"({"from":2,"to":8})", "one of points, step and factor");
  check_refused("workers", R"({"from":2,"to":8,"points":3,"step":2})", "one of points");
  check_refused("workers", R"({"from":8,"to":2,"points":3})", "from 8 is above to 2");
  check_refused("workers", R"({"to":2,"points":3})", "needs from");
  check_refused("workers", R"({"from":0,"to":8,"factor":2})", "starts above 0");
  check_refused("workers", R"({"from":1,"to":8,"factor":1})", "factor must be above 1");
  check_refused("workers", R"({"from":1,"to":8,"step":0})", "step must be above 0");
  check_refused("workers", R"({"from":1,"to":1e9,"step":1})", "more than 100000 values");
  check_refused("workers", R"({"from":1,"to":8,"points":1})", "one point cannot reach");
  check_refused("workers", R"({"from":1,"to":8,"step":1,"spacing":"log"})", "goes with points");
  check_refused("workers", R"({"from":1,"to":8,"points":2,"spacing":"cubic"})", "linear or log");
  check_refused("model", R"({"from":"a","to":"b","points":2})", "not a range");
}

TEST_CASE("a range whose ends have contradictory units is refused") {
  check_refused("bandwidth", R"({"from":"10Mbps","to":"50us","points":3})", "\"50us\" is not");
  check_refused("latency", R"({"from":"10us","to":1,"points":3})", "\"1\" is not a time");
}

TEST_CASE("a list in a list, a null and a nameless algorithm are refused") {
  check_refused("workers", "[[1]]", "list in a list");
  check_refused("workers", "[null]", "null is not");
  check_refused("algorithm", R"({"rank":2})", "needs a \"name\"");
  check_refused("algorithm", R"({"name":"rank-dad","rank":[]})", "rank: no value");
}

}  // namespace gradwire
