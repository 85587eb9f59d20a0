#include "analysis/study.h"

#include <chrono>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "algorithms/memory.h"
#include "algorithms/training.h"
#include "analysis/fields.h"
#include "analysis/parallel.h"
#include "analysis/text.h"
#include "models/cost_only.h"

namespace gradwire {

namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Scenarios that share their mathematics.
struct Group {
  std::vector<std::size_t> members;
  double weight = 0;  // a guess of the work, for the progress
};

std::vector<Group> group(const std::vector<Scenario>& scenarios) {
  std::map<std::string, std::size_t> index;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& s = scenarios[i];
    const auto [found, is_new] = index.emplace(mathematics_key(s), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].members.push_back(i);
    groups[found->second].weight =
        static_cast<double>(s.workers) * static_cast<double>(s.batch_size * s.batches);
  }
  return groups;
}

std::vector<PlatformInfo> check_platforms(const std::vector<Scenario>& scenarios) {
  std::map<std::tuple<std::string, std::string, int, int, std::string, bool, bool>, bool> seen;
  std::vector<PlatformInfo> platforms;
  for (const Scenario& s : scenarios) {
    bool& checked = seen[{s.platform, s.hosts, s.workers, s.workers_per_host, s.network_model,
                          s.bandwidth_bit_per_s.has_value(), s.latency_s.has_value()}];
    if (!std::exchange(checked, true)) platforms.push_back(check_platform(s));
  }
  return platforms;
}

}  // namespace

void check_scenarios(const std::vector<Scenario>& scenarios, Datasets& datasets, Study& study) {
  const std::vector<Group> groups = group(scenarios);
  for (const Group& g : groups) {
    const Scenario& s = scenarios[g.members.front()];
    make_algorithm(s.algorithm);
    make_optimizer(s.optimizer);
  }
  study.platforms = check_platforms(scenarios);
  const double available_bytes = available_memory_bytes();
  std::string known;
  std::unique_ptr<Model> model;
  for (const Group& g : groups) {
    const Scenario& s = scenarios[g.members.front()];
    const Dataset& dataset = datasets.of(s);
    static_cast<void>(BatchSource(dataset, s.batch_size, 0, s.workers, s.seed, s.split));
    const std::string key = join({s.model.name, s.model.activation, s.dataset}, " ");
    if (std::exchange(known, key) != key) model = make_model_for_checks(s.model, dataset.shape);
    check_model_use(s, *model);
    check_memory(s, *model, dataset, available_bytes);
    if (study.model.name.empty()) describe_inputs(s, *model, dataset, study);
  }
}

Timing::Timing(const Rehearsal& rehearsal) : replayer_(rehearsal.recording) {
  describe(rehearsal, described_);
}

Result Timing::of(const Scenario& scenario, Timeline* timeline) {
  Result result = described_;
  result.scenario = scenario;
  SimulatedRun run = replayer_.replay(scenario, timeline != nullptr);
  describe_times(run.steps_by_worker, result);
  result.network = std::move(run.network);
  result.warnings = std::move(run.warnings);
  if (timeline != nullptr) *timeline = std::move(run.timeline);
  return result;
}

Rehearsal rehearse_named(const Scenario& s, const Dataset& dataset) {
  const auto who = [&] {
    return s.algorithm.text() + ", " + std::to_string(s.workers) + " workers: ";
  };
  try {
    return rehearse(s, dataset);
  } catch (const std::invalid_argument&) {  // names its key
    throw;
  } catch (const std::logic_error& error) {
    throw std::runtime_error(who() + error.what());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(who() + error.what());
  }
}

const Dataset& Datasets::of(const Scenario& scenario) {
  static const Dataset none = no_dataset();
  if (is_cost_only(scenario.model)) return none;
  const Fold& fold = scenario.fold;
  const auto key = std::tuple(scenario.dataset, scenario.seed, fold.index, fold.count);
  const auto found = loaded_.find(key);
  if (found != loaded_.end()) return found->second;
  return loaded_.emplace(key, load_dataset(scenario.dataset, scenario.seed, fold)).first->second;
}

void describe_inputs(const Scenario& scenario, const Model& model, const Dataset& dataset,
                     Study& study) {
  study.model = {scenario.model.name, model.has_loss(), model.parameter_count(),
                 model.linear_maps()};
  study.dataset = {dataset.name,  dataset.synthetic,           dataset.unlimited,
                   dataset.shape, dataset.train.inputs.rows(), dataset.test.inputs.rows()};
}

Study run_study(const std::vector<Scenario>& scenarios, const StudyOptions& options) {
  Study study;
  study.results.resize(scenarios.size());
  const std::vector<Group> groups = group(scenarios);
  Datasets datasets;
  check_scenarios(scenarios, datasets, study);

  double all = 0;
  double done = 0;
  for (const Group& g : groups) all += g.weight;
  for (const Group& g : groups) {
    const Scenario& first = scenarios[g.members.front()];
    if (options.progress)
      options.progress(first.algorithm.text() + ", " + std::to_string(first.workers) + " workers",
                       done / all);
    done += g.weight;
    if (!find_algorithm(first.algorithm.name).synchronous) {  // its numbers depend on the network
      for (const std::size_t i : g.members)
        study.results[i] = simulate(scenarios[i], datasets.of(first));
      continue;
    }
    const Stopwatch mathematics;
    const Rehearsal rehearsal = rehearse_named(first, datasets.of(first));
    study.wall_mathematics_s += mathematics.seconds();
    const Stopwatch network;
    Timing timing(rehearsal);
    parallel_for(g.members.size(), options.jobs, [&](std::size_t m) {
      const std::size_t i = g.members[m];
      study.results[i] =
          timing.of(scenarios[i], options.keep_timeline && i == 0 ? &study.timeline : nullptr);
    });
    study.wall_network_s += network.seconds();
    if (options.rehearsed) options.rehearsed(rehearsal);
  }
  return study;
}

Study replay_study(const std::vector<Scenario>& scenarios, const Rehearsal& rehearsal, int jobs) {
  Study study;
  study.platforms = check_platforms(scenarios);
  study.results.resize(scenarios.size());
  Timing timing(rehearsal);
  parallel_for(scenarios.size(), jobs,
               [&](std::size_t i) { study.results[i] = timing.of(scenarios[i]); });
  return study;
}

}  // namespace gradwire
