#include "sim/calibration.h"

#include <catch2/catch.hpp>

#include "calibration_file.h"

using namespace gradwire;
using Catch::Matchers::Contains;
using nlohmann::ordered_json;

namespace {

Calibration unlike_the_default() {
  Calibration c;
  c.cores = 3;
  c.one_machine = true;
  c.pinned = true;
  c.latency_s = 1e-5;
  c.payload_share = 0.95;
  c.acknowledgement_share = 0.02;
  c.rendezvous = true;
  c.send_buffer_bytes = 1e6;
  c.queue_bytes = 5e4;
  c.message_costs = {{{.send_s = 2e-5, .receive_s = 3e-5, .background_s = 1e-5, .burst_s = 2e-5},
                      {.send_s = 1e-5, .receive_s = 2e-5, .background_s = 0, .burst_s = 4e-5}}};
  c.byte_costs = {{.bit_per_s = 1e8, .send_s = 1e-9, .receive_s = 4e-9},
                  {.bit_per_s = 1e10, .send_s = 3e-9, .receive_s = 2e-9}};
  c.token_buckets = {{.up_to_bit_per_s = 2e8, .bytes = 1e4},
                     {.up_to_bit_per_s = 1e12, .bytes = 2e4}};
  c.switch_s = 3e-4;
  c.flop_per_s = 9e10;
  c.memory_byte_per_s = 2e10;
  return c;
}

ordered_json file_of(const Calibration& c) {
  return {
      {"format", kCalibrationFormat}, {"version", kCalibrationVersion}, {"parameters", to_json(c)}};
}

}  // namespace

TEST_CASE("A calibration is read back as it was written", "[calibration]") {
  const CalibrationFile file(unlike_the_default());
  CHECK(to_json(read_calibration(file.path())) == to_json(unlike_the_default()));
}

TEST_CASE("Between measured rates the cost of a byte follows the rate's logarithm",
          "[calibration]") {
  const Calibration c = unlike_the_default();
  CHECK(c.byte_cost(1e7).send_s == 1e-9);
  CHECK(c.byte_cost(1e9).send_s == Approx(2e-9));  // half way from 10^8 to 10^10
  CHECK(c.byte_cost(1e9).receive_s == Approx(3e-9));
  CHECK(c.byte_cost(1e11).receive_s == 2e-9);
}

TEST_CASE("A port's burst is that of the first bucket for its rate", "[calibration]") {
  const Calibration c = unlike_the_default();
  CHECK(c.burst_bytes(2e8) == 1e4);
  CHECK(c.burst_bytes(2.1e8) == 2e4);
  CHECK(Calibration{}.burst_bytes(1e8) == 0);
}

TEST_CASE("A prediction is as uncertain as the fits of its calibration together", "[calibration]") {
  ordered_json file = file_of(unlike_the_default());
  CHECK(read_calibration(CalibrationFile(file.dump()).path()).uncertainty == 0);
  file["fits"] = {{"streams", {{"points", 3}, {"median_relative_error", 0.04}}},
                  {"messages", {{"points", 9}, {"median_relative_error", 0.03}}}};
  CHECK(read_calibration(CalibrationFile(file.dump()).path()).uncertainty == Approx(0.05));
}

TEST_CASE("A bad calibration file is refused with its name, key and value", "[calibration]") {
  const auto refused = [](const ordered_json& json, const std::string& why) {
    const CalibrationFile file(json.dump());
    CHECK_THROWS_WITH(read_calibration(file.path()), Contains(file.path()) && Contains(why));
  };
  const ordered_json good = file_of(unlike_the_default());
  for (const auto& [key, value] : good["parameters"].items()) {
    ordered_json bad = good;
    bad["parameters"].erase(key);
    refused(bad, key + " is missing");
    bad["parameters"][key] = "x";
    refused(bad, key);
  }
  ordered_json bad = good;
  bad["version"] = 0;
  refused(bad, "version 0 is not 3");
  bad = good;
  bad["parameters"]["message_costs"].erase(1);
  refused(bad, "message_costs has 1 rows");
  bad = good;
  bad["format"] = "another";
  refused(bad, "format");
  bad = good;
  bad["parameters"]["payload_share"] = 1.5;
  refused(bad, "payload_share: 1.5 is not a number from 0.001 to 1");
  bad = good;
  bad["parameters"]["byte_costs"] = ordered_json::array();
  refused(bad, "byte_costs is empty");
  bad = good;
  bad["parameters"]["token_buckets"][1]["up_to_bit_per_s"] = 1;
  refused(bad, "up_to_bit_per_s: 1 is not");
  CHECK_THROWS_WITH(read_calibration("/nowhere/c.json"),
                    "/nowhere/c.json: cannot be read: No such file or directory");
  const CalibrationFile text(std::string("{"));
  CHECK_THROWS_WITH(read_calibration(text.path()), Contains("is not JSON"));
}

TEST_CASE("a calibration that is a folder or no JSON is refused as bad input in one clear line") {
  const ScratchFolder folder;
  CHECK_THROWS_WITH(read_calibration(folder.path()), Catch::EndsWith(": is a folder"));
  const ScratchFile file("c.json", "{\"format\": ");
  CHECK_THROWS_AS(read_calibration(file.path()), std::invalid_argument);
  CHECK_THROWS_WITH(read_calibration(file.path()),
                    Contains("is not JSON: parse error") && !Contains("json.exception"));
}
