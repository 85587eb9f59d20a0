#include "analysis/sweep_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "algorithms/algorithm.h"
#include "analysis/crossover_search.h"
#include "analysis/parallel.h"
#include "analysis/report.h"
#include "analysis/study.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;
using PairId = std::pair<std::uint64_t, std::uint64_t>;

// What a sweep's file holds.
struct Known {
  std::map<std::uint64_t, double> batch_time_s;  // by point
  std::set<PairId> pairs;

  void add(const ordered_json& record) {
    if (record.contains("point")) {
      batch_time_s[record.at("point")] = record.at("result").at("batch_time_s").at("mean");
    } else {
      pairs.emplace(record.at("crossover").at(0), record.at("crossover").at(1));
    }
  }
};

bool is_synchronous(const Scenario& s) { return find_algorithm(s.algorithm.name).synchronous; }

// One of each mathematics and of each use of a platform.
std::vector<Scenario> representatives(const SweepPlan& plan) {
  std::vector<Scenario> chosen;
  std::set<std::string> uses;
  for (const SweepFamily& family : plan.families)
    for (const SweepGroup& group : family.groups)
      for (const std::uint64_t point : group.points) {
        const Scenario s = plan.scenario(point);
        const std::string use = s.platform + "\n" + s.hosts + "\n" + s.network_model + "\n" +
                                std::to_string(s.workers_per_host) + " " +
                                std::to_string(s.workers);
        if (uses.insert(use).second || point == group.points.front()) chosen.push_back(s);
      }
  return chosen;
}

double cost_of_point(const Scenario& s) { return s.workers; }
double cost_of_pair(const Scenario& s) { return 4.0 * s.workers; }  // a few replays more

// Which of the plan's points and pairs one shard computes: a stretch of the whole work.
struct Share {
  std::set<std::uint64_t> points;
  std::set<PairId> pairs;
};

template <class Point, class Pair>
void for_each_task(const SweepPlan& plan, const Point& on_point, const Pair& on_pair) {
  for (const SweepFamily& family : plan.families) {
    for (const SweepGroup& group : family.groups)
      for (const std::uint64_t point : group.points) on_point(point);
    for (const SweepPair& pair : family.pairs) on_pair(pair);
  }
}

Share share_of(const SweepPlan& plan, int shard, int shards) {
  double all = 0;
  const auto cost = [&](std::uint64_t point, auto f) { return f(plan.scenario(point)); };
  for_each_task(
      plan, [&](std::uint64_t p) { all += cost(p, cost_of_point); },
      [&](const SweepPair& pair) { all += cost(pair.id().first, cost_of_pair); });
  Share share;
  double before = 0;
  const auto mine = [&](double own) {
    const double middle = before + own / 2;
    before += own;
    return static_cast<int>(middle / all * shards) == shard - 1;
  };
  for_each_task(
      plan,
      [&](std::uint64_t p) {
        if (mine(cost(p, cost_of_point))) share.points.insert(p);
      },
      [&](const SweepPair& pair) {
        if (mine(cost(pair.id().first, cost_of_pair))) share.pairs.insert(pair.id());
      });
  return share;
}

ordered_json point_record(std::uint64_t point, const Result& result) {
  ordered_json row = result_json(result);
  row.erase("bytes_sent_by_worker");
  row.erase("messages_by_worker");
  return {{"point", point}, {"result", std::move(row)}};
}

struct Rehearsed {
  explicit Rehearsed(Rehearsal of) : rehearsal(std::move(of)), timing(rehearsal) {}
  const Rehearsal rehearsal;
  Timing timing;
};

class Runner {
 public:
  Runner(const SweepPlan& plan, Share todo, Known known, Datasets& datasets, SweepFile& file,
         const SweepOptions& options)
      : plan_(plan),
        todo_(std::move(todo)),
        known_(std::move(known)),
        datasets_(datasets),
        file_(file),
        options_(options) {
    for_each_task(
        plan_, [&](std::uint64_t p) { all_ += todo_.points.contains(p) ? cost(p) : 0; },
        [&](const SweepPair& p) { all_ += todo_.pairs.contains(p.id()) ? cost(p) : 0; });
  }

  void run() {
    for (const SweepFamily& family : plan_.families) {
      const bool compares =
          std::any_of(family.pairs.begin(), family.pairs.end(),
                      [&](const SweepPair& p) { return todo_.pairs.contains(p.id()); });
      for (std::size_t g = 0; g < family.groups.size(); ++g) {
        run_points(family, g);
        if (!compares) rehearsals_.clear();
      }
      if (compares) run_pairs(family);
      rehearsals_.clear();
    }
  }

 private:
  double cost(std::uint64_t point) const { return cost_of_point(plan_.scenario(point)); }
  double cost(const SweepPair& pair) const { return cost_of_pair(plan_.scenario(pair.id().first)); }

  void tell(const Scenario& s, const std::string& what) const {
    if (!options_.progress) return;
    const std::string who = s.algorithm.text() + ", " + std::to_string(s.workers) + " workers";
    options_.progress(who + what, all_ > 0 ? done_ / all_ : 1);
  }

  // The group's mathematics, done once; nothing for an algorithm whose numbers depend on timing.
  void rehearse_group(const SweepFamily& family, std::size_t group) {
    const Scenario first = plan_.scenario(family.groups[group].points.front());
    if (rehearsals_.contains(group) || !is_synchronous(first)) return;
    tell(first, ": mathematics");
    rehearsals_.try_emplace(group, rehearse_named(first, datasets_.of(first)));
  }

  Result evaluate(std::size_t group, const Scenario& s) {
    if (is_synchronous(s)) return rehearsals_.at(group).timing.of(s);
    const Dataset* dataset = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      dataset = &datasets_.of(s);
    }
    return simulate(s, *dataset);
  }

  void record(const Scenario& s, const ordered_json& line, double cost) {
    const std::scoped_lock lock(mutex_);
    file_.append(line);
    done_ += cost;
    tell(s, "");
  }

  void run_points(const SweepFamily& family, std::size_t group) {
    std::vector<std::uint64_t> points;
    for (const std::uint64_t p : family.groups[group].points)
      if (todo_.points.contains(p)) points.push_back(p);
    time_points(family, group, points, /*record=*/true);
  }

  void time_points(const SweepFamily& family, std::size_t group,
                   const std::vector<std::uint64_t>& points, bool keep) {
    if (points.empty()) return;
    rehearse_group(family, group);
    parallel_for(points.size(), options_.jobs, [&](std::size_t i) {
      const Scenario s = plan_.scenario(points[i]);
      const Result result = evaluate(group, s);
      if (keep) record(s, point_record(points[i], result), cost_of_point(s));
      const std::scoped_lock lock(mutex_);
      known_.batch_time_s[points[i]] = result.batch_time_s.mean;
    });
  }

  // The grid's times that a pair needs and that this shard has not: another shard's points.
  void complete_times(const SweepFamily& family, const std::vector<const SweepPair*>& pairs) {
    std::map<std::size_t, std::set<std::uint64_t>> missing;
    for (const SweepPair* pair : pairs)
      for (std::size_t side = 0; side < 2; ++side)
        for (const std::uint64_t p : pair->by_bandwidth[side])
          if (!known_.batch_time_s.contains(p)) missing[pair->groups[side]].insert(p);
    for (const auto& [group, points] : missing)
      time_points(family, group, {points.begin(), points.end()}, /*record=*/false);
  }

  std::vector<Bracket> brackets_of(const SweepPair& pair) const {
    std::vector<TimePair> grid;
    for (std::size_t i = 0; i < pair.by_bandwidth[0].size(); ++i) {
      const std::uint64_t a = pair.by_bandwidth[0][i];
      const std::uint64_t b = pair.by_bandwidth[1][i];
      grid.push_back({*plan_.scenario(a).bandwidth_bit_per_s, known_.batch_time_s.at(a),
                      known_.batch_time_s.at(b)});
    }
    return find_brackets(grid);
  }

  void run_pairs(const SweepFamily& family) {
    std::vector<const SweepPair*> pairs;
    for (const SweepPair& pair : family.pairs)
      if (todo_.pairs.contains(pair.id())) pairs.push_back(&pair);
    complete_times(family, pairs);
    std::vector<std::vector<Bracket>> brackets;
    for (const SweepPair* pair : pairs) {
      brackets.push_back(brackets_of(*pair));
      if (brackets.back().empty()) continue;
      for (const std::size_t group : pair->groups) rehearse_group(family, group);
    }
    parallel_for(pairs.size(), options_.jobs, [&](std::size_t i) {
      const SweepPair& pair = *pairs[i];
      ordered_json bandwidths = ordered_json::array();
      for (const Bracket& bracket : brackets[i])
        bandwidths.push_back(
            close_in(bracket, [&](double bandwidth) { return times_at(pair, bandwidth); }));
      record(plan_.scenario(pair.id().first),
             {{"crossover", {pair.id().first, pair.id().second}},
              {"bandwidths_bit_per_s", std::move(bandwidths)}},
             cost(pair));
    });
  }

  TimePair times_at(const SweepPair& pair, double bandwidth_bit_per_s) {
    std::array<double, 2> times{};
    for (std::size_t side = 0; side < 2; ++side) {
      Scenario s = plan_.scenario(pair.by_bandwidth[side].front());
      s.bandwidth_bit_per_s = bandwidth_bit_per_s;
      times[side] = evaluate(pair.groups[side], s).batch_time_s.mean;
    }
    return {bandwidth_bit_per_s, times[0], times[1]};
  }

  const SweepPlan& plan_;
  Share todo_;
  Known known_;
  Datasets& datasets_;
  SweepFile& file_;
  const SweepOptions& options_;
  std::map<std::size_t, Rehearsed> rehearsals_;  // of the current family, by group
  std::mutex mutex_;                             // of file_, known_, done_, datasets_
  double all_ = 0;
  double done_ = 0;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

SweepProgress run_sweep(const Sweep& sweep, const std::string& path, const SweepOptions& options) {
  const SweepPlan plan(sweep);
  Datasets datasets;
  Study inputs;
  check_scenarios(representatives(plan), datasets, inputs);

  Share todo = share_of(plan, options.shard, options.shards);
  SweepProgress progress{.points = todo.points.size()};
  Known known;
  SweepFile file(path, sweep_identity(sweep), [&](const ordered_json& line) { known.add(line); });
  for (const auto& [point, time_s] : known.batch_time_s) progress.found += todo.points.erase(point);
  for (const PairId& pair : known.pairs) todo.pairs.erase(pair);
  Runner(plan, std::move(todo), std::move(known), datasets, file, options).run();
  return progress;
}

SweepEstimate estimate_sweep(const Sweep& sweep, int jobs) {
  SweepEstimate estimate{.points = sweep.size(), .rehearsals = 1};
  for (const Field& field : scenario_fields())
    if (!field.timing_only)
      estimate.rehearsals *= static_cast<double>(sweep.grid.values(field).size());
  const std::vector<std::string> workers = sweep.grid.values(find_field("workers"));
  double sum = 0;
  std::int64_t least = INT64_MAX;
  for (const std::string& n : workers) {
    sum += std::stod(n);
    least = std::min<std::int64_t>(least, std::stoll(n));
  }
  Scenario probe = sweep.point(0);
  probe.workers = static_cast<int>(least);
  if (sweep.global_batch_size) probe.batch_size = *sweep.global_batch_size / least;
  Datasets datasets;
  Study inputs;
  check_scenarios({probe}, datasets, inputs);
  Rehearsal rehearsal;
  const double mathematics_s = seconds_of([&] { rehearsal = rehearse(probe, datasets.of(probe)); });
  Timing timing(rehearsal);
  timing.of(probe);  // loads the platform
  const double replay_s = seconds_of([&] { timing.of(probe); });
  const double mean_growth = sum / static_cast<double>(workers.size()) / static_cast<double>(least);
  const double lanes = jobs > 0 ? jobs : std::max(1U, std::thread::hardware_concurrency());
  estimate.seconds = mean_growth * (mathematics_s * estimate.rehearsals +
                                    replay_s * static_cast<double>(estimate.points) / lanes);
  return estimate;
}

}  // namespace gradwire
