#include "analysis/scaling_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "analysis/crossover_search.h"
#include "analysis/sweep_file.h"
#include "analysis/text.h"
#include "models/input_file.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kWorthwhileGain = 1.01;

// The key in an evaluation.
const std::map<std::string, std::string>& metric_keys() {
  static const std::map<std::string, std::string> keys{
      {"accuracy", "accuracy"}, {"auc", "macro_auc"}, {"loss", "loss"}};
  return keys;
}

// Adds what is new; refuses what contradicts.
template <class Key, class Value>
void merge(std::map<Key, Value>& into, Key key, Value value, const std::string& path,
           const std::string& what) {
  const auto [found, is_new] = into.emplace(std::move(key), value);
  if (!is_new && found->second != value)
    throw std::invalid_argument(path + ": " + what + " contradicts another line or file");
}

void add_record(SweepResults& results, ordered_json record, const std::string& path) {
  if (record.contains("point")) {
    const auto point = record.at("point").get<std::uint64_t>();
    static_cast<void>(record.at("result").at("batch_time_s").at("mean").get<double>());
    merge(results.rows, point, std::move(record["result"]), path, "point " + std::to_string(point));
    return;
  }
  const std::pair<std::uint64_t, std::uint64_t> id{record.at("crossover").at(0),
                                                   record.at("crossover").at(1)};
  merge(results.crossovers, id, record.at("bandwidths_bit_per_s").get<std::vector<double>>(), path,
        "crossover " + shown(record["crossover"]));
}

double throughput(const Scenario& s, double batch_time_s) {
  return static_cast<double>(s.workers * s.batch_size) / batch_time_s;
}

ScalingRow make_row(const SweepResults& results, std::uint64_t point, const ordered_json& r) {
  ScalingRow row{.point = point,
                 .scenario = results.plan.scenario(point),
                 .result = &r,
                 .batch_time_s = r.at("batch_time_s").at("mean"),
                 .batch_time_low_s = kNaN,
                 .batch_time_high_s = kNaN,
                 .compute_time_s = r.at("compute_time_s"),
                 .compression_time_s = r.at("compression_time_s"),
                 .reduction_time_s = r.at("reduction_time_s"),
                 .exposed_communication_time_s = r.at("exposed_communication_time_s"),
                 .bytes_sent_per_worker = r.at("bytes_sent_per_worker"),
                 .memory_bytes_per_worker = r.at("memory_bytes_per_worker"),
                 .state_bytes_per_worker = r.at("state_bytes_per_worker"),
                 .speedup = kNaN,
                 .efficiency = kNaN,
                 .speedup_vs_baseline = kNaN};
  const ordered_json& interval = r.at("batch_time_interval_s");
  row.batch_time_low_s = interval.is_null() ? kNaN : interval.at(0).get<double>();
  row.batch_time_high_s = interval.is_null() ? kNaN : interval.at(1).get<double>();
  row.throughput_example_per_s = throughput(row.scenario, row.batch_time_s);
  const std::uint64_t reference = results.plan.reference_of[static_cast<std::size_t>(point)];
  if (const auto single = results.rows.find(reference); single != results.rows.end()) {
    const double single_s = single->second.at("batch_time_s").at("mean");
    row.speedup =
        row.throughput_example_per_s / throughput(results.plan.scenario(reference), single_s);
    row.efficiency = row.speedup / row.scenario.workers;
  }
  return row;
}

// The values of the fields that vary, but for those of a picture's own axes.
std::string setting_text(const Scenario& scenario, const Grid& grid) {
  std::vector<std::string> parts;
  for (const Field& field : scenario_fields()) {
    if (field.key == "algorithm" || field.key == "workers" || field.key == "bandwidth") continue;
    if (grid.values(field).size() > 1) parts.push_back(field.key + " " + field.get(scenario));
  }
  return join(parts);
}

std::vector<ScalingSetting> settings_of(const std::vector<ScalingRow>& rows, const Grid& grid) {
  std::vector<ScalingSetting> settings;
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string text = setting_text(rows[i].scenario, grid);
    const auto [found, is_new] = index.emplace(text, settings.size());
    if (is_new) settings.push_back({.text = text, .rows = {}});
    settings[found->second].rows.push_back(i);
  }
  return settings;
}

// Rows of one setting that the algorithm alone tells apart, in the grid's order.
std::vector<std::vector<std::size_t>> contests(const ScalingReport& report) {
  std::vector<std::vector<std::size_t>> all;
  for (const ScalingSetting& setting : report.settings) {
    std::map<std::pair<int, std::optional<double>>, std::size_t> index;
    for (const std::size_t row : setting.rows) {
      const Scenario& s = report.rows[row].scenario;
      const auto [found, is_new] =
          index.emplace(std::pair{s.workers, s.bandwidth_bit_per_s}, all.size());
      if (is_new) all.emplace_back();
      all[found->second].push_back(row);
    }
  }
  return all;
}

BestChoice choose_best(const ScalingReport& report, const std::vector<std::size_t>& contest) {
  double plain_s = kNaN;
  std::size_t best = contest.front();
  for (const std::size_t row : contest) {
    const ScalingRow& r = report.rows[row];
    if (r.batch_time_s < report.rows[best].batch_time_s) best = row;
    if (is_plain_dsgd(r.scenario.algorithm)) plain_s = std::fmin(plain_s, r.batch_time_s);
  }
  const double gain = plain_s / report.rows[best].batch_time_s;
  return {.row = best, .gain_over_no_compression = gain, .no_compression = gain < kWorthwhileGain};
}

void compare_with_baseline(ScalingReport& report, const std::vector<std::size_t>& contest) {
  const auto baseline = std::find_if(contest.begin(), contest.end(), [&](std::size_t row) {
    return report.rows[row].scenario.algorithm.text() == report.baseline;
  });
  if (baseline == contest.end()) return;
  for (const std::size_t row : contest)
    report.rows[row].speedup_vs_baseline =
        report.rows[*baseline].batch_time_s / report.rows[row].batch_time_s;
}

std::string choose_baseline(const Sweep& sweep, const std::string& asked) {
  const std::vector<std::string> algorithms = sweep.grid.values(find_field("algorithm"));
  if (!asked.empty()) {
    const std::string text = parse_algorithm_spec(asked).text();
    if (std::find(algorithms.begin(), algorithms.end(), text) != algorithms.end()) return text;
    throw std::invalid_argument("baseline: the sweep has no " + text +
                                did_you_mean(text, algorithms) + "; it has " + join(algorithms));
  }
  const auto plain = std::find_if(
      algorithms.begin(), algorithms.end(),
      [](const std::string& text) { return is_plain_dsgd(parse_algorithm_spec(text)); });
  return plain == algorithms.end() ? algorithms.front() : *plain;
}

void add_crossovers(ScalingReport& report, const SweepResults& results) {
  std::map<std::uint64_t, std::size_t> row_of;
  for (std::size_t i = 0; i < report.rows.size(); ++i) row_of[report.rows[i].point] = i;
  for (const SweepFamily& family : results.plan.families)
    for (const SweepPair& pair : family.pairs) {
      const auto found = results.crossovers.find(pair.id());
      if (found == results.crossovers.end()) continue;
      Crossover crossover{.bandwidths_bit_per_s = found->second, .faster_below = -1};
      bool whole = true;
      for (std::size_t i = 0; i < pair.by_bandwidth[0].size(); ++i) {
        const auto a = row_of.find(pair.by_bandwidth[0][i]);
        const auto b = row_of.find(pair.by_bandwidth[1][i]);
        whole = whole && a != row_of.end() && b != row_of.end();
        if (!whole) break;
        const ScalingRow& first = report.rows[a->second];
        const ScalingRow& second = report.rows[b->second];
        const double bandwidth = *first.scenario.bandwidth_bit_per_s;
        if (i == 0) {
          crossover.first_row = a->second;
          crossover.second_row = b->second;
          crossover.lowest_bit_per_s = bandwidth;
        }
        crossover.highest_bit_per_s = bandwidth;
        const int faster = TimePair{bandwidth, first.batch_time_s, second.batch_time_s}.faster();
        if (crossover.faster_below < 0 && faster != 0) crossover.faster_below = faster < 0 ? 0 : 1;
      }
      if (whole) report.crossovers.push_back(std::move(crossover));
    }
}

TargetTime time_to(const ScalingReport& report, std::size_t row, const Target& target) {
  TargetTime time{.row = row, .target = target, .time_s = kNaN, .batches = -1};
  for (const ordered_json& e : report.rows[row].result->at("evaluations")) {
    const ordered_json& found = e.at(metric_keys().at(target.metric));
    if (found.is_null() || !target.reached_by(found.get<double>())) continue;
    time.time_s = e.at("time_s");
    time.batches = e.at("batch");
    break;
  }
  return time;
}

}  // namespace

bool is_plain_dsgd(const AlgorithmSpec& spec) {
  const auto wire = spec.options.find("wire");
  return spec.name == "dsgd" && (wire == spec.options.end() || wire->second == "fp32");
}

Target parse_target(const std::string& text) {
  const std::vector<std::string> parts = split(text, '=');
  if (parts.size() != 2 || !metric_keys().contains(parts[0]))
    throw std::invalid_argument("target: \"" + text +
                                "\" is not METRIC=VALUE with auc, accuracy or loss");
  return {.metric = parts[0],
          .value = parse_real("target: " + parts[0], parts[1], 0, parts[0] == "loss" ? 1e300 : 1)};
}

SweepResults load_sweep_results(const std::vector<std::string>& paths) {
  std::optional<SweepResults> results;
  for (const std::string& path : paths) {
    std::vector<ordered_json> records;
    const ordered_json identity = read_sweep_file(path, [&](ordered_json record) {
      static_cast<void>(record.contains("point") ? record.at("result") : record.at("crossover"));
      records.push_back(std::move(record));
    });
    if (!results)
      results = {.plan = SweepPlan(parse_sweep(identity["scenario"])), .identity = identity};
    if (identity["hash"] != results->identity["hash"])
      throw std::invalid_argument(path + " is of another sweep than " + paths.front());
    for (ordered_json& record : records) {
      try {
        add_record(*results, std::move(record), path);
      } catch (const ordered_json::exception& error) {
        throw std::invalid_argument(path + ": corrupt record: " + error.what());
      }
    }
    if (!results->rows.empty() && results->rows.rbegin()->first >= results->plan.size())
      throw std::invalid_argument(path + ": corrupt record: the sweep has no point " +
                                  std::to_string(results->rows.rbegin()->first));
  }
  if (results->rows.lower_bound(results->plan.sweep.size()) == results->rows.begin())
    throw std::invalid_argument(paths.front() + ": no point has been finished");
  return std::move(*results);
}

ScalingReport analyse_sweep(const SweepResults& results, const std::string& baseline,
                            const std::vector<Target>& targets) {
  const Sweep& sweep = results.plan.sweep;
  ScalingReport report{.baseline = choose_baseline(sweep, baseline),
                       .strong = sweep.global_batch_size.has_value(),
                       .missing_points = results.plan.size() - results.rows.size()};
  for (const auto& [point, row] : results.rows)
    if (point < sweep.size()) report.rows.push_back(make_row(results, point, row));
  report.settings = settings_of(report.rows, sweep.grid);
  for (const auto& contest : contests(report)) {
    compare_with_baseline(report, contest);
    const bool alone = report.rows[contest.front()].scenario.workers == 1;  // nothing is sent
    if (!alone) report.best.push_back(choose_best(report, contest));
  }
  add_crossovers(report, results);
  for (std::size_t row = 0; row < report.rows.size(); ++row)
    for (const Target& target : targets)
      report.target_times.push_back(time_to(report, row, target));
  return report;
}

}  // namespace gradwire
