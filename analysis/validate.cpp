#include "analysis/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <map>
#include <sstream>
#include <stdexcept>

#include "analysis/svg_plot.h"
#include "analysis/table.h"
#include "analysis/text.h"
#include "analysis/units.h"
#include "models/input_file.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

constexpr double kWorthOrdering = 0.05;

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::ceil(q * last))];
}

std::string percent(double share) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << 100 * share << " %";
  return text.str();
}

// In three digits if they say it all: cases are told apart by it.
std::string exactly(double value, std::string (*rounded)(double), std::string (*exact)(double)) {
  std::ostringstream digits;
  digits << std::setprecision(3) << value;
  return std::stod(digits.str()) == value ? rounded(value) : exact(value);
}

std::string network_text(const Scenario& s) {
  std::string text = s.bandwidth_bit_per_s
                         ? exactly(*s.bandwidth_bit_per_s, format_bandwidth, write_bandwidth)
                         : "unlimited";
  if (s.latency_s.value_or(0) > 0)
    text += ", " + exactly(2 * *s.latency_s, format_time, write_time);
  return text;
}

// The pairs of a cell whose measured order is clear; appends those predicted wrongly.
bool check_order(const std::string& cell,
                 const std::vector<std::pair<const ValidationCase*, Verdict>>& members,
                 std::vector<WrongOrder>& wrong) {
  bool any = false;
  for (const auto& [a, fast] : members)
    for (const auto& [b, slow] : members) {
      if (!(slow.measured_s > fast.measured_s * (1 + kWorthOrdering))) continue;
      any = true;
      if (fast.predicted_s >= slow.predicted_s)
        wrong.push_back({cell, a->scenario.algorithm.text(), b->scenario.algorithm.text()});
    }
  return any;
}

}  // namespace

std::string cell_key(const Scenario& s) {
  const Scenario usual;
  std::string key = s.model.name + ", batch " + std::to_string(s.batch_size) + ", " +
                    std::to_string(s.workers) + " workers, " + network_text(s);
  if (s.dataset != usual.dataset) key.append(", ").append(s.dataset);
  if (s.seed != usual.seed) key.append(", seed ").append(std::to_string(s.seed));
  return key;
}

std::string case_key(const Scenario& s) { return cell_key(s) + ", " + s.algorithm.text(); }

Interval prediction_interval(const Summary& batch_time_s, double uncertainty) {
  return {batch_time_s.min / (1 + uncertainty), batch_time_s.max * (1 + uncertainty)};
}

Verdict judge(const ValidationCase& one, double uncertainty) {
  const Summary measured = summarize(one.measured_s), predicted = summarize(one.predicted_s);
  const Interval interval = prediction_interval(predicted, uncertainty);
  Verdict v{.measured_s = measured.median,
            .predicted_s = predicted.median,
            .least_s = interval.low,
            .most_s = interval.high};
  v.relative_error = v.predicted_s / v.measured_s - 1;
  v.outside = v.measured_s < v.least_s || v.measured_s > v.most_s;
  return v;
}

ValidationSummary summarize(const std::vector<ValidationCase>& cases, double uncertainty) {
  ValidationSummary summary;
  summary.cases = cases.size();
  std::vector<double> errors;
  std::map<std::string, std::vector<std::pair<const ValidationCase*, Verdict>>> cells;
  for (const ValidationCase& one : cases) {
    const Verdict v = judge(one, uncertainty);
    errors.push_back(std::abs(v.relative_error));
    if (v.outside) summary.outside.push_back(case_key(one.scenario));
    cells[cell_key(one.scenario)].emplace_back(&one, v);
  }
  summary.median_error = summarize(errors).median;
  summary.p90_error = quantile(errors, 0.9);
  summary.max_error = quantile(errors, 1);
  for (const auto& [cell, members] : cells)
    if (check_order(cell, members, summary.wrong_orders)) ++summary.cells;
  return summary;
}

ordered_json validation_json(const std::vector<ValidationCase>& cases, double uncertainty) {
  ordered_json rows = ordered_json::array();
  for (const ValidationCase& one : cases) {
    const Scenario& s = one.scenario;
    const Verdict v = judge(one, uncertainty);
    const Summary measured = summarize(one.measured_s);
    rows.push_back({{"model", s.model.name},
                    {"batch_size", s.batch_size},
                    {"workers", s.workers},
                    {"bandwidth_bit_per_s",
                     s.bandwidth_bit_per_s ? ordered_json(*s.bandwidth_bit_per_s) : ordered_json()},
                    {"one_way_delay_s", 2 * s.latency_s.value_or(0)},
                    {"algorithm", s.algorithm.text()},
                    {"measured_median_s", measured.median},
                    {"measured_min_s", measured.min},
                    {"measured_max_s", measured.max},
                    {"measured_s", one.measured_s},
                    {"predicted_s", v.predicted_s},
                    {"predicted_interval_s", {v.least_s, v.most_s}},
                    {"relative_error", v.relative_error},
                    {"outside_interval", v.outside}});
  }
  const ValidationSummary summary = summarize(cases, uncertainty);
  ordered_json wrong = ordered_json::array();
  for (const WrongOrder& order : summary.wrong_orders)
    wrong.push_back(
        {{"cell", order.cell}, {"measured_faster", order.faster}, {"slower", order.slower}});
  return {{"summary",
           {{"cases", summary.cases},
            {"median_relative_error", summary.median_error},
            {"p90_relative_error", summary.p90_error},
            {"max_relative_error", summary.max_error},
            {"cells_with_an_order", summary.cells},
            {"wrong_orders", std::move(wrong)},
            {"outside_interval", summary.outside}}},
          {"cases", std::move(rows)}};
}

std::string validation_table(const std::vector<ValidationCase>& cases, double uncertainty) {
  std::vector<std::vector<std::string>> rows{{"algorithm", "model", "workers", "network",
                                              "measured", "from", "to", "predicted", "from", "to",
                                              "error", ""}};
  for (const ValidationCase& one : cases) {
    const Verdict v = judge(one, uncertainty);
    const Summary measured = summarize(one.measured_s);
    rows.push_back({one.scenario.algorithm.text(), one.scenario.model.name,
                    std::to_string(one.scenario.workers), network_text(one.scenario),
                    format_time(measured.median), format_time(measured.min),
                    format_time(measured.max), format_time(v.predicted_s), format_time(v.least_s),
                    format_time(v.most_s),
                    (v.relative_error > 0 ? "+" : "") + percent(v.relative_error),
                    v.outside ? "outside" : ""});
  }
  const ValidationSummary s = summarize(cases, uncertainty);
  std::string text =
      align(rows) + "\n" + std::to_string(s.cases) + " cases; error: median " +
      percent(s.median_error) + ", 90th percentile " + percent(s.p90_error) + ", largest " +
      percent(s.max_error) + "; outside their interval: " + std::to_string(s.outside.size()) +
      "\nOrder of algorithms: " + std::to_string(s.cells) + " cells, " +
      std::to_string(s.wrong_orders.size()) + " pairs predicted the other way round\n";
  for (const WrongOrder& order : s.wrong_orders)
    text += "  " + order.cell + ": " + order.faster + " is faster than " + order.slower + "\n";
  return text;
}

namespace {

// Decades that hold every time.
struct LogAxis {
  double low = 1e300, high = 0;
  static constexpr double kMargin = 60, kLength = 560;

  void add(double value) {
    low = std::min(low, std::pow(10, std::floor(std::log10(value))));
    high = std::max(high, std::pow(10, std::ceil(std::log10(value))));
  }
  double at(double value) const {
    return kLength * std::log(value / low) / std::log(std::max(high / low, 10.0));
  }
  double x(double value) const { return kMargin + at(value); }
  double y(double value) const { return kMargin / 2 + kLength - at(value); }
};

std::string colour(std::size_t i, std::size_t n) {
  return "hsl(" + std::to_string(360 * i / std::max<std::size_t>(n, 1)) + ",70%,42%)";
}

void draw_line(std::ostream& svg, const LogAxis& axis, double factor, const char* style) {
  svg << "<line x1=\"" << axis.x(axis.low) << "\" y1=\"" << axis.y(axis.low * factor) << "\" x2=\""
      << axis.x(axis.high) << "\" y2=\"" << axis.y(axis.high * factor) << "\" " << style << "/>\n";
}

void draw_axes(std::ostream& svg, const LogAxis& axis) {
  const double bottom = axis.y(axis.low), left = axis.x(axis.low);
  for (double decade = axis.low; decade <= axis.high * 1.001; decade *= 10) {
    svg << "<text x=\"" << axis.x(decade) << "\" y=\"" << bottom + 16
        << "\" text-anchor=\"middle\">" << format_time(decade) << "</text>\n"
        << "<text x=\"" << left - 6 << "\" y=\"" << axis.y(decade) + 4 << "\" text-anchor=\"end\">"
        << format_time(decade) << "</text>\n";
  }
  svg << "<text x=\"" << left + LogAxis::kLength / 2 << "\" y=\"" << bottom + 34
      << "\" text-anchor=\"middle\">measured time of a batch</text>\n<text x=\"" << left
      << "\" y=\"18\">predicted; band: 10 %</text>\n<rect x=\"" << left << "\" y=\""
      << axis.y(axis.high) << "\" width=\"" << LogAxis::kLength << "\" height=\""
      << LogAxis::kLength << "\" fill=\"none\" stroke=\"#888\"/>\n";
  draw_line(svg, axis, 1, "stroke=\"#444\"");
  for (const double factor : {0.9, 1.1})
    draw_line(svg, axis, factor, "stroke=\"#bbb\" stroke-dasharray=\"4 3\"");
}

}  // namespace

std::string validation_svg(const std::vector<ValidationCase>& cases, double uncertainty) {
  LogAxis axis;
  std::vector<std::string> algorithms;
  for (const ValidationCase& one : cases) {
    const Verdict v = judge(one, uncertainty);
    axis.add(v.measured_s);
    axis.add(v.predicted_s);
    const std::string name = one.scenario.algorithm.text();
    if (std::find(algorithms.begin(), algorithms.end(), name) == algorithms.end())
      algorithms.push_back(name);
  }
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"940\" height=\"650\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"940\" height=\"650\" "
         "fill=\"white\"/>\n";
  if (!cases.empty()) draw_axes(svg, axis);
  for (const ValidationCase& one : cases) {
    const Verdict v = judge(one, uncertainty);
    const auto kind = static_cast<std::size_t>(
        std::find(algorithms.begin(), algorithms.end(), one.scenario.algorithm.text()) -
        algorithms.begin());
    svg << "<circle cx=\"" << axis.x(v.measured_s) << "\" cy=\"" << axis.y(v.predicted_s)
        << "\" r=\"3.5\" fill-opacity=\"0.7\" fill=\"" << colour(kind, algorithms.size())
        << "\"><title>" << escape(case_key(one.scenario)) << ": " << format_time(v.measured_s)
        << " measured, " << format_time(v.predicted_s) << " predicted</title></circle>\n";
  }
  for (std::size_t i = 0; i < algorithms.size(); ++i)
    svg << "<circle cx=\"650\" cy=\"" << 50 + 20 * i << "\" r=\"5\" fill=\""
        << colour(i, algorithms.size()) << "\"/><text x=\"662\" y=\"" << 54 + 20 * i << "\">"
        << escape(algorithms[i]) << "</text>\n";
  svg << "</svg>\n";
  return svg.str();
}

std::vector<Scenario> validation_matrix() {
  std::vector<Scenario> matrix;
  const auto add = [&](int workers, double bit_per_s, double one_way_s) {
    for (const char* model : {"mlp-wide", "mlp-mnist"})
      for (const char* algorithm :
           {"dsgd", "dsgd:exchange=allgather", "dsgd:exchange=gloo", "dad", "rank-dad",
            "rank-dad:exchange=star", "powersgd", "top-columns", "top-k", "micro", "sgp"}) {
        Scenario s;
        s.model.name = model;
        s.algorithm = parse_algorithm_spec(algorithm);
        s.workers = workers;
        s.bandwidth_bit_per_s = bit_per_s;
        s.latency_s = one_way_s / 2;
        matrix.push_back(std::move(s));
      }
  };
  for (const int workers : {2, 4, 8}) {
    for (const double bit_per_s : {10e6, 100e6, 300e6, 1000e6}) add(workers, bit_per_s, 0);
    for (const double one_way_s : {5e-3, 20e-3}) add(workers, 100e6, one_way_s);
  }
  return matrix;
}

std::string to_line(const ValidationRun& run) {
  return ordered_json{{"case", run.key},
                      {"round", run.round},
                      {"measured_s", run.measured_s},
                      {"predicted_s", run.predicted_s}}
             .dump() +
         "\n";
}

std::string results_header(const std::string& calibration_text) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : calibration_text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::ostringstream hex;
  hex << std::hex << hash;
  return ordered_json{
             {"format", "gradwire validation"}, {"version", 1}, {"calibration_hash", hex.str()}}
             .dump() +
         "\n";
}

std::vector<ValidationRun> parse_lines(const std::string& text, const std::string& header) {
  std::vector<ValidationRun> runs;
  if (text.empty()) return runs;
  if (!text.starts_with(header))
    throw std::invalid_argument(
        "holds no validation results of this calibration; give another file");
  std::size_t line = 1;
  for (std::size_t at = header.size(), end = 0; (end = text.find('\n', at)) != std::string::npos;
       at = end + 1) {
    ++line;
    try {
      const auto json = parse_input("", std::string_view(text).substr(at, end - at));
      runs.push_back({json.at("case").get<std::string>(), json.at("round").get<int>(),
                      json.at("measured_s").get<std::vector<double>>(),
                      json.at("predicted_s").get<std::vector<double>>()});
    } catch (const std::exception&) {  // no JSON, or a member is missing
      throw std::invalid_argument("line " + std::to_string(line) + " is no result");
    }
    const ValidationRun& run = runs.back();
    const auto positive = [](double s) { return s > 0; };
    if (run.measured_s.empty() || run.predicted_s.empty() ||
        !std::all_of(run.measured_s.begin(), run.measured_s.end(), positive) ||
        !std::all_of(run.predicted_s.begin(), run.predicted_s.end(), positive))
      throw std::invalid_argument("line " + std::to_string(line) + " has no times above 0");
  }
  return runs;
}

}  // namespace gradwire
