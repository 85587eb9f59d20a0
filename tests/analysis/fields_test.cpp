#include "analysis/fields.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <stdexcept>

#include "tests/scratch.h"

namespace gradwire {

namespace {

Grid grid_of(const std::string& json) {
  const ScratchFile file("scenario.json", json);
  Grid grid;
  load_scenario_file(file.path(), grid);
  return grid;
}

}  // namespace

TEST_CASE("every field's text reads back as the same value, defaults included") {
  std::set<std::string> keys;
  for (const Field& field : scenario_fields()) {
    CAPTURE(field.key);
    CHECK(keys.insert(field.key).second);
    CHECK_FALSE(field.help.empty());
    const Scenario defaults;
    Scenario scenario;
    if (field.key != "platform") field.set(scenario, field.get(defaults));
    CHECK(field.get(scenario) == field.get(defaults));
  }
}

TEST_CASE("setting one field changes no other") {
  const std::map<std::string, std::string> others{{"platform", "x.xml"},
                                                  {"hosts", "node-*"},
                                                  {"exact-replay", "true"},
                                                  {"workers-per-host", "2"},
                                                  {"network-model", "simgrid:LV08"},
                                                  {"workers", "7"},
                                                  {"bandwidth", "2Gbps"},
                                                  {"latency", "20ms"},
                                                  {"compute", "10ms,20ms"},
                                                  {"device", "t4-fp32"},
                                                  {"math", "none"},
                                                  {"device-rate", "1Tf"},
                                                  {"device-memory-rate", "160Gbps"},
                                                  {"model", "mnistnet"},
                                                  {"activation", "tanh"},
                                                  {"dataset", "synthetic"},
                                                  {"fold", "2/5"},
                                                  {"split", "by-class"},
                                                  {"batch-size", "8"},
                                                  {"batches", "9"},
                                                  {"seed", "4"},
                                                  {"optimizer", "sgd"},
                                                  {"learning-rate", "0.5"},
                                                  {"momentum", "0.25"},
                                                  {"evaluate-every", "2"},
                                                  {"gradient-error", "true"},
                                                  {"algorithm", "dsgd:wire=fp16"}};
  for (const Field& field : scenario_fields()) {
    CAPTURE(field.key);
    Scenario scenario;
    field.set(scenario, others.at(field.key));
    for (const Field& other : scenario_fields())
      CHECK(other.get(scenario) ==
            (other.key == field.key ? others.at(field.key) : other.get(Scenario{})));
  }
}

TEST_CASE("a grid holds every combination, the last fields varying fastest") {
  Grid grid;
  grid.set(find_field("algorithm"), {"dsgd", "dad"});
  grid.set(find_field("workers"), {"2", "4"});
  grid.set(find_field("bandwidth"), {"platform", "1Gbps"});
  const auto points = grid.points();
  REQUIRE(points.size() == 8);
  CHECK(points[0].algorithm.name == "dsgd");
  CHECK(points[1].algorithm.name == "dad");
  CHECK_FALSE(points[1].bandwidth_bit_per_s);
  CHECK(points[2].bandwidth_bit_per_s == 1e9);
  CHECK(points[3].workers == 2);
  CHECK(points[4].workers == 4);
}

TEST_CASE("only lists take several values, and none twice") {
  Grid grid;
  CHECK_THROWS_WITH(grid.set(find_field("workers"), {"2", "2"}), "workers: 2 is listed twice");
  CHECK_THROWS_WITH(grid.set(find_field("seed"), {"1", "2"}), "seed: takes one value, not 1, 2");
  CHECK_THROWS_WITH(grid.set(find_field("workers"), {}), "workers: no value");
}

TEST_CASE("a scenario file sets numbers, texts, switches and lists by the flags' names") {
  const auto points = grid_of(R"({"platform": "star-1g", "workers": [2, 4], "batch-size": 16,
    "gradient-error": true, "algorithm": "powersgd:rank=2", "latency": "20ms"})")
                          .points();
  REQUIRE(points.size() == 2);
  CHECK(points[0].platform == "star-1g");
  CHECK(points[1].workers == 4);
  CHECK(points[0].batch_size == 16);
  CHECK(points[0].gradient_error);
  CHECK(points[0].algorithm.text() == "powersgd:rank=2");
  CHECK(points[0].latency_s == 20e-3);
}

TEST_CASE("a bad scenario file is refused with its name and the key") {
  const std::map<std::string, std::string> cases{
      {R"({"worker": 2})", "unknown key worker; did you mean workers?"},
      {R"({"workers": []})", "workers: no value"},
      {R"({"workers": 2.5})", "workers: \"2.5\" is not an integer"},
      {R"({"workers": -3})", "workers: \"-3\" is not an integer"},
      {R"({"workers": {"a": 1}})", "workers: range: unknown key a"},
      {R"({"workers": null})", "workers: null is not a text"},
      {R"({"workers": 2, "workers": 3})", "has \"workers\" twice"},
      {R"({"bandwidth": 1000000})", "bandwidth: \"1000000\" is not"},
      {R"({"seed": [1, 2]})", "seed: takes one value"},
      {R"([1])", "is not a JSON object"},
      {R"({"workers": 2)", "parse error at line 1, column 14"},
      {"", "parse error"}};
  for (const auto& [text, message] : cases) {
    CAPTURE(text);
    CHECK_THROWS_AS(grid_of(text), std::invalid_argument);
    CHECK_THROWS_WITH(grid_of(text),
                      Catch::Contains("scenario.json: ") && Catch::Contains(message));
  }
  Grid grid;
  CHECK_THROWS_WITH(load_scenario_file("no/such.json", grid),
                    "no/such.json: cannot be read: No such file or directory");
}

TEST_CASE("what is set before the scenario file wins, and the file is checked all the same") {
  Grid grid;
  grid.set(find_field("workers"), {"8"});
  const ScratchFile file("scenario.json", R"({"workers": [2, 4], "seed": 5})");
  load_scenario_file(file.path(), grid);
  REQUIRE(grid.points().size() == 1);
  CHECK(grid.points()[0].workers == 8);
  CHECK(grid.points()[0].seed == 5);
  const ScratchFile bad("scenario.json", R"({"workers": "many"})");
  CHECK_THROWS_AS(load_scenario_file(bad.path(), grid), std::invalid_argument);
}

TEST_CASE("the echo of a grid is a scenario file of the same grid") {
  Grid grid;
  grid.set(find_field("platform"), {"star-1g"});
  grid.set(find_field("workers"), {"2", "4"});
  grid.set(find_field("compute"), {"10ms,20ms"});
  grid.set(find_field("algorithm"), {"dsgd:exchange=tree"});
  const Grid again = grid_of(grid.echo().dump());
  CHECK(again.echo() == grid.echo());
  CHECK(grid.echo()["workers"].dump() == "[2,4]");
  CHECK(grid.echo().size() == scenario_fields().size());
}

TEST_CASE("bandwidth, latency and device change no mathematics; workers and seed do") {
  const auto key_with = [](const std::string& key, const std::string& value) {
    Scenario scenario;
    find_field(key).set(scenario, value);
    return mathematics_key(scenario);
  };
  const std::string plain = mathematics_key({});
  CHECK(key_with("bandwidth", "1Gbps") == plain);
  CHECK(key_with("latency", "1ms") == plain);
  CHECK(key_with("device-rate", "1Tf") == plain);
  CHECK(key_with("workers", "3") != plain);
  CHECK(key_with("seed", "3") != plain);
  CHECK(key_with("algorithm", "dad") != plain);
  CHECK(key_with("compute", "measured") != plain);  // charges carry processor times
}

}  // namespace gradwire
