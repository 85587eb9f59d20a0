#include "algorithms/memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "algorithms/algorithm.h"

namespace gradwire {

namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double optimizer_copies(const std::string& name) {
  if (name == "adam") return 2;
  return name == "sgd" ? 0 : 1;
}

double bytes_of(const Examples& examples) {
  return static_cast<double>(examples.inputs.size()) * sizeof(Scalar);
}

// The number after `key` in a file of lines `key number`; alone in it for an empty key.
std::optional<double> read_number(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word = key;
    double number = 0;
    if (!key.empty()) words >> word;
    if (word == key && words >> number) return number;
  }
  return std::nullopt;
}

// What a control group leaves, its cache of files, which can be dropped, included.
double left_in(const fs::path& group, const char* limit, const char* usage,
               const std::string& prefix) {
  const auto most = read_number(group / limit, "");
  const auto used = read_number(group / usage, "");
  if (!most || !used) return kUnlimited;
  double droppable = 0;
  for (const char* cache : {"inactive_file", "active_file"})
    droppable += read_number(group / "memory.stat", prefix + cache).value_or(0);
  return std::max(0.0, *most - std::max(0.0, *used - droppable));
}

// Lines `ID:CONTROLLERS:PATH`; every group above counts, too.
double left_in_groups(const fs::path& proc, const fs::path& cgroup) {
  double left = kUnlimited;
  std::ifstream file(proc / "self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v1 = controllers == "memory";
    if (!controllers.empty() && !v1) continue;
    const fs::path root = v1 ? cgroup / "memory" : cgroup;
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (;; group = group.parent_path()) {
      left = std::min(left, v1 ? left_in(root / group, "memory.limit_in_bytes",
                                         "memory.usage_in_bytes", "total_")
                               : left_in(root / group, "memory.max", "memory.current", ""));
      if (group.empty()) break;
    }
  }
  return left;
}

std::string gib(double bytes) {
  std::ostringstream text;
  text.precision(bytes < 100.0 * (1 << 30) ? 3 : 0);
  if (bytes >= 100.0 * (1 << 30)) text << std::fixed;
  text << bytes / (1 << 30) << " GiB";
  return text.str();
}

void set_kept_bytes(int bytes) {
  mallopt(M_MMAP_THRESHOLD, bytes);
  mallopt(M_TRIM_THRESHOLD, bytes);
}

}  // namespace

KeptPages::KeptPages() { set_kept_bytes(1 << 30); }
KeptPages::~KeptPages() { set_kept_bytes(128 << 10); }  // glibc's default

double estimate_memory_bytes(const Scenario& scenario, const Model& model, const Dataset& dataset) {
  if (!scenario.model.values) return 0;
  const auto parameters = static_cast<double>(model.parameter_count());
  const double replica = (1 + optimizer_copies(scenario.optimizer.name)) * parameters;
  const bool shared = find_algorithm(scenario.algorithm.name).consensus &&
                      scenario.compute.mode != ComputeSpec::Mode::kMeasured;
  const double own = (scenario.gradient_error ? 6 : 2) * parameters + (shared ? 0 : replica) +
                     model.trace_size(scenario.batch_size);
  return sizeof(Scalar) * (scenario.workers * own + (shared ? 2 * replica : 0)) +
         bytes_of(dataset.train) + bytes_of(dataset.test);
}

double worker_memory_bytes(const Scenario& scenario, const Model& model) {
  const double copies = 2 + optimizer_copies(scenario.optimizer.name);
  return sizeof(Scalar) * (copies * static_cast<double>(model.parameter_count()) +
                           model.trace_size(scenario.batch_size));
}

double available_memory_bytes(const fs::path& proc, const fs::path& cgroup) {
  const auto kib = read_number(proc / "meminfo", "MemAvailable:");
  return std::min(kib ? *kib * 1024 : kUnlimited, left_in_groups(proc, cgroup));
}

void check_memory(const Scenario& scenario, const Model& model, const Dataset& dataset,
                  double available_bytes) {
  const double needed = estimate_memory_bytes(scenario, model, dataset);
  if (needed <= available_bytes) return;
  throw std::invalid_argument(
      "memory: " + std::to_string(scenario.workers) + " workers of " + scenario.model.name +
      " with batch-size " + std::to_string(scenario.batch_size) + " need about " + gib(needed) +
      ", but " + gib(available_bytes) + " are available; use fewer workers, a smaller batch-size" +
      (model.has_loss() ? "" : " or --math none"));
}

}  // namespace gradwire
