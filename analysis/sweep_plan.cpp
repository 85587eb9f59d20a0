#include "analysis/sweep_plan.h"

#include <algorithm>
#include <map>
#include <string>

namespace gradwire {

namespace {

// The fields that `keep` chooses; equal text, equal in all of them.
template <class Keep>
std::string key_of(const Scenario& scenario, const Keep& keep) {
  std::string key;
  for (const Field& field : scenario_fields())
    if (keep(field)) key += field.get(scenario) + "\n";
  return key;
}

std::string all_fields(const Scenario& scenario) {
  return key_of(scenario, [](const Field&) { return true; });
}

std::string family_key(Scenario scenario) {
  scenario.algorithm = Scenario{}.algorithm;
  return mathematics_key(scenario);
}

std::string setting_key(const Scenario& scenario) {
  return key_of(scenario, [](const Field& f) { return f.timing_only && f.key != "bandwidth"; });
}

using Series = std::vector<std::pair<double, std::uint64_t>>;  // bandwidth, point

// The group's points by setting, each along the bandwidth.
std::map<std::string, Series> series_of(const SweepGroup& group, const Sweep& sweep) {
  std::map<std::string, Series> all;
  for (const std::uint64_t point : group.points) {
    const Scenario s = sweep.point(point);
    if (s.bandwidth_bit_per_s) all[setting_key(s)].emplace_back(*s.bandwidth_bit_per_s, point);
  }
  for (auto& [setting, series] : all) std::sort(series.begin(), series.end());
  return all;
}

std::vector<std::uint64_t> points_of(const Series& series) {
  std::vector<std::uint64_t> points;
  for (const auto& [bandwidth, point] : series) points.push_back(point);
  return points;
}

void add_pairs(SweepFamily& family, const Sweep& sweep) {
  if (sweep.point(family.groups.front().points.front()).workers == 1) return;  // nothing is sent
  std::vector<std::map<std::string, Series>> series;
  for (const SweepGroup& group : family.groups) series.push_back(series_of(group, sweep));
  for (std::size_t a = 0; a < series.size(); ++a)
    for (std::size_t b = a + 1; b < series.size(); ++b)
      for (const auto& [setting, of_a] : series[a])
        if (of_a.size() > 1)
          family.pairs.push_back(
              {.groups = {a, b},
               .by_bandwidth = {points_of(of_a), points_of(series[b].at(setting))}});
}

}  // namespace

SweepPlan::SweepPlan(const Sweep& of) : sweep(of) {
  std::map<std::string, std::size_t> family_index;
  std::map<std::string, std::pair<std::size_t, std::size_t>> group_index;
  std::map<std::string, std::uint64_t> reference_index;
  const auto add = [&](std::uint64_t index, const Scenario& s) {
    const auto [family, new_family] = family_index.emplace(family_key(s), families.size());
    if (new_family) families.emplace_back();
    auto& groups = families[family->second].groups;
    const auto [group, new_group] =
        group_index.emplace(mathematics_key(s), std::pair{family->second, groups.size()});
    if (new_group) groups.emplace_back();
    groups[group->second.second].points.push_back(index);
  };
  for (std::uint64_t i = 0; i < sweep.size(); ++i) {
    const Scenario point = sweep.point(i);
    add(i, point);
    const Scenario reference = sweep.reference(point);
    const auto [found, is_new] =
        reference_index.emplace(all_fields(reference), sweep.size() + references.size());
    if (is_new) references.push_back(reference);
    reference_of.push_back(found->second);
  }
  if (sweep.crossovers)
    for (SweepFamily& family : families) add_pairs(family, sweep);
  for (std::size_t r = 0; r < references.size(); ++r) add(sweep.size() + r, references[r]);
}

Scenario SweepPlan::scenario(std::uint64_t index) const {
  return index < sweep.size() ? sweep.point(index)
                              : references[static_cast<std::size_t>(index - sweep.size())];
}

}  // namespace gradwire
