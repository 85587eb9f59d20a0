#include "analysis/fields.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "algorithms/devices.h"
#include "analysis/text.h"
#include "analysis/units.h"
#include "analysis/value_list.h"
#include "models/input_file.h"

namespace gradwire {

namespace {

using Text = const std::string&;
using nlohmann::ordered_json;

constexpr const char* kOfDevice = "device";        // a rate that is not given
constexpr const char* kAsInPlatform = "platform";  // a bandwidth or latency that is not overridden

int parse_count(std::string_view key, Text text) {
  return static_cast<int>(parse_integer(key, text, 1, 1'000'000));
}

std::optional<double> parse_override(std::string_view key, Text text,
                                     double (*parse)(std::string_view, std::string_view)) {
  if (text == kAsInPlatform) return std::nullopt;
  return parse(key, text);
}

void set_compute(Scenario& s, Text text) {
  const std::vector<std::string> times = split(text, ',');
  if (text == "flops") {
    s.compute.mode = ComputeSpec::Mode::kFlops;
  } else if (text == "measured") {
    s.compute.mode = ComputeSpec::Mode::kMeasured;
  } else if (text == "calibrated") {
    s.compute.mode = ComputeSpec::Mode::kCalibrated;
  } else if (times.size() == 2) {
    s.compute.mode = ComputeSpec::Mode::kGiven;
    s.compute.forward_s = parse_time_s("compute", times[0]);
    s.compute.backward_s = parse_time_s("compute", times[1]);
  } else {
    throw std::invalid_argument(
        "compute: \"" + text +
        "\" is not flops, measured, calibrated or FORWARD,BACKWARD; write e.g. 10ms,20ms");
  }
}

std::string get_compute(const Scenario& s) {
  switch (s.compute.mode) {
    case ComputeSpec::Mode::kFlops:
      return "flops";
    case ComputeSpec::Mode::kMeasured:
      return "measured";
    case ComputeSpec::Mode::kCalibrated:
      return "calibrated";
    case ComputeSpec::Mode::kGiven:
      break;
  }
  return write_time(s.compute.forward_s) + "," + write_time(s.compute.backward_s);
}

void set_memory_rate(Scenario& s, Text text) {
  constexpr std::string_view kKey = "device-memory-rate";
  s.compute.device_memory_byte_per_s =
      text == "unlimited" ? 0 : parse_bandwidth_bit_per_s(kKey, text) / 8;
}

std::string get_memory_rate(const Scenario& s) {
  const double rate = s.compute.device_memory_byte_per_s;
  return rate > 0 ? write_bandwidth(rate * 8) : "unlimited";
}

std::vector<Field> network_fields() {
  const std::string group = "Network";
  return {
      {.key = "platform",
       .group = group,
       .argument = "FILE",
       .help = "platform XML file, or a name from `gradwire list platforms`",
       .timing_only = true,
       .set = [](Scenario& s, Text v) { s.platform = v; },
       .get = [](const Scenario& s) { return s.platform; }},
      {.key = "hosts",
       .group = group,
       .argument = "PATTERN",
       .help = "hosts that may be workers, e.g. 'node-*'",
       .timing_only = true,
       .set = [](Scenario& s, Text v) { s.hosts = v; },
       .get = [](const Scenario& s) { return s.hosts; }},
      {.key = "workers-per-host",
       .group = group,
       .argument = "N",
       .help = "workers on each host, filled host by host",
       .kind = Field::Kind::kNumber,
       .timing_only = true,
       .set = [](Scenario& s, Text v) { s.workers_per_host = parse_count("workers-per-host", v); },
       .get = [](const Scenario& s) { return std::to_string(s.workers_per_host); }},
      {.key = "network-model",
       .group = group,
       .argument = "MODEL",
       .help = "exact (latency + bytes/bandwidth, max-min sharing), calibrated:FILE (of gradwire "
               "calibrate) or simgrid:NAME, e.g. LV08",
       .timing_only = true,
       .set = [](Scenario& s, Text v) { s.network_model = v; },
       .get = [](const Scenario& s) { return s.network_model; }},
      {.key = "exact-replay",
       .group = group,
       .argument = "",
       .help = "replay every message through SimGrid instead of over flows (10 to 30 times slower)",
       .kind = Field::Kind::kSwitch,
       .timing_only = true,
       .set = [](Scenario& s, Text v) { s.exact_replay = parse_switch("exact-replay", v); },
       .get = [](const Scenario& s) { return std::string(s.exact_replay ? "true" : "false"); }},
      {.key = "workers",
       .group = group,
       .argument = "N,...",
       .help = "numbers of workers",
       .kind = Field::Kind::kNumber,
       .separator = ',',
       .set = [](Scenario& s, Text v) { s.workers = parse_count("workers", v); },
       .get = [](const Scenario& s) { return std::to_string(s.workers); }},
      {.key = "bandwidth",
       .group = group,
       .argument = "RATE,...",
       .help = "rates of the links at the workers instead of the file's, e.g. 100Mbps,1Gbps",
       .separator = ',',
       .timing_only = true,
       .set =
           [](Scenario& s, Text v) {
             s.bandwidth_bit_per_s = parse_override("bandwidth", v, parse_bandwidth_bit_per_s);
           },
       .get =
           [](const Scenario& s) {
             return s.bandwidth_bit_per_s ? write_bandwidth(*s.bandwidth_bit_per_s) : kAsInPlatform;
           }},
      {.key = "latency",
       .group = group,
       .argument = "TIME,...",
       .help = "latencies of the links at the workers instead of the file's, e.g. 50us,20ms; a "
               "route crosses "
               "two such links",
       .separator = ',',
       .timing_only = true,
       .set = [](Scenario& s, Text v) { s.latency_s = parse_override("latency", v, parse_time_s); },
       .get =
           [](const Scenario& s) {
             return s.latency_s ? write_time(*s.latency_s) : kAsInPlatform;
           }},
  };
}

void set_device(Scenario& s, Text text) {
  const double rate = find_device(text).flop_per_s;
  s.compute.device = text;
  if (!s.compute.device_rate_given) s.compute.device_flop_per_s = rate;
}

void set_device_rate(Scenario& s, Text text) {
  s.compute.device_rate_given = text != kOfDevice;
  s.compute.device_flop_per_s = s.compute.device_rate_given
                                    ? parse_flop_per_s("device-rate", text)
                                    : find_device(s.compute.device).flop_per_s;
}

std::string get_device_rate(const Scenario& s) {
  return s.compute.device_rate_given ? write_flop_rate(s.compute.device_flop_per_s) : kOfDevice;
}

void set_math(Scenario& s, Text text) {
  if (text != "run" && text != "none")
    throw std::invalid_argument("math: \"" + text + "\" is not run or none");
  s.model.values = text == "run";
}

std::vector<Field> compute_fields() {
  const std::string group = "Compute time";
  return {
      {.key = "compute",
       .group = group,
       .argument = "HOW",
       .help = "flops (at the device's rates), measured (processor time here; not reproducible), "
               "calibrated (at the rates of --network-model calibrated:FILE) or FORWARD,BACKWARD "
               "per batch, e.g. 10ms,20ms; the rest is then rated by --device or --device-rate if "
               "given, otherwise as fast as the backward pass",
       .timing_only = true,
       .set = set_compute,
       .get = get_compute},
      {.key = "device",
       .group = group,
       .argument = "NAME",
       .help = "a name from `gradwire list devices`: sets the rate that it achieves in training",
       .timing_only = true,
       .set = set_device,
       .get = [](const Scenario& s) { return s.compute.device; }},
      {.key = "device-rate",
       .group = group,
       .argument = "RATE",
       .help = "arithmetic rate of a worker's device, e.g. 9Tf; device: of the one named",
       .timing_only = true,
       .set = set_device_rate,
       .get = get_device_rate},
      {.key = "device-memory-rate",
       .group = group,
       .argument = "RATE",
       .help = "memory rate of a worker's device, e.g. 20GBps, or unlimited",
       .timing_only = true,
       .set = set_memory_rate,
       .get = get_memory_rate},
  };
}

void set_fold(Scenario& s, Text text) {
  s.fold = {};
  if (text == "none") return;
  const std::vector<std::string> parts = split(text, '/');
  if (parts.size() != 2)
    throw std::invalid_argument("fold: \"" + text + "\" is not I/K, e.g. 1/5, or none");
  s.fold.count = static_cast<int>(parse_integer("fold", parts[1], 2, 1000));
  s.fold.index = static_cast<int>(parse_integer("fold", parts[0], 1, s.fold.count));
}

std::string get_fold(const Scenario& s) {
  if (s.fold.count == 0) return "none";
  return std::to_string(s.fold.index) + "/" + std::to_string(s.fold.count);
}

void set_split(Scenario& s, Text text) {
  if (text != "random" && text != "by-class")
    throw std::invalid_argument("split: \"" + text + "\" is not random or by-class");
  s.split = text == "random" ? DataSplit::kRandom : DataSplit::kByClass;
}

std::vector<Field> training_fields() {
  const std::string group = "Training";
  return {
      {.key = "model",
       .group = group,
       .argument = "NAME",
       .help = "from `gradwire list models`, e.g. vit:depth=4,patch=7, layer sizes: "
               "mlp:784-300-10, or the costs of any: table:NAME, safetensors:FILE",
       .set = [](Scenario& s, Text v) { s.model.name = v; },
       .get = [](const Scenario& s) { return s.model.name; }},
      {.key = "math",
       .group = group,
       .argument = "HOW",
       .help = "run, or none: of a cost-only model (table:..., safetensors:...) the sizes alone",
       .set = set_math,
       .get = [](const Scenario& s) -> std::string { return s.model.values ? "run" : "none"; }},
      {.key = "activation",
       .group = group,
       .argument = "NAME",
       .help = "relu, tanh or sigmoid",
       .set = [](Scenario& s, Text v) { s.model.activation = v; },
       .get = [](const Scenario& s) { return s.model.activation; }},
      {.key = "dataset",
       .group = group,
       .argument = "NAME",
       .help = "a name from `gradwire list datasets`, e.g. ts:PREFIX or idx:FOLDER",
       .set = [](Scenario& s, Text v) { s.dataset = v; },
       .get = [](const Scenario& s) { return s.dataset; }},
      {.key = "fold",
       .group = group,
       .argument = "I/K",
       .help = "cross-validation: hold the I-th of K parts of the training examples out for "
               "testing; none: the data set's own test part",
       .set = set_fold,
       .get = get_fold},
      {.key = "split",
       .group = group,
       .argument = "HOW",
       .help = "random, or by-class: each worker has few classes (non-iid)",
       .set = set_split,
       .get = [](const Scenario& s) -> std::string {
         return s.split == DataSplit::kRandom ? "random" : "by-class";
       }},
      {.key = "batch-size",
       .group = group,
       .argument = "B",
       .help = "examples per worker and batch",
       .kind = Field::Kind::kNumber,
       .set = [](Scenario& s, Text v) { s.batch_size = parse_count("batch-size", v); },
       .get = [](const Scenario& s) { return std::to_string(s.batch_size); }},
      {.key = "batches",
       .group = group,
       .argument = "K",
       .help = "batches to train",
       .kind = Field::Kind::kNumber,
       .set = [](Scenario& s, Text v) { s.batches = parse_integer("batches", v, 1, 10'000'000); },
       .get = [](const Scenario& s) { return std::to_string(s.batches); }},
      {.key = "seed",
       .group = group,
       .argument = "S",
       .help = "of initial parameters, data order and random starts",
       .kind = Field::Kind::kNumber,
       .set =
           [](Scenario& s, Text v) {
             s.seed = static_cast<std::uint64_t>(parse_integer("seed", v, 0, INT64_MAX - 1));
           },
       .get = [](const Scenario& s) { return std::to_string(s.seed); }},
      {.key = "optimizer",
       .group = group,
       .argument = "NAME",
       .help = "sgd, momentum, nesterov or adam",
       .set = [](Scenario& s, Text v) { s.optimizer.name = v; },
       .get = [](const Scenario& s) { return s.optimizer.name; }},
      {.key = "learning-rate",
       .group = group,
       .argument = "RATE",
       .help = "of the optimizer",
       .kind = Field::Kind::kNumber,
       .set = [](Scenario& s,
                 Text v) { s.optimizer.learning_rate = parse_real("learning-rate", v, 0, 1e9); },
       .get = [](const Scenario& s) { return shortest(s.optimizer.learning_rate); }},
      {.key = "momentum",
       .group = group,
       .argument = "M",
       .help = "of momentum and nesterov",
       .kind = Field::Kind::kNumber,
       .set = [](Scenario& s, Text v) { s.optimizer.momentum = parse_real("momentum", v, 0, 1); },
       .get = [](const Scenario& s) { return shortest(s.optimizer.momentum); }},
      {.key = "evaluate-every",
       .group = group,
       .argument = "K",
       .help = "batches between evaluations on the test examples; 0: never",
       .kind = Field::Kind::kNumber,
       .set = [](Scenario& s, Text v) { s.evaluate_every = parse_integer("evaluate-every", v, 0); },
       .get = [](const Scenario& s) { return std::to_string(s.evaluate_every); }},
      {.key = "gradient-error",
       .group = group,
       .argument = "",
       .help = "compare every applied gradient with the exact mean",
       .kind = Field::Kind::kSwitch,
       .set = [](Scenario& s, Text v) { s.gradient_error = parse_switch("gradient-error", v); },
       .get = [](const Scenario& s) -> std::string { return s.gradient_error ? "true" : "false"; }},
      {.key = "algorithm",
       .group = group,
       .argument = "NAME[:KEY=VALUE,...] ...",
       .help = "one or several algorithms from `gradwire list algorithms`",
       .separator = ' ',
       .set = [](Scenario& s, Text v) { s.algorithm = parse_algorithm_spec(v); },
       .get = [](const Scenario& s) { return s.algorithm.text(); }},
  };
}

ordered_json to_json(const Field& field, const std::string& text) {
  return field.kind == Field::Kind::kText ? ordered_json(text) : ordered_json::parse(text);
}

}  // namespace

const std::vector<Field>& scenario_fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all = network_fields();
    for (auto part : {compute_fields, training_fields})
      for (Field& field : part()) all.push_back(std::move(field));
    return all;
  }();
  return fields;
}

const Field& find_field(const std::string& key) {
  const std::vector<Field>& fields = scenario_fields();
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
  if (found != fields.end()) return *found;
  throw std::invalid_argument("unknown key " + key +
                              did_you_mean(key, collect(fields, &Field::key)));
}

std::string mathematics_key(const Scenario& scenario) {
  std::string key;
  for (const Field& field : scenario_fields())
    if (!field.timing_only) key += field.key + "=" + field.get(scenario) + "\n";
  if (scenario.compute.mode == ComputeSpec::Mode::kMeasured) key += "measured";
  return key;
}

void Grid::set(const Field& field, const std::vector<std::string>& values) {
  if (values.empty()) throw std::invalid_argument(field.key + ": no value");
  if (values.size() > 1 && field.separator == 0 && lists_ == Lists::kWhereDeclared)
    throw std::invalid_argument(field.key + ": takes one value, not " + join(values));
  std::vector<std::string> canonical;
  for (const std::string& value : values) {
    Scenario scenario;
    field.set(scenario, value);
    canonical.push_back(field.get(scenario));
    if (std::count(canonical.begin(), canonical.end(), canonical.back()) > 1)
      throw std::invalid_argument(field.key + ": " + value + " is listed twice");
  }
  values_[field.key] = std::move(canonical);
}

std::vector<std::string> Grid::values(const Field& field) const {
  const auto found = values_.find(field.key);
  if (found != values_.end()) return found->second;
  return {field.get(Scenario{})};
}

std::uint64_t Grid::size() const {
  std::uint64_t size = 1;
  for (const auto& [key, values] : values_)
    if (__builtin_mul_overflow(size, values.size(), &size)) return UINT64_MAX;
  return size;
}

Scenario Grid::point(std::uint64_t index) const {
  Scenario point;
  std::uint64_t rest = index;  // the digits of a mixed radix, the last field's first
  const std::vector<Field>& fields = scenario_fields();
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    const auto values = values_.find(field->key);
    if (values == values_.end()) continue;
    field->set(point, values->second[rest % values->second.size()]);
    rest /= values->second.size();
  }
  return point;
}

std::vector<Scenario> Grid::points() const {
  std::vector<Scenario> points;
  for (std::uint64_t i = 0; i < size(); ++i) points.push_back(point(i));
  return points;
}

ordered_json Grid::echo() const {
  ordered_json echo = ordered_json::object();
  for (const Field& field : scenario_fields()) {
    const auto values = values_.find(field.key);
    if (values == values_.end()) {
      echo[field.key] = to_json(field, field.get(Scenario{}));
    } else if (values->second.size() == 1) {
      echo[field.key] = to_json(field, values->second.front());
    } else {
      for (const std::string& value : values->second)
        echo[field.key].push_back(to_json(field, value));
    }
  }
  return echo;
}

ordered_json parse_object_file(const std::string& path) {
  ordered_json json = parse_input("", read_input("", path, {.pipes = true}));
  if (!json.is_object()) throw std::invalid_argument("is not a JSON object of scenario fields");
  return json;
}

void load_scenario(const ordered_json& object, Grid& grid) {
  for (const auto& [key, value] : object.items()) {
    const Field& field = find_field(key);
    const std::vector<std::string> values = expand_values(field, value);
    Grid checked = grid;
    (grid.has(key) ? checked : grid).set(field, values);
  }
}

void load_scenario_file(const std::string& path, Grid& grid) {
  try {
    load_scenario(parse_object_file(path), grid);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what());
  }
}

}  // namespace gradwire
