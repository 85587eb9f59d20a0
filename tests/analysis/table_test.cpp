#include "analysis/table.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "analysis/text.h"

namespace gradwire {

namespace {

Result result(const std::string& algorithm, int workers, double batch_s) {
  Result r;
  r.scenario.platform = "star-1g";
  r.scenario.algorithm = parse_algorithm_spec(algorithm);
  r.scenario.workers = workers;
  r.batch_time_s = summarize({batch_s});
  r.bytes_sent_by_worker = {1e6, 3e6};
  r.loss = {2.0, 1.5};
  return r;
}

// The line that holds `text`.
std::string line_with(const std::string& table, const std::string& text) {
  for (const std::string& line : split(table, '\n'))
    if (line.find(text) != std::string::npos) return line;
  return "";
}

}  // namespace

TEST_CASE("columns line up, the first to the left and the others to the right") {
  CHECK(align({{"name", "x"}, {"title of a group"}, {"a", "100"}}) ==
        "name    x\ntitle of a group\na     100\n");
}

TEST_CASE("speed-up is against the first algorithm of the same setting, the fastest marked") {
  const std::string table = results_table({result("dsgd", 2, 0.2), result("dad", 2, 0.1),
                                           result("dsgd", 4, 0.3), result("dad", 4, 0.6)});
  CHECK_THAT(table, Catch::Contains("2 workers, star-1g's bandwidth\n  dsgd"));
  CHECK_THAT(line_with(table, "* dad"), Catch::Contains("100 ms") && Catch::Contains("2.00x"));
  CHECK_THAT(line_with(table, "* dsgd"), Catch::Contains("300 ms") && Catch::Contains("1.00x"));
  CHECK_THAT(line_with(table, "600 ms"), Catch::Contains("0.50x") && Catch::Contains("1.5000"));
  CHECK_THAT(table, Catch::Contains("2.00 MB"));  // mean over workers
}

TEST_CASE("one algorithm alone makes one row per setting, without speed-up") {
  Result fast = result("dsgd", 2, 0.1);
  fast.scenario.bandwidth_bit_per_s = 1e9;
  fast.scenario.latency_s = 50e-6;
  const std::string table = results_table({fast, result("dsgd", 1, 0.1)});
  CHECK_THAT(table, Catch::StartsWith("dsgd ") && !Catch::Contains("speed-up"));
  CHECK_THAT(table, Catch::Contains("\n2 workers, 1 Gbit/s, latency 50.0 us "));
  CHECK_THAT(table, Catch::Contains("\n1 worker, star-1g's bandwidth "));
}

TEST_CASE("gradient error and rank have a column where a result has them") {
  Result r = result("rank-dad", 2, 0.1);
  r.gradient_relative_error = {0.5, 0.012};
  r.metrics = {{"effective_rank/fc1", {4, 2}}, {"effective_rank/fc2", {1, 1}}};
  const std::string table = results_table({result("dsgd", 2, 0.1), r});
  CHECK_THAT(line_with(table, "algorithm"), Catch::EndsWith("grad.err  rank"));
  CHECK_THAT(line_with(table, "rank-dad"), Catch::EndsWith("1.2e-02   2.0"));
  CHECK_THAT(line_with(table, "* dsgd"), Catch::EndsWith("-     -"));
}

TEST_CASE("a diverged algorithm is not marked as the fastest") {
  Result r = result("dad", 2, 0.1);
  r.loss.back() = NAN;
  const std::string table = results_table({result("dsgd", 2, 0.2), r});
  CHECK_THAT(line_with(table, "200 ms"), Catch::StartsWith("* dsgd"));
  CHECK_THAT(line_with(table, "100 ms"), Catch::StartsWith("  dad"));
  Result other = result("dsgd", 2, 0.2);
  other.loss.back() = NAN;
  CHECK_THAT(results_table({other, r}), !Catch::Contains("* dsgd") && !Catch::Contains("* dad"));
}

TEST_CASE("accuracy and AUC of the last evaluation have a column where there is one") {
  Result r = result("dsgd", 2, 0.1);
  r.evaluations = {{.batch = 1, .loss = 2, .accuracy = 0.25, .macro_auc = 0.5},
                   {.batch = 2, .loss = 1, .accuracy = 0.75, .macro_auc = 0.875}};
  CHECK_THAT(results_table({r}), Catch::Contains("0.750  0.875"));
}

TEST_CASE("a diverged run says so in place of its loss") {
  Result r = result("dsgd", 2, 0.1);
  r.loss.back() = NAN;
  CHECK_THAT(line_with(results_table({r}), "2 workers"), Catch::EndsWith("diverged"));
}

TEST_CASE("lines stay within 100 columns, a long name on a line of its own") {
  const std::string name =
      "dsgd:bucket-bytes=123456,exchange=halving-doubling,overlap=off,wire=fp16";
  Result long_one = result(name, 1024, 0.2);
  long_one.gradient_relative_error = {1e-9};
  const std::string table = results_table({result("dsgd", 1024, 0.1), long_one});
  for (const std::string& line : split(table, '\n')) CHECK(line.size() <= 100);
  CHECK_THAT(table, Catch::Contains("\n  " + name + "\n"));
}

}  // namespace gradwire
