// `gradwire lab`: a program per worker, and what becomes of one that fails.
#include <catch2/catch.hpp>
#include <sstream>

#include "analysis/cli.h"

#ifdef GRADWIRE_WITH_GLOO

using namespace gradwire;
using Catch::Matchers::Contains;

namespace {

struct Outcome {
  int status;
  std::string out, err;
  bool has_lab() const { return err.find("no network lab") == std::string::npos; }
};

Outcome lab(std::vector<std::string> words) {
  words.insert(words.begin(), "lab");
  std::ostringstream out, err;
  const int status = run_command_line(words, {.out = out, .err = err});
  return {status, out.str(), err.str()};
}

}  // namespace

TEST_CASE("A program runs in every worker's network and sees its rank", "[lab]") {
  const Outcome found = lab({"--workers", "2", "--bandwidth", "1Gbps", "--", "sh", "-c",
                             "echo $RANK of $WORLD_SIZE by $MASTER_ADDR"});
  if (!found.has_lab()) {
    WARN("no network lab here");
    return;
  }
  CHECK(found.status == 0);
  CHECK(found.out == "0 of 2 by 10.77.0.1\n1 of 2 by 10.77.0.1\n");
}

TEST_CASE("A program that fails in a lab is quoted with its rank", "[lab]") {
  const Outcome found =
      lab({"--workers", "2", "--bandwidth", "1Gbps", "--", "sh", "-c", "echo oh no; exit $RANK"});
  if (!found.has_lab()) {
    WARN("no network lab here");
    return;
  }
  CHECK(found.status == 1);
  CHECK_THAT(found.err, Contains("worker 1: sh failed: oh no"));
  const Outcome missing = lab({"--workers", "2", "--bandwidth", "1Gbps", "--", "/no/such"});
  CHECK_THAT(missing.err, Contains("/no/such: No such file"));
}

TEST_CASE("A lab without a program or with several values is a usage error") {
  CHECK(lab({"--workers", "2"}).status == 2);
  CHECK(lab({"--workers", "2,4", "--", "true"}).status == 2);
  CHECK(lab({"--workers", "1", "--", "true"}).status == 3);
}

#endif
