#include "analysis/scaling_text.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/report.h"
#include "analysis/table.h"
#include "analysis/text.h"
#include "analysis/units.h"

namespace gradwire {

extern const char* const kScalingSchemaPatch;  // analysis/scaling.schema.json

namespace {

using nlohmann::ordered_json;
using Cells = std::vector<std::string>;

constexpr int kSchemaVersion = 1;

ordered_json number_or_null(double x) {
  return std::isfinite(x) ? ordered_json(x) : ordered_json();
}

std::string algorithm_of(const ScalingRow& row) { return row.scenario.algorithm.text(); }

std::string bandwidth_of(const Scenario& s) {
  return s.bandwidth_bit_per_s ? format_bandwidth(*s.bandwidth_bit_per_s) : "own bandwidth";
}

std::string workers_of(const Scenario& s) {
  return std::to_string(s.workers) + (s.workers == 1 ? " worker" : " workers");
}

std::string factor(double x, int digits = 2) {
  if (!std::isfinite(x)) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*fx", digits, x);
  return text.data();
}

std::string percent(double x) {
  return std::isfinite(x) ? std::to_string(std::lround(100 * x)) + " %" : "-";
}

// `common`: constants of the network that stand once in the context.
ordered_json point_json(const ScalingRow& row, const ordered_json& common) {
  ordered_json json{{"point", row.point}};
  json.update(*row.result);
  for (const auto& [key, value] : common.items()) json["network"].erase(key);
  json["model"] = row.scenario.model.name;
  json["dataset"] = row.scenario.dataset;
  json["batch_size"] = row.scenario.batch_size;
  json["throughput_example_per_s"] = row.throughput_example_per_s;
  const auto add = [&](const char* key, double value, const char* reason) {
    json[key] = number_or_null(value);
    if (!std::isfinite(value)) json["null_reasons"][key] = reason;
  };
  constexpr const char* kNoSingle = "the single worker's point is missing";
  add("speedup", row.speedup, kNoSingle);
  add("efficiency", row.efficiency, kNoSingle);
  add("speedup_vs_baseline", row.speedup_vs_baseline, "the baseline's point is missing");
  return json;
}

ordered_json best_json(const ScalingReport& report, const BestChoice& best) {
  const ScalingRow& row = report.rows[best.row];
  return {{"point", row.point},
          {"algorithm", algorithm_of(row)},
          {"workers", row.scenario.workers},
          {"bandwidth_bit_per_s", row.result->at("bandwidth_bit_per_s")},
          {"batch_time_s", row.batch_time_s},
          {"gain_over_no_compression", number_or_null(best.gain_over_no_compression)},
          {"verdict", verdict(report, best)}};
}

ordered_json crossover_json(const ScalingReport& report, const Crossover& c) {
  const ScalingRow& first = report.rows[c.first_row];
  const std::array<std::string, 2> names{algorithm_of(first),
                                         algorithm_of(report.rows[c.second_row])};
  ordered_json json{{"points", {first.point, report.rows[c.second_row].point}},
                    {"algorithms", names},
                    {"workers", first.scenario.workers},
                    {"lowest_bandwidth_bit_per_s", c.lowest_bit_per_s},
                    {"highest_bandwidth_bit_per_s", c.highest_bit_per_s},
                    {"faster_on_the_slowest_network", nullptr},
                    {"bandwidths_bit_per_s", c.bandwidths_bit_per_s},
                    {"summary", describe(report, c)}};
  if (c.faster_below >= 0)
    json["faster_on_the_slowest_network"] = names[static_cast<std::size_t>(c.faster_below)];
  return json;
}

ordered_json target_json(const ScalingReport& report, const TargetTime& time) {
  const ScalingRow& row = report.rows[time.row];
  ordered_json json{{"point", row.point},
                    {"algorithm", algorithm_of(row)},
                    {"workers", row.scenario.workers},
                    {"bandwidth_bit_per_s", row.result->at("bandwidth_bit_per_s")},
                    {"metric", time.target.metric},
                    {"target", time.target.value},
                    {"time_s", number_or_null(time.time_s)},
                    {"batches", nullptr},
                    {"null_reasons", ordered_json::object()}};
  if (time.batches >= 0) {
    json["batches"] = time.batches;
  } else {
    const bool evaluated = !row.result->at("evaluations").empty();
    for (const char* key : {"time_s", "batches"})
      json["null_reasons"][key] = evaluated ? "not reached" : "not evaluated (evaluate-every)";
  }
  return json;
}

// The network's constants that all rows share.
ordered_json common_network(const ScalingReport& report) {
  ordered_json common = report.rows.front().result->at("network");
  for (const ScalingRow& row : report.rows) {
    const ordered_json& own = row.result->at("network");
    for (auto c = common.begin(); c != common.end();)
      c = own.contains(c.key()) && own.at(c.key()) == c.value() ? std::next(c) : common.erase(c);
  }
  return common;
}

// A text as RFC 4180 wants it.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted(1, '"');
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted.append("\"");
}

std::string csv_number(double x) { return std::isfinite(x) ? shortest(x) : ""; }

bool any_interval(const ScalingReport& report) {
  return std::any_of(report.rows.begin(), report.rows.end(),
                     [](const ScalingRow& row) { return std::isfinite(row.batch_time_high_s); });
}

std::string interval_of(const ScalingRow& row) {
  if (!std::isfinite(row.batch_time_high_s)) return "-";
  return format_time(row.batch_time_low_s) + " - " + format_time(row.batch_time_high_s);
}

Cells cells_of(const ScalingRow& row, bool best, bool intervals) {
  Cells cells{std::string(best ? "* " : "  ").append(algorithm_of(row)),
              format_time(row.batch_time_s)};
  if (intervals) cells.push_back(interval_of(row));
  for (const double time_s :
       {row.compute_time_s, row.compression_time_s, row.exposed_communication_time_s})
    cells.push_back(format_time(time_s));
  for (const double bytes :
       {row.bytes_sent_per_worker, row.memory_bytes_per_worker, row.state_bytes_per_worker})
    cells.push_back(format_bytes(bytes));
  cells.insert(cells.end(),
               {factor(row.speedup), percent(row.efficiency), factor(row.speedup_vs_baseline)});
  return cells;
}

void add_setting_table(const ScalingReport& report, const ScalingSetting& setting,
                       std::vector<Cells>& rows) {
  std::string group;
  for (const std::size_t i : setting.rows) {
    const ScalingRow& row = report.rows[i];
    std::string title = workers_of(row.scenario) + ", " + bandwidth_of(row.scenario);
    if (!setting.text.empty()) title += ", " + setting.text;
    if (title != group) rows.insert(rows.end(), {{""}, {title}});
    group = title;
    const bool best = std::any_of(report.best.begin(), report.best.end(),
                                  [&](const BestChoice& b) { return b.row == i; });
    rows.push_back(cells_of(row, best, any_interval(report)));
  }
}

// Those that there are; pairs of algorithms that keep their order are counted.
std::string crossover_lines(const ScalingReport& report) {
  std::string text;
  std::size_t ordered = 0;
  for (const Crossover& c : report.crossovers) {
    if (c.bandwidths_bit_per_s.empty()) {
      ++ordered;
      continue;
    }
    text += std::string("  ").append(workers_of(report.rows[c.first_row].scenario)) + ": " +
            describe(report, c) + "\n";
  }
  if (ordered > 0)
    text += "  " + std::to_string(ordered) +
            (ordered == 1 ? " pair keeps its" : " pairs keep their") +
            " order over all bandwidths of the sweep\n";
  return text.empty() ? text : "\nCrossovers\n" + text;
}

}  // namespace

std::string verdict(const ScalingReport& report, const BestChoice& best) {
  const std::string name = algorithm_of(report.rows[best.row]);
  if (is_plain_dsgd(report.rows[best.row].scenario.algorithm)) return "no compression";
  if (best.no_compression) return "no compression: " + name + " gains less than 1 %";
  if (!std::isfinite(best.gain_over_no_compression)) return name;
  return name + " is " + factor(best.gain_over_no_compression) + " as fast as no compression";
}

std::string describe(const ScalingReport& report, const Crossover& c) {
  const std::array<std::string, 2> names{algorithm_of(report.rows[c.first_row]),
                                         algorithm_of(report.rows[c.second_row])};
  if (c.faster_below < 0) return names[0] + " and " + names[1] + " take the same time";
  auto faster = static_cast<std::size_t>(c.faster_below);
  if (c.bandwidths_bit_per_s.empty())
    return names[faster] + " is faster than " + names[1 - faster] + " from " +
           format_bandwidth(c.lowest_bit_per_s) + " to " + format_bandwidth(c.highest_bit_per_s);
  std::string text;
  for (const double bandwidth : c.bandwidths_bit_per_s) {
    faster = 1 - faster;
    text += (text.empty() ? "" : "; ") + names[faster] + " overtakes " + names[1 - faster] +
            " at " + format_bandwidth(bandwidth);
  }
  return text;
}

ordered_json scaling_json(const ScalingReport& report, const SweepResults& results) {
  const ordered_json common = common_network(report);
  ordered_json json{
      {"schema_version", kSchemaVersion},
      {"kind", "scaling"},
      {"tool", {{"name", "gradwire"}, {"version", results.identity["versions"]["gradwire"]}}},
      {"context",
       {{"scenario", results.identity["scenario"]},
        {"scenario_hash", results.identity["hash"]},
        {"scaling", report.strong ? "strong" : "weak"},
        {"baseline", report.baseline},
        {"platform_hashes", results.identity["platform_hashes"]},
        {"network_model", common},
        {"versions", results.identity["versions"]},
        {"missing_points", report.missing_points}}}};
  for (const char* key : {"results", "best", "crossovers", "time_to_target"})
    json[key] = ordered_json::array();
  for (const ScalingRow& row : report.rows) json["results"].push_back(point_json(row, common));
  for (const BestChoice& best : report.best) json["best"].push_back(best_json(report, best));
  for (const Crossover& c : report.crossovers)
    json["crossovers"].push_back(crossover_json(report, c));
  for (const TargetTime& time : report.target_times)
    json["time_to_target"].push_back(target_json(report, time));
  return json;
}

std::string scaling_csv(const ScalingReport& report) {
  std::string text =
      "point,algorithm,workers,platform,bandwidth_bit_per_s,latency_s,model,dataset,batch_size,"
      "batch_time_s,batch_time_low_s,batch_time_high_s,compute_time_s,compression_time_s,reduction_"
      "time_s,"
      "exposed_communication_time_s,bytes_sent_per_worker,messages_per_worker,"
      "memory_bytes_per_worker,state_bytes_per_worker,"
      "throughput_example_per_s,speedup,efficiency,speedup_vs_baseline\n";
  for (const ScalingRow& row : report.rows) {
    const Scenario& s = row.scenario;
    const Cells cells{std::to_string(row.point),
                      csv_cell(algorithm_of(row)),
                      std::to_string(s.workers),
                      csv_cell(s.platform),
                      csv_number(s.bandwidth_bit_per_s.value_or(NAN)),
                      csv_number(s.latency_s.value_or(NAN)),
                      csv_cell(s.model.name),
                      csv_cell(s.dataset),
                      std::to_string(s.batch_size),
                      csv_number(row.batch_time_s),
                      csv_number(row.batch_time_low_s),
                      csv_number(row.batch_time_high_s),
                      csv_number(row.compute_time_s),
                      csv_number(row.compression_time_s),
                      csv_number(row.reduction_time_s),
                      csv_number(row.exposed_communication_time_s),
                      csv_number(row.bytes_sent_per_worker),
                      csv_number(row.result->at("messages_per_worker")),
                      csv_number(row.memory_bytes_per_worker),
                      csv_number(row.state_bytes_per_worker),
                      csv_number(row.throughput_example_per_s),
                      csv_number(row.speedup),
                      csv_number(row.efficiency),
                      csv_number(row.speedup_vs_baseline)};
    text += join(cells, ",") + "\n";
  }
  return text;
}

std::string learning_csv(const ScalingReport& report) {
  std::string text =
      "point,algorithm,workers,bandwidth_bit_per_s,seed,batch,time_s,loss,accuracy,macro_auc\n";
  for (const ScalingRow& row : report.rows)
    for (const ordered_json& e : row.result->at("evaluations")) {
      const auto number = [&](const char* key) {
        return e.at(key).is_null() ? "" : csv_number(e.at(key));
      };
      const Cells cells{std::to_string(row.point),
                        csv_cell(algorithm_of(row)),
                        std::to_string(row.scenario.workers),
                        csv_number(row.scenario.bandwidth_bit_per_s.value_or(NAN)),
                        std::to_string(row.scenario.seed),
                        number("batch"),
                        number("time_s"),
                        number("loss"),
                        number("accuracy"),
                        number("macro_auc")};
      text += join(cells, ",") + "\n";
    }
  return text;
}

std::string scaling_table(const ScalingReport& report) {
  Cells head{"algorithm", "batch"};
  if (any_interval(report)) head.push_back("expected");
  for (const char* name :
       {"compute", "compress", "exposed", "sent", "memory", "state", "speed-up", "eff.", "vs base"})
    head.emplace_back(name);
  std::vector<Cells> rows{head};
  for (const ScalingSetting& setting : report.settings) add_setting_table(report, setting, rows);
  std::string text =
      align(rows) +
      "\nPer batch, means; sent: bytes that a worker sends; memory: of a worker, of it state: what "
      "the\nalgorithm keeps between steps.  Speed-up and efficiency against one worker; * is the "
      "fastest;\nvs base: against " +
      report.baseline + ".\n";
  text += "\nBest choice\n";
  for (const BestChoice& b : report.best) {
    const Scenario& s = report.rows[b.row].scenario;
    text.append("  ").append(workers_of(s)).append(", ").append(bandwidth_of(s));
    text.append(": ").append(verdict(report, b)).append("\n");
  }
  text += crossover_lines(report);
  if (!report.target_times.empty()) text += "\nTime to target\n";
  for (const TargetTime& t : report.target_times) {
    const ScalingRow& row = report.rows[t.row];
    text += std::string("  ").append(t.target.metric) + " " + shortest(t.target.value) + ", " +
            workers_of(row.scenario) + ", " + bandwidth_of(row.scenario) + ": " +
            algorithm_of(row) + " ";
    text += t.batches < 0
                ? "never"
                : "after " + format_time(t.time_s) + " (" + std::to_string(t.batches) + " batches)";
    text += "\n";
  }
  return text;
}

std::string scaling_schema() {
  auto schema = ordered_json::parse(report_schema());
  schema.merge_patch(ordered_json::parse(kScalingSchemaPatch));
  return dump(schema);
}

}  // namespace gradwire
