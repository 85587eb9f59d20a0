#include "analysis/report.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <boost/version.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <utility>

#include "analysis/text.h"
#include "analysis/validate.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr const char* kLayerRank = "effective_rank/";

// A JSON object that turns what is not a number into null and keeps the reason.
class Row {
 public:
  explicit Row(ordered_json json) : json_(std::move(json)) {}

  ordered_json& operator[](const std::string& key) { return json_[key]; }

  void null(const std::string& key, const std::string& reason) {
    json_[key] = nullptr;
    reasons_[key] = reason;
  }
  void number(const std::string& key, double value, const std::string& reason) {
    if (std::isfinite(value)) {
      json_[key] = value;
    } else {
      null(key, reason);
    }
  }
  // A list per batch.
  ordered_json series(const std::string& key, const std::vector<double>& values,
                      const std::string& reason) {
    ordered_json list = ordered_json::array();
    for (const double value : values) {
      const bool finite = std::isfinite(value);
      list.push_back(finite ? ordered_json(value) : ordered_json(nullptr));
      if (!finite) reasons_[key] = reason;
    }
    return list;
  }
  ordered_json take() {
    json_["null_reasons"] = std::move(reasons_);
    return std::move(json_);
  }

 private:
  ordered_json json_;
  ordered_json reasons_ = ordered_json::object();
};

ordered_json summary_json(const Summary& summary) {
  return {{"mean", summary.mean},
          {"median", summary.median},
          {"min", summary.min},
          {"max", summary.max},
          {"samples", summary.samples}};
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

// A constant as a number where it is one.
ordered_json constant(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && std::isfinite(value)) return value;
  return text;
}

// Where a calibration says how far off the times may be.
void add_interval(Row& row, const Result& r) {
  constexpr const char* kKey = "batch_time_interval_s";
  const auto uncertainty = std::find_if(r.network.begin(), r.network.end(), [](const auto& c) {
    return c.first == kPredictionUncertainty;
  });
  if (uncertainty == r.network.end())
    return row.null(kKey, "no calibration says how far off the time may be");
  const Interval interval =
      prediction_interval(r.batch_time_s, constant(uncertainty->second).get<double>());
  row[kKey] = {interval.low, interval.high};
}

void add_times(Row& row, const Result& r) {
  row["batch_time_s"] = summary_json(r.batch_time_s);
  add_interval(row, r);
  row["compute_time_s"] = r.compute_time_s.mean;
  row["optimizer_time_s"] = r.optimizer_time_s.mean;
  row["compression_time_s"] = r.compression_time_s.mean;
  row["reduction_time_s"] = r.reduction_time_s.mean;
  row["exposed_communication_time_s"] = r.exposed_communication_time_s.mean;
  row["setup_time_s"] = r.setup_time_s;
  row["bytes_sent_per_worker"] = mean(r.bytes_sent_by_worker);
  row["messages_per_worker"] = mean(r.messages_sent_by_worker);
  row["memory_bytes_per_worker"] = r.memory.total_bytes;
  row["state_bytes_per_worker"] = r.memory.state_bytes;
  row["bytes_sent_by_worker"] = r.bytes_sent_by_worker;
  row["messages_by_worker"] = r.messages_sent_by_worker;
}

void add_evaluations(Row& row, const Result& r) {
  row["evaluations"] = ordered_json::array();
  for (const EvaluationPoint& point : r.evaluations) {
    Row e({{"batch", point.batch}, {"time_s", point.time_s}});
    const std::string reason = "the model's scores are not finite";
    e.number("loss", point.loss, reason);
    e.number("accuracy", point.accuracy, reason);
    e.number("macro_auc", point.macro_auc,
             "a score is not finite, or no class has both positives and negatives");
    row["evaluations"].push_back(e.take());
  }
}

void add_mathematics(Row& row, const Result& r) {
  const std::int64_t diverged = diverged_at(r);
  if (r.loss.empty()) {
    row.null("loss", "a cost-only model has no loss");
  } else {
    row["loss"] =
        row.series("loss", r.loss, "not finite from batch " + std::to_string(diverged) + " on");
  }
  if (r.gradient_relative_error.empty()) {
    row.null("gradient_relative_error", "not asked for (--gradient-error)");
  } else {
    row["gradient_relative_error"] =
        row.series("gradient_relative_error", r.gradient_relative_error,
                   "the exact mean gradient is zero or not finite");
  }
  row["effective_rank"] = ordered_json::object();
  row["metrics"] = ordered_json::object();
  for (const auto& [name, series] : r.metrics) {
    const auto slash = name.starts_with(kLayerRank) ? name.find('/') : std::string::npos;
    const bool rank = slash != std::string::npos;
    row[rank ? "effective_rank" : "metrics"][rank ? name.substr(slash + 1) : name] =
        row.series(name, series, "not defined in every batch");
  }
  add_evaluations(row, r);
  if (r.scenario.model.values) {
    row["replicas_equal"] = r.replicas_equal;
    row["parameter_hash"] = hex(r.parameter_hash);
  } else {
    row.null("replicas_equal", "sizes alone, no values (--math none)");
    row.null("parameter_hash", "sizes alone, no values (--math none)");
  }
  row["status"] = diverged < 0 ? "ok" : "diverged";
  if (diverged < 0) {
    row.null("diverged_at_batch", r.loss.empty() ? "a cost-only model has no loss"
                                                 : "the loss is finite in every batch");
  } else {
    row["diverged_at_batch"] = diverged;
  }
}

using Constants = std::vector<std::pair<std::string, std::string>>;

bool holds(const Constants& constants, const std::pair<std::string, std::string>& constant) {
  return std::find(constants.begin(), constants.end(), constant) != constants.end();
}

// The network's constants that all results share.
Constants common_constants(const Study& study) {
  Constants common = study.results.front().network;
  for (const Result& r : study.results)
    std::erase_if(common, [&](const auto& c) { return !holds(r.network, c); });
  return common;
}

ordered_json result_json(const Result& r, const Constants& common) {
  const Scenario& s = r.scenario;
  Row row({{"algorithm", s.algorithm.text()}, {"workers", s.workers}, {"platform", s.platform}});
  if (s.bandwidth_bit_per_s) {
    row["bandwidth_bit_per_s"] = *s.bandwidth_bit_per_s;
  } else {
    row.null("bandwidth_bit_per_s", "the platform's own links");
  }
  if (s.latency_s) {
    row["latency_s"] = *s.latency_s;
  } else {
    row.null("latency_s", "the platform's own links");
  }
  add_times(row, r);
  add_mathematics(row, r);
  row["network"] = ordered_json::object();
  for (const auto& c : r.network)
    if (!holds(common, c)) row["network"][c.first] = constant(c.second);
  row["warnings"] = r.warnings;
  return row.take();
}

ordered_json platforms_json(const std::vector<PlatformInfo>& platforms) {
  ordered_json list = ordered_json::array();
  for (const PlatformInfo& p : platforms) {
    ordered_json platform{{"file", std::filesystem::path(p.path).filename().string()},
                          {"hosts", p.hosts.size()}};
    platform.update(routes_json(p));
    list.push_back(std::move(platform));
  }
  return list;
}

ordered_json compute_json(const ComputeSpec& c) {
  using Mode = ComputeSpec::Mode;
  if (c.mode == Mode::kMeasured) return {{"mode", "measured"}};
  if (c.mode == Mode::kCalibrated) return {{"mode", "calibrated"}};
  ordered_json json{{"mode", "flops"}};
  if (c.mode == Mode::kGiven) {
    json = {{"mode", "given"}, {"forward_s", c.forward_s}, {"backward_s", c.backward_s}};
    if (!c.device_chosen()) return json;
  }
  json["device"] = c.device_rate_given ? "given" : c.device;
  json["device_flop_per_s"] = c.device_flop_per_s;
  if (c.device_memory_byte_per_s > 0) json["device_memory_byte_per_s"] = c.device_memory_byte_per_s;
  return json;
}

// Values without inner structure stand on one line, but for an object that is itself a value.
void append(std::string& text, const ordered_json& json, const std::string& indent, bool in_array) {
  const auto print = [](const ordered_json& value) {
    return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  const bool plain = std::none_of(json.begin(), json.end(),
                                  [](const ordered_json& part) { return part.is_structured(); });
  if (json.empty() || (plain && (in_array || !json.is_object()))) {
    text += print(json);
    return;
  }
  text += json.is_array() ? "[" : "{";
  const char* separator = "\n";
  for (const auto& [key, value] : json.items()) {
    text.append(separator).append(indent).append("  ");
    separator = ",\n";
    if (json.is_object()) text += print(key) + ": ";
    append(text, value, indent + "  ", json.is_array());
  }
  text.append("\n").append(indent).append(json.is_array() ? "]" : "}");
}

}  // namespace

ordered_json routes_json(const PlatformInfo& platform) {
  Row row(ordered_json{{"links", platform.links}});
  const auto add = [&](const char* key, double value) {
    row.number(key, platform.has_routes() ? value : NAN, "one host alone has no routes");
  };
  add("min_route_latency_s", platform.min_route_latency_s);
  add("max_route_latency_s", platform.max_route_latency_s);
  add("min_route_bandwidth_bit_per_s", platform.min_route_bandwidth_bit_per_s);
  add("max_route_bandwidth_bit_per_s", platform.max_route_bandwidth_bit_per_s);
  row["warnings"] = platform.warnings;
  return row.take();
}

std::int64_t diverged_at(const Result& result) {
  const auto bad = std::find_if(result.loss.begin(), result.loss.end(),
                                [](double loss) { return !std::isfinite(loss); });
  return bad == result.loss.end() ? -1 : bad - result.loss.begin();
}

ordered_json dataset_json(const DatasetInfo& d) {
  ordered_json json{{"name", d.name},
                    {"kind", d.none        ? "none"
                             : d.synthetic ? "synthetic"
                                           : "file"},
                    {"features", d.shape.features},
                    {"classes", d.shape.classes}};
  if (d.shape.steps > 1) json["steps"] = d.shape.steps;
  if (d.shape.vocabulary > 0) {
    json["vocabulary"] = d.shape.vocabulary;
  } else if (d.shape.steps > 1) {
    json["channels"] = d.shape.channels;
  } else if (d.shape.height * d.shape.width > 1) {
    json["channels"] = d.shape.channels;
    json["height"] = d.shape.height;
    json["width"] = d.shape.width;
  }
  json["train_examples"] = d.train_examples;
  json["test_examples"] = d.test_examples;
  return json;
}

ordered_json model_json(const ModelInfo& m) {
  ordered_json maps = ordered_json::array();
  for (const LinearMap& map : m.maps)
    maps.push_back({{"name", map.name}, {"in", map.in}, {"out", map.out}, {"bias", map.bias >= 0}});
  return {{"name", m.name},
          {"kind", m.has_loss ? "network" : "cost-only"},
          {"parameters", m.parameters},
          {"linear_maps", std::move(maps)}};
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

ordered_json result_json(const Result& result) { return result_json(result, {}); }

ordered_json versions() {
  const auto dotted = [](auto... parts) { return join({std::to_string(parts)...}, "."); };
  return {
      {"gradwire", GRADWIRE_VERSION},
      {"simgrid", GRADWIRE_SIMGRID_VERSION},
      {"eigen", dotted(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
      {"boost", dotted(BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
      {"nlohmann_json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                               NLOHMANN_JSON_VERSION_PATCH)},
      {"compiler", __VERSION__}};
}

ordered_json report_json(const Study& study, const Grid& grid, const ReportOptions& options) {
  const Scenario& first = study.results.front().scenario;
  const Constants common = common_constants(study);
  ordered_json network = ordered_json::object();
  for (const auto& [key, value] : common) network[key] = constant(value);
  ordered_json report{{"schema_version", kSchemaVersion},
                      {"tool", {{"name", "gradwire"}, {"version", GRADWIRE_VERSION}}},
                      {"context",
                       {{"command_line", options.command_line},
                        {"seed", first.seed},
                        {"scenario", grid.echo()},
                        {"dataset", dataset_json(study.dataset)},
                        {"model", model_json(study.model)},
                        {"compute", compute_json(first.compute)},
                        {"network_model", std::move(network)},
                        {"platforms", platforms_json(study.platforms)},
                        {"versions", versions()}}},
                      {"results", ordered_json::array()}};
  for (const Result& r : study.results) report["results"].push_back(result_json(r, common));
  if (options.wall_clock)
    report["wall_clock"] = {{"mathematics_s", study.wall_mathematics_s},
                            {"network_s", study.wall_network_s}};
  return report;
}

std::string dump(const ordered_json& json) {
  std::string text;
  append(text, json, "", false);
  return text + "\n";
}

}  // namespace gradwire
