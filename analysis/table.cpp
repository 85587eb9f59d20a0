#include "analysis/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "analysis/report.h"
#include "analysis/units.h"

namespace gradwire {

namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kWidth = 100;
constexpr const char* kNone = "-";
constexpr EvaluationPoint kNotEvaluated{.loss = NAN, .accuracy = NAN, .macro_auc = NAN};

std::string number(const char* format, double x) {
  if (!std::isfinite(x)) return kNone;
  std::array<char, 32> text{};
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): the callers' literals below
  std::snprintf(text.data(), text.size(), format, x);
  return text.data();
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Mean over layers and batches.
double mean_rank(const Result& r) {
  std::vector<double> ranks;
  for (const auto& [name, series] : r.metrics)
    if (name.starts_with("effective_rank/"))
      ranks.insert(ranks.end(), series.begin(), series.end());
  return ranks.empty() ? NAN : mean(ranks);
}

double last_error(const Result& r) {
  return r.gradient_relative_error.empty() ? NAN : r.gradient_relative_error.back();
}

std::string setting(const Scenario& s) {
  std::string text = std::to_string(s.workers) + (s.workers == 1 ? " worker" : " workers");
  text += ", " + (s.bandwidth_bit_per_s ? format_bandwidth(*s.bandwidth_bit_per_s)
                                        : s.platform + "'s bandwidth");
  if (s.latency_s) text += ", latency " + format_time(*s.latency_s);
  return text;
}

// The columns that these results fill.
struct Columns {
  bool speedup, reduction, evaluation, error, rank;
};

Cells heading(const Columns& columns) {
  Cells cells{"", "batch", "compute", "compress"};
  if (columns.reduction) cells.emplace_back("reduce");
  cells.insert(cells.end(), {"exposed", "sent", "msgs"});
  if (columns.speedup) cells.emplace_back("speed-up");
  cells.emplace_back("loss");
  if (columns.evaluation) cells.insert(cells.end(), {"accuracy", "AUC"});
  if (columns.error) cells.emplace_back("grad.err");
  if (columns.rank) cells.emplace_back("rank");
  return cells;
}

Cells cells_of(const Result& r, const std::string& name, double baseline_s,
               const Columns& columns) {
  Cells cells{name, format_time(r.batch_time_s.mean), format_time(r.compute_time_s.mean),
              format_time(r.compression_time_s.mean)};
  if (columns.reduction) cells.push_back(format_time(r.reduction_time_s.mean));
  cells.push_back(format_time(r.exposed_communication_time_s.mean));
  cells.push_back(format_bytes(mean(r.bytes_sent_by_worker)));
  cells.push_back(number("%.0f", mean(r.messages_sent_by_worker)));
  if (columns.speedup) cells.push_back(number("%.2fx", baseline_s / r.batch_time_s.mean));
  if (r.loss.empty()) {
    cells.emplace_back("none");  // a cost-only model
  } else {
    cells.push_back(diverged_at(r) < 0
                        ? number(r.loss.back() < 1e4 ? "%.4f" : "%.2e", r.loss.back())
                        : "diverged");
  }
  if (columns.evaluation) {
    const EvaluationPoint last = r.evaluations.empty() ? kNotEvaluated : r.evaluations.back();
    cells.push_back(number("%.3f", last.accuracy));
    cells.push_back(number("%.3f", last.macro_auc));
  }
  if (columns.error) cells.push_back(number("%.1e", last_error(r)));
  if (columns.rank) cells.push_back(number("%.1f", mean_rank(r)));
  return cells;
}

std::vector<std::size_t> widths_of(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths;
  for (const Cells& row : rows) {
    if (row.size() == 1) continue;  // a title
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  return widths;
}

// A first cell too long for the page stands on a line of its own.
void limit_first(std::vector<Cells>& rows) {
  const std::vector<std::size_t> widths = widths_of(rows);
  std::size_t others = 0;
  for (std::size_t c = 1; c < widths.size(); ++c) others += widths[c] + 2;
  if (widths.empty() || widths[0] + others <= kWidth) return;
  std::vector<Cells> limited;
  for (Cells& row : rows) {
    if (row.size() > 1 && row[0].size() + others > kWidth) {
      limited.push_back({row[0]});
      row[0].clear();
    }
    limited.push_back(std::move(row));
  }
  rows = std::move(limited);
}

}  // namespace

std::string align(const std::vector<std::vector<std::string>>& rows) {
  const std::vector<std::size_t> widths = widths_of(rows);
  std::string text;
  for (const Cells& row : rows) {
    std::string line = row.front();
    if (row.size() > 1) line.resize(widths.front(), ' ');
    for (std::size_t c = 1; c < row.size(); ++c)
      line.append(2 + widths[c] - row[c].size(), ' ').append(row[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text.append(line).append("\n");
  }
  return text;
}

std::string results_table(const std::vector<Result>& results) {
  const auto any = [&](auto has) { return std::any_of(results.begin(), results.end(), has); };
  const std::string first_algorithm = results.front().scenario.algorithm.text();
  const bool several =
      any([&](const Result& r) { return r.scenario.algorithm.text() != first_algorithm; });
  const Columns columns{
      .speedup = several,
      .reduction = any([](const Result& r) {
        return r.reduction_time_s.mean > 0.01 * r.batch_time_s.mean;  // mostly negligible
      }),
      .evaluation = any([](const Result& r) { return !r.evaluations.empty(); }),
      .error = any([](const Result& r) { return !r.gradient_relative_error.empty(); }),
      .rank = any([](const Result& r) { return std::isfinite(mean_rank(r)); })};

  std::vector<Cells> rows{heading(columns)};
  rows[0][0] = several ? "algorithm" : first_algorithm;
  for (std::size_t begin = 0; begin < results.size();) {
    const std::string group = setting(results[begin].scenario);
    std::size_t end = begin;
    while (end < results.size() && setting(results[end].scenario) == group) ++end;
    const auto fastest = std::min_element(
        results.begin() + static_cast<std::ptrdiff_t>(begin),
        results.begin() + static_cast<std::ptrdiff_t>(end), [](const Result& a, const Result& b) {
          return std::pair(diverged_at(a) >= 0, a.batch_time_s.mean) <
                 std::pair(diverged_at(b) >= 0, b.batch_time_s.mean);
        });
    if (several) rows.insert(rows.end(), {{""}, {group}});
    for (std::size_t i = begin; i < end; ++i) {
      const Result& r = results[i];
      const std::string mark = &r == &*fastest && diverged_at(r) < 0 ? "* " : "  ";
      rows.push_back(cells_of(r, several ? mark + r.scenario.algorithm.text() : group,
                              results[begin].batch_time_s.mean, columns));
    }
    begin = end;
  }
  limit_first(rows);
  std::string last = "loss";
  if (columns.evaluation) last += ", accuracy, AUC";
  if (columns.error) last += ", grad.err (relative)";
  std::string legend =
      "\nMeans per batch, of the slowest worker: batch = compute + compress (+ reduce: additions "
      "in\n"
      "collectives) + exposed (waiting for the network); of each worker: sent, msgs.\n"
      "After the last batch: ";
  legend += last + ".";
  if (columns.rank) legend += "  rank: mean effective rank.";
  if (several)
    legend += "\nSpeed-up against " + first_algorithm +
              ".\n* has the fastest batch, which is not the fastest way to a given loss.";
  return align(rows) + legend + "\n";
}

}  // namespace gradwire
