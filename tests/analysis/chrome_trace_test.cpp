#include "analysis/chrome_trace.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace gradwire {

namespace {

using nlohmann::json;
using Kind = Span::Kind;

// One worker that computes, compresses, receives, and meanwhile sends on the second lane.
const Timeline kTimeline{{{Kind::kCharge, Phase::kBackward, 0, -1, 0, 0.0, 1e-3, 0},
                          {Kind::kCharge, Phase::kCompression, 0, -1, 0, 1e-3, 1.5e-3, 1},
                          {Kind::kReceive, Phase::kForward, 0, 1, 4096, 1.5e-3, 4e-3, 1},
                          {Kind::kSend, Phase::kForward, 1, 1, 64, 1e-3, 2e-3, 1},
                          {Kind::kCharge, Phase::kReduction, 0, -1, 0, 4e-3, 5e-3, 2},
                          {Kind::kFinish, Phase::kForward, 0, -1, 0, 5e-3, 6e-3, 2},
                          {Kind::kSend, Phase::kForward, 0, 1, 1, 6e-3, 6e-3, 2}},
                         {}};

std::vector<json> events(const std::string& phase) {
  std::vector<json> found;
  const json trace = json::parse(chrome_trace(kTimeline));
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == phase) found.push_back(event);
  return found;
}

}  // namespace

TEST_CASE("a trace holds each span in microseconds, those that take no time left out") {
  const auto spans = events("X");
  REQUIRE(spans.size() == 6 + 3);
  CHECK(spans[0]["name"] == "backward");
  CHECK(spans[0]["ts"] == 0);
  CHECK(spans[0]["dur"].get<double>() == Approx(1000));
  CHECK(spans[2]["name"] == "receive from 1");
  CHECK(spans[2]["ts"].get<double>() == Approx(1500));
  CHECK(spans[2]["args"]["bytes"] == 4096);
}

TEST_CASE("compute, compression, communication and the second lane have lanes of their own") {
  std::map<std::string, std::string> lane;
  for (const json& span : events("X")) lane[span["name"]] = span["cat"];
  CHECK(lane["backward"] == "compute");
  CHECK(lane["compression"] == "compression");
  CHECK(lane["receive from 1"] == "communication");
  CHECK(lane["reduction"] == "communication");
  CHECK(lane["wait for the second lane"] == "communication");
  CHECK(lane["send to 1"] == "overlapped communication");
}

TEST_CASE("a trace names the batch of every span and draws each batch of the main lane") {
  const auto spans = events("X");
  CHECK(spans[0]["args"]["batch"] == 0);
  CHECK(spans[2]["args"]["batch"] == 1);
  std::vector<std::string> drawn;
  for (const json& span : spans)
    if (span["cat"] == "batches")
      drawn.push_back(std::string(span["name"]) + " " +
                      std::to_string(std::lround(span["ts"].get<double>())) + "+" +
                      std::to_string(std::lround(span["dur"].get<double>())));
  CHECK(drawn ==
        std::vector<std::string>{"set-up 0+1000", "batch 1 1000+3000", "batch 2 4000+2000"});
}

TEST_CASE("every worker is a process with five named lanes") {
  std::set<std::string> names;
  for (const json& label : events("M"))
    names.insert(std::to_string(label["pid"].get<int>()) + " " +
                 std::string(label["args"]["name"]));
  CHECK(names == std::set<std::string>{"0 worker 0", "0 compute", "0 compression",
                                       "0 communication", "0 overlapped communication", "0 batches",
                                       "1 batches", "1 worker 1", "1 compute", "1 compression",
                                       "1 communication", "1 overlapped communication"});
  CHECK(json::parse(chrome_trace(kTimeline))["displayTimeUnit"] == "ms");
}

}  // namespace gradwire
