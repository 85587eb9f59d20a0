#include "analysis/sweep.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "analysis/report.h"
#include "analysis/sweep_file.h"
#include "analysis/text.h"
#include "models/input_file.h"
#include "sim/platform.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr const char* kGlobalBatch = "global-batch-size";
constexpr const char* kCrossovers = "crossovers";
constexpr std::int64_t kReferenceBatches = 3;  // they all take the same time

void check_keys(const ordered_json& object) {
  std::vector<std::string> known = collect(scenario_fields(), &Field::key);
  known.insert(known.end(), {kGlobalBatch, kCrossovers});
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw std::invalid_argument("unknown key " + key + did_you_mean(key, known));
}

// The member's text, or "" if there is none.
std::string take_text(ordered_json& object, const char* key) {
  if (!object.contains(key)) return "";
  const ordered_json value = object[key];
  object.erase(key);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_primitive() && !value.is_null()) return value.dump();
  throw std::invalid_argument(std::string(key) + ": takes one value, not " + shown(value));
}

Sweep read_sweep(ordered_json object, const Grid& fields) {
  check_keys(object);
  Sweep sweep;
  for (const Field& field : scenario_fields())
    if (fields.has(field.key)) sweep.grid.set(field, fields.values(field));
  if (const std::string text = take_text(object, kGlobalBatch); !text.empty()) {
    if (object.contains("batch-size") || fields.has("batch-size"))
      throw std::invalid_argument(
          "global-batch-size (strong scaling) and batch-size (weak scaling) exclude each other");
    sweep.global_batch_size = parse_integer(kGlobalBatch, text, 1, 1'000'000'000);
  }
  if (const std::string text = take_text(object, kCrossovers); !text.empty()) {
    if (text != "true" && text != "false" && text != "on" && text != "off")
      throw std::invalid_argument("crossovers: \"" + text + "\" is not true or false");
    sweep.crossovers = text == "true" || text == "on";
  }
  load_scenario(object, sweep.grid);
  if (!sweep.grid.has("platform"))
    throw std::invalid_argument("no platform; see gradwire list platforms");
  for (const std::string& workers : sweep.grid.values(find_field("workers")))
    if (sweep.global_batch_size && *sweep.global_batch_size % std::stoll(workers) != 0)
      throw std::invalid_argument("global-batch-size: " + std::to_string(*sweep.global_batch_size) +
                                  " examples cannot be shared out equally to " + workers +
                                  " workers");
  return sweep;
}

// FNV-1a.
std::string hash_text(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hex(hash);
}

ordered_json platform_hashes(const Sweep& sweep) {
  ordered_json hashes = ordered_json::object();
  for (const std::string& name : sweep.grid.values(find_field("platform"))) {
    const std::string file = find_platform(name);
    hashes[name] = hash_text(read_input(file + ":", file));
  }
  return hashes;
}

}  // namespace

Scenario Sweep::point(std::uint64_t index) const {
  Scenario point = grid.point(index);
  if (global_batch_size) point.batch_size = *global_batch_size / point.workers;
  return point;
}

Scenario Sweep::reference(const Scenario& point) const {
  Scenario reference = point;
  if (global_batch_size) reference.batch_size = *global_batch_size;
  reference.workers = 1;
  reference.workers_per_host = 1;
  reference.bandwidth_bit_per_s.reset();
  reference.latency_s.reset();
  reference.algorithm = Scenario{}.algorithm;
  reference.batches = std::min(reference.batches, kReferenceBatches);
  reference.evaluate_every = 0;
  reference.gradient_error = false;
  return reference;
}

ordered_json Sweep::echo() const {
  ordered_json echo = grid.echo();
  if (global_batch_size) {
    echo.erase("batch-size");
    echo[kGlobalBatch] = *global_batch_size;
  }
  echo[kCrossovers] = crossovers;
  return echo;
}

Sweep load_sweep(const std::string& path, const Grid& fields) {
  try {
    return read_sweep(parse_object_file(path), fields);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what());
  }
}

Sweep parse_sweep(const ordered_json& echo) { return read_sweep(echo, Grid()); }

ordered_json sweep_identity(const Sweep& sweep) {
  const ordered_json all = versions();
  ordered_json identity{{"gradwire_sweep", kSweepFormat},
                        {"scenario", sweep.echo()},
                        {"platform_hashes", platform_hashes(sweep)},
                        {"versions", {{"gradwire", all["gradwire"]}, {"simgrid", all["simgrid"]}}}};
  identity["hash"] = hash_text(identity.dump());
  return identity;
}

}  // namespace gradwire
