#include "analysis/html_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/scaling_text.h"
#include "analysis/svg_plot.h"
#include "analysis/text.h"
#include "analysis/units.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;
using Bandwidth = std::optional<double>;

constexpr std::size_t kPictures = 4;  // of a kind, at most
constexpr std::size_t kPoints = 24;   // of a curve over batches, at most
constexpr const char* kTargetDensity = "target_density";

std::string plain_tick(double x) { return shortest(std::round(x * 1e9) / 1e9 + 0.0); }  // no -0
std::string percent_tick(double x) { return std::to_string(std::lround(100 * x)) + " %"; }
std::string factor_tick(double x) { return plain_tick(x) + "x"; }

std::string bandwidth_text(const Bandwidth& bandwidth) {
  return bandwidth ? format_bandwidth(*bandwidth) : "the platform's own bandwidth";
}
std::string workers_text(int workers) {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers");
}

// Some of many, the ends among them.
template <class T>
std::vector<T> selection(const std::vector<T>& all) {
  if (all.size() <= kPictures) return all;
  std::vector<T> chosen;
  for (std::size_t i = 0; i < kPictures; ++i)
    chosen.push_back(all[i * (all.size() - 1) / (kPictures - 1)]);
  return chosen;
}

// The pictures of one setting.
class Section {
 public:
  Section(const ScalingReport& report, const ScalingSetting& setting)
      : report_(report), setting_(setting) {
    std::set<int> workers;
    std::set<Bandwidth> bandwidths;
    for (const std::size_t i : setting.rows) {
      const Scenario& s = report.rows[i].scenario;
      workers.insert(s.workers);
      bandwidths.insert(s.bandwidth_bit_per_s);
      const std::string name = s.algorithm.text();
      if (!styles_.contains(name)) {
        styles_.emplace(name, names_.size());
        names_.emplace_back(name, names_.size());
      }
    }
    workers_.assign(workers.begin(), workers.end());
    bandwidths_.assign(bandwidths.begin(), bandwidths.end());
  }

  std::string html() const {
    std::string text = setting_.text.empty() ? "" : "<h2>" + escape(setting_.text) + "</h2>\n";
    text += curve_legend(names_);
    text += "<h3>Best algorithm</h3>\n" + best_map() + crossovers();
    text += "<h3>Time per batch</h3>\n<div>";
    for (const Bandwidth& b : selection(bandwidths_)) text += split_bars(b);
    text += "</div>\n";
    if (workers_.size() > 1) {
      text += "<h3>Scaling</h3>\n";
      for (const Bandwidth& b : selection(bandwidths_)) text += "<div>" + scaling(b) + "</div>\n";
      text += "<div>" + needs() + "</div>\n";
    }
    if (bandwidths_.size() > 1) {
      text += "<h3>Over the bandwidth</h3>\n";
      for (const int n : selection(workers_)) text += "<div>" + over_bandwidth(n) + "</div>\n";
    }
    return text + training() + figures();
  }

 private:
  using Value = std::function<double(const ScalingRow&)>;
  using Where = std::function<bool(const Scenario&)>;

  Where at(const Bandwidth& bandwidth) const {
    return [bandwidth](const Scenario& s) { return s.bandwidth_bit_per_s == bandwidth; };
  }
  Where with(int workers) const {
    return [workers](const Scenario& s) { return s.workers == workers; };
  }

  // One curve per algorithm through the rows that `where` chooses.
  std::vector<Curve> curves(const Where& where, const Value& x, const Value& y) const {
    std::vector<Curve> all;
    for (const auto& [name, style] : names_) {
      Curve curve{.name = name, .style = style, .points = {}};
      for (const std::size_t i : setting_.rows) {
        const ScalingRow& row = report_.rows[i];
        if (row.scenario.algorithm.text() == name && where(row.scenario))
          curve.points.emplace_back(x(row), y(row));
      }
      std::sort(curve.points.begin(), curve.points.end());
      all.push_back(std::move(curve));
    }
    return all;
  }

  Axis workers_axis() const {
    Axis axis{.label = "workers", .logarithmic = true, .tick = plain_tick};
    for (const int n : workers_) axis.ticks.push_back(n);
    return axis;
  }

  std::string scaling(const Bandwidth& bandwidth) const {
    const std::string where = " at " + bandwidth_text(bandwidth);
    const Value workers = [](const ScalingRow& r) { return r.scenario.workers; };
    const auto of = [&](const Value& y) { return curves(at(bandwidth), workers, y); };
    const double first = workers_.front();
    const double last = workers_.back();
    std::string text =
        svg(LinePlot{.title = "Throughput" + where,
                     .x = workers_axis(),
                     .y = {.label = "examples/s", .logarithmic = true, .tick = plain_tick},
                     .curves = of([](const ScalingRow& r) { return r.throughput_example_per_s; })});
    text += svg(LinePlot{.title = "Speed-up against one worker" + where,
                         .x = workers_axis(),
                         .y = {.label = "speed-up", .logarithmic = true, .tick = factor_tick},
                         .curves = of([](const ScalingRow& r) { return r.speedup; }),
                         .guides = {{"ideal", {first, first}, {last, last}}}});
    return text + svg(LinePlot{.title = "Efficiency" + where,
                               .x = workers_axis(),
                               .y = {.label = "speed-up / workers", .tick = percent_tick},
                               .curves = of([](const ScalingRow& r) { return r.efficiency; }),
                               .guides = {{"", {first, 1}, {last, 1}}}});
  }

  // What does not depend on the network.
  std::string needs() const {
    const auto plot = [&](const std::string& title, bool logarithmic, const Value& y) {
      const Value workers = [](const ScalingRow& r) { return r.scenario.workers; };
      return svg(LinePlot{.title = title,
                          .x = workers_axis(),
                          .y = {.label = "", .logarithmic = logarithmic, .tick = format_bytes},
                          .curves = curves(at(bandwidths_.front()), workers, y)});
    };
    return plot("Bytes that a worker sends per batch", true,
                [](const ScalingRow& r) { return r.bytes_sent_per_worker; }) +
           plot("Memory of a worker, what the algorithm keeps included", false,
                [](const ScalingRow& r) { return r.memory_bytes_per_worker; });
  }

  std::string over_bandwidth(int workers) const {
    const std::string where = ", " + workers_text(workers);
    const Value x = [](const ScalingRow& r) {
      return r.scenario.bandwidth_bit_per_s.value_or(NAN);
    };
    const auto of = [&](const Value& y) { return curves(with(workers), x, y); };
    const Axis axis{.label = "bandwidth", .logarithmic = true, .tick = format_bandwidth};
    return svg(LinePlot{.title = "Time per batch" + where,
                        .x = axis,
                        .y = {.label = "", .logarithmic = true, .tick = format_time},
                        .curves = of([](const ScalingRow& r) { return r.batch_time_s; })}) +
           svg(LinePlot{.title = "Speed-up against " + report_.baseline + where,
                        .x = axis,
                        .y = {.label = "speed-up", .logarithmic = true, .tick = factor_tick},
                        .curves = of([](const ScalingRow& r) { return r.speedup_vs_baseline; })});
  }

  std::string split_bars(const Bandwidth& bandwidth) const {
    StackedBars plot{.title = "At " + bandwidth_text(bandwidth),
                     .x = {.label = "time per batch", .tick = format_time},
                     .parts = {"compute", "compression", "exposed communication"},
                     .groups = {}};
    for (const int n : selection(workers_)) {
      BarGroup group{.name = workers_text(n), .bars = {}};
      for (const std::size_t i : setting_.rows) {
        const ScalingRow& r = report_.rows[i];
        if (r.scenario.workers != n || r.scenario.bandwidth_bit_per_s != bandwidth) continue;
        group.bars.push_back({r.scenario.algorithm.text(),
                              {r.compute_time_s, r.compression_time_s,
                               r.exposed_communication_time_s + r.reduction_time_s},
                              format_time(r.batch_time_s)});
      }
      plot.groups.push_back(std::move(group));
    }
    return svg(plot);
  }

  // A letter per algorithm; cells where nothing is worth compressing stay plain.
  std::string best_map() const {
    CellMap map{.title = "Fastest algorithm",
                .x_label = "bandwidth",
                .y_label = "workers",
                .columns = {},
                .rows = {},
                .cells = {}};
    for (const Bandwidth& b : bandwidths_) map.columns.push_back(b ? format_bandwidth(*b) : "own");
    for (const int n : workers_) {
      if (n == 1) continue;
      map.rows.push_back(std::to_string(n));
      std::vector<Cell> cells(bandwidths_.size());
      for (const BestChoice& best : report_.best) {
        const ScalingRow& row = report_.rows[best.row];
        if (row.scenario.workers != n || !contains(best.row)) continue;
        const std::size_t style = styles_.at(row.scenario.algorithm.text());
        cells[column_of(row.scenario.bandwidth_bit_per_s)] = {
            .text = best.no_compression ? "none" : letter(style),
            .style = style,
            .explanation = verdict(report_, best),
            .plain = best.no_compression};
      }
      map.cells.push_back(std::move(cells));
    }
    std::string key = "<p>none: no compression (plain dSGD is the fastest, or nothing gains 1 %)";
    for (const auto& [name, style] : names_)
      key += "; <b>" + letter(style) + "</b> " + escape(name);
    return svg(map) + key + "</p>\n";
  }

  std::string crossovers() const {
    std::string items;
    for (const Crossover& c : report_.crossovers)
      if (contains(c.first_row) && !c.bandwidths_bit_per_s.empty())
        items += "<li>" + workers_text(report_.rows[c.first_row].scenario.workers) + ": " +
                 escape(describe(report_, c)) + "</li>\n";
    return items.empty() ? "" : "<h3>Crossovers</h3>\n<ul>\n" + items + "</ul>\n";
  }

  // Loss, error and what an AUC lacks, against simulated seconds, where they were evaluated.
  std::string training() const {
    std::string text;
    for (const int n : selection(workers_))
      for (const Bandwidth& b : selection(bandwidths_)) {
        std::string pictures;
        for (const auto& [key, title] :
             std::vector<std::pair<std::string, std::string>>{{"loss", "Test loss"},
                                                              {"accuracy", "1 - test accuracy"},
                                                              {"macro_auc", "1 - test macro AUC"}})
          pictures += over_time(n, b, key, title);
        if (!pictures.empty()) text += "<div>" + pictures + "</div>\n";
      }
    return text.empty() ? "" : "<h3>Time to accuracy</h3>\n" + text;
  }

  std::string over_time(int workers, const Bandwidth& bandwidth, const std::string& key,
                        const std::string& title) const {
    LinePlot plot{.title = title + ", " + workers_text(workers) + ", " + bandwidth_text(bandwidth),
                  .x = {.label = "simulated time", .logarithmic = true, .tick = format_time},
                  .y = {.label = "", .tick = plain_tick, .from_zero = false},
                  .curves = {}};
    double last_s = 0;
    for (const std::size_t i : setting_.rows) {
      const ScalingRow& row = report_.rows[i];
      if (row.scenario.workers != workers || row.scenario.bandwidth_bit_per_s != bandwidth)
        continue;
      const std::string name = row.scenario.algorithm.text();
      Curve curve{.name = name, .style = styles_.at(name), .points = {}};
      for (const ordered_json& e : row.result->at("evaluations")) {
        if (e.at(key).is_null()) continue;
        const double value = e.at(key);
        curve.points.emplace_back(e.at("time_s"), key == "loss" ? value : 1 - value);
        last_s = std::max(last_s, curve.points.back().first);
      }
      if (!curve.points.empty()) plot.curves.push_back(std::move(curve));
    }
    return plot.curves.empty() ? "" : svg(with_log_axis(std::move(plot)));
  }

  // What the algorithms report of themselves; no bandwidth changes it.
  std::string figures() const {
    std::set<std::string> names;
    for (const std::size_t i : setting_.rows)
      for (const auto& metric : report_.rows[i].result->at("metrics").items())
        names.insert(metric.key());
    names.erase(kTargetDensity);
    std::string text;
    for (const std::string& name : names) text += "<div>" + figure(name) + "</div>\n";
    return text.empty() ? "" : "<h3>Figures of the algorithms</h3>\n" + text;
  }

  std::string figure(const std::string& name) const {
    std::string title = name;
    std::replace(title.begin(), title.end(), '_', ' ');
    const auto targeted = [&](LinePlot plot) {
      const double target = name == "density" ? target_density() : NAN;
      double last = 0;
      for (const Curve& curve : plot.curves)
        for (const auto& point : curve.points) last = std::max(last, point.first);
      if (target > 0) plot.guides.push_back({"target", {1, target}, {last, target}});
      return svg(with_log_axis(std::move(plot)));
    };
    std::string text;
    if (workers_.size() > 1)
      text = targeted(
          {.title = title + ", last half of the batches",
           .x = workers_axis(),
           .y = {.label = "", .tick = plain_tick},
           .curves = curves(
               at(bandwidths_.front()), [](const ScalingRow& r) { return r.scenario.workers; },
               [&](const ScalingRow& r) { return late_mean(series(r, name)); })});
    LinePlot plot{.title = title + ", " + workers_text(workers_.back()),
                  .x = {.label = "batch", .tick = plain_tick},
                  .y = {.label = "", .tick = plain_tick},
                  .curves = {}};
    for (const std::size_t i : setting_.rows) {
      const ScalingRow& row = report_.rows[i];
      const std::vector<double> values = series(row, name);
      if (row.scenario.workers != workers_.back() || !at(bandwidths_.front())(row.scenario) ||
          values.empty())
        continue;
      const std::string algorithm = row.scenario.algorithm.text();
      Curve curve{.name = algorithm, .style = styles_.at(algorithm), .points = {}};
      const std::size_t stride = (values.size() + kPoints - 1) / kPoints;
      for (std::size_t b = 0; b < values.size(); b += stride)
        curve.points.emplace_back(b + 1, values[b]);
      plot.curves.push_back(std::move(curve));
    }
    return text + targeted(std::move(plot));
  }

  static std::vector<double> series(const ScalingRow& row, const std::string& name) {
    std::vector<double> values;
    const ordered_json& metrics = row.result->at("metrics");
    if (!metrics.contains(name)) return values;
    for (const ordered_json& x : metrics.at(name))
      values.push_back(x.is_null() ? NAN : x.get<double>());
    return values;
  }

  static double late_mean(const std::vector<double>& values) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    return std::accumulate(begin, values.end(), 0.0) / static_cast<double>(values.end() - begin);
  }

  // What all algorithms aim at in the end; NaN where they differ.
  double target_density() const {
    double common = NAN;
    for (const std::size_t i : setting_.rows) {
      const std::vector<double> target = series(report_.rows[i], kTargetDensity);
      if (target.empty()) continue;
      if (std::isfinite(common) && std::abs(target.back() / common - 1) > 0.01) return NAN;
      common = target.back();
    }
    return common;
  }

  // Logarithmic where all values allow it.
  static LinePlot with_log_axis(LinePlot plot) {
    plot.y.logarithmic = std::all_of(plot.curves.begin(), plot.curves.end(), [](const Curve& c) {
      return std::all_of(c.points.begin(), c.points.end(),
                         [](const auto& point) { return !(point.second <= 0); });
    });
    return plot;
  }

  bool contains(std::size_t row) const {
    return std::find(setting_.rows.begin(), setting_.rows.end(), row) != setting_.rows.end();
  }
  std::size_t column_of(const Bandwidth& bandwidth) const {
    return static_cast<std::size_t>(std::find(bandwidths_.begin(), bandwidths_.end(), bandwidth) -
                                    bandwidths_.begin());
  }
  static std::string letter(std::size_t style) {
    return style < 26 ? std::string(1, static_cast<char>('A' + style)) : std::to_string(style + 1);
  }

  const ScalingReport& report_;
  const ScalingSetting& setting_;
  std::vector<int> workers_;
  std::vector<Bandwidth> bandwidths_;
  std::vector<std::pair<std::string, std::size_t>> names_;
  std::map<std::string, std::size_t> styles_;
};

std::string target_table(const ScalingReport& report) {
  if (report.target_times.empty()) return "";
  std::string text =
      "<h2>Time to target</h2>\n<table><tr><th>target<th>workers<th>bandwidth<th>algorithm"
      "<th>time<th>batches</tr>\n";
  for (const TargetTime& t : report.target_times) {
    const Scenario& s = report.rows[t.row].scenario;
    text += "<tr><td>" + t.target.metric + " " + shortest(t.target.value) + "<td>" +
            std::to_string(s.workers) + "<td>" + bandwidth_text(s.bandwidth_bit_per_s) + "<td>" +
            escape(s.algorithm.text()) + "<td>" +
            (t.batches < 0 ? "never" : format_time(t.time_s)) + "<td>" +
            (t.batches < 0 ? "-" : std::to_string(t.batches)) + "</tr>\n";
  }
  return text + "</table>\n";
}

}  // namespace

std::string scaling_html(const ScalingReport& report, const SweepResults& results) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>gradwire scaling "
      "report</title>\n"
      "<style>\n";
  text += plot_css();
  text +=
      R"(body{font:15px/1.45 sans-serif;color:var(--ink);background:var(--page);max-width:1000px;
margin:1em auto;padding:0 1em}svg{max-width:100%;height:auto}.legend span{margin-right:1.4em;
white-space:nowrap}pre{white-space:pre;overflow-x:auto;font-size:12px}table{border-collapse:collapse}
td,th{padding:.1em .8em .1em 0;text-align:left}@media print{h2,h3{break-after:avoid}svg,table{break-inside:avoid}
body{max-width:none}pre{font-size:6.5px;overflow:visible}svg.lines{width:49%}}
</style></head><body>
<h1>Scaling report</h1>
)";
  text += plot_hatchings();
  text += "<p>" + std::string(report.strong ? "Strong" : "Weak") + " scaling; baseline <b>" +
          escape(report.baseline) + "</b>; scenario " +
          results.identity["hash"].get<std::string>() + ", gradwire " +
          results.identity["versions"]["gradwire"].get<std::string>() + ".";
  if (report.missing_points > 0)
    text += " <b>" + std::to_string(report.missing_points) + " points are missing.</b>";
  text += "</p>\n";
  for (const ScalingSetting& setting : report.settings) text += Section(report, setting).html();
  text += target_table(report);
  text += "<h2>All figures</h2>\n<pre>" + escape(scaling_table(report)) + "</pre>\n";
  text += "<h2>Scenario</h2>\n<pre>" + escape(results.identity["scenario"].dump(2)) + "</pre>\n";
  return text + "</body></html>\n";
}

}  // namespace gradwire
