// `gradwire collective`: one collective by size, in the columns of NVIDIA's nccl-tests (doc/
// PERFORMANCE.md there): algbw = size / time, busbw = algbw * factor, GB = 1e9 bytes.  The device
// is infinitely fast: the network alone counts.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "algorithms/collectives.h"
#include "algorithms/dry_run.h"
#include "analysis/command_line.h"
#include "analysis/parallel.h"
#include "analysis/report.h"
#include "analysis/text.h"
#include "analysis/units.h"
#include "sim/platform.h"
#include "sim/simulate.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

struct Measurement {
  std::size_t bytes = 0;
  double time_s = 0;
  double algbw_byte_per_s = 0;
  double busbw_byte_per_s = 0;
  double bytes_sent_per_worker = 0;
  double messages_per_worker = 0;
};

// `1KiB:64MiB:x4`, or `1KiB,1MiB`.
std::vector<std::size_t> parse_sizes(const std::string& text) {
  const auto bytes = [](const std::string& part) {
    const double size = parse_bytes("sizes", part);
    if (std::fmod(size, sizeof(Scalar)) != 0)
      throw std::invalid_argument("sizes: \"" + part + "\" is not a multiple of " +
                                  std::to_string(sizeof(Scalar)) + " bytes, one number");
    return static_cast<std::size_t>(size);
  };
  std::vector<std::size_t> sizes;
  const std::vector<std::string> range = split(text, ':');
  if (range.size() == 1) {
    for (const std::string& part : split(text, ',')) sizes.push_back(bytes(part));
    return sizes;
  }
  if (range.size() != 3 || !range[2].starts_with('x'))
    throw std::invalid_argument("sizes: \"" + text +
                                "\" is not a list or FROM:TO:xFACTOR; write e.g. 1KiB:64MiB:x4");
  const std::size_t last = bytes(range[1]);
  const auto factor = static_cast<std::size_t>(parse_integer("sizes", range[2].substr(1), 2, 1024));
  for (std::size_t size = std::max(sizeof(Scalar), bytes(range[0])); size <= last; size *= factor)
    sizes.push_back(size);
  if (sizes.empty()) throw std::invalid_argument("sizes: \"" + text + "\" holds no size");
  return sizes;
}

// A recording holds no data, but every call of every worker; the last worker's are typical.
void check_memory(const WorkerRecording& last, int workers) {
  const double needed = 2.0 * workers * static_cast<double>(last.lanes[0].events.symbols().size());
  const double there =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (needed > there)
    throw std::invalid_argument("workers: the schedule of " + std::to_string(workers) +
                                " needs about " + format_bytes(needed) +
                                " of memory; this machine has " + format_bytes(there));
}

// The schedule of all workers; it does not depend on the data, so that there is none.
Recording record(const CollectiveRow& collective, int workers, std::size_t bytes) {
  const auto worker = [&](std::size_t rank) {
    return record_dry(static_cast<int>(rank), workers, [&](Communicator& comm) {
      collective.run(comm, bytes);
      comm.end_step();
    });
  };
  const auto count = static_cast<std::size_t>(workers);
  check_memory(worker(count - 1), workers);
  Recording recording{.workers = {}, .batch_work = {{.flops = 1}, {.flops = 1}}};
  recording.workers.resize(count);
  parallel_for(count, 0, [&](std::size_t rank) { recording.workers[rank] = worker(rank); });
  return recording;
}

Measurement measure(const CollectiveRow& collective, const Scenario& scenario, std::size_t bytes) {
  const SimulatedRun run = replay(scenario, record(collective, scenario.workers, bytes));
  Measurement m{.bytes = bytes};
  for (const std::vector<Account>& steps : run.steps_by_worker) {
    const Account& end = steps.back();
    m.time_s = std::max(m.time_s, end.time_s);
    m.bytes_sent_per_worker += static_cast<double>(end.traffic.bytes_sent) / scenario.workers;
    m.messages_per_worker += static_cast<double>(end.traffic.messages_sent) / scenario.workers;
  }
  m.algbw_byte_per_s = static_cast<double>(bytes) / m.time_s;
  m.busbw_byte_per_s = m.algbw_byte_per_s * collective.busbw_factor(scenario.workers);
  return m;
}

ordered_json as_json(const CollectiveRow& collective, const Scenario& s,
                     const std::vector<Measurement>& measurements) {
  ordered_json results = ordered_json::array();
  for (const Measurement& m : measurements) {
    const auto finite = [](double x) { return std::isfinite(x) ? ordered_json(x) : nullptr; };
    results.push_back({{"size_bytes", m.bytes},
                       {"time_s", m.time_s},
                       {"algbw_byte_per_s", finite(m.algbw_byte_per_s)},
                       {"busbw_byte_per_s", finite(m.busbw_byte_per_s)},
                       {"bytes_sent_per_worker", m.bytes_sent_per_worker},
                       {"messages_per_worker", m.messages_per_worker}});
  }
  return {{"collective", collective.name},
          {"platform", s.platform},
          {"workers", s.workers},
          {"network_model", s.network_model},
          {"results", std::move(results)}};
}

std::string as_text(const CollectiveRow& collective, const Scenario& s,
                    const std::vector<Measurement>& measurements) {
  std::string text = "# " + collective.name + ", " + std::to_string(s.workers) +
                     (s.workers == 1 ? " worker, " : " workers, ") + s.platform +
                     ", network model " + s.network_model + "\n#" +
                     "       size         time      algbw      busbw\n#" +
                     "        (B)         (us)     (GB/s)     (GB/s)\n";
  std::array<char, 96> line{};
  const auto rate = [](double byte_per_s) {
    std::array<char, 32> digits{"-"};  // no bytes, or no time
    if (std::isfinite(byte_per_s))
      std::snprintf(digits.data(), digits.size(), "%.4f", byte_per_s / 1e9);
    return std::string(digits.data());
  };
  for (const Measurement& m : measurements) {
    std::snprintf(line.data(), line.size(), "%12zu %12.2f %10s %10s\n", m.bytes, 1e6 * m.time_s,
                  rate(m.algbw_byte_per_s).c_str(), rate(m.busbw_byte_per_s).c_str());
    text += line.data();
  }
  return text;
}

int collective(const Arguments& arguments, const std::string& /*command_line*/,
               const Streams& streams) {
  for (const char* key : {"platform", "collective"})
    if (!arguments.has(key))
      throw UsageError(std::string("collective needs --") + key + "; see gradwire list " + key +
                       "s");
  Grid grid;
  arguments.apply_to(grid);
  std::vector<Scenario> points = grid.points();
  if (points.size() > 1) throw UsageError("collective takes one platform, rate and worker count");
  Scenario& scenario = points.front();
  scenario.compute = {.mode = ComputeSpec::Mode::kGiven};
  const CollectiveRow& row = find_collective(arguments.value("collective"));
  const std::vector<std::size_t> sizes = parse_sizes(arguments.value("sizes", "1KiB:64MiB:x4"));
  check_platform(scenario);
  std::vector<Measurement> measurements;
  measurements.reserve(sizes.size());
  for (const std::size_t size : sizes) measurements.push_back(measure(row, scenario, size));
  streams.out << (arguments.has("json") ? dump(as_json(row, scenario, measurements))
                                        : as_text(row, scenario, measurements));
  return 0;
}

}  // namespace

Command collective_command() {
  Command command{
      .name = "collective",
      .summary = "Times one collective operation by size, in nccl-tests' columns.",
      .usage = "--platform FILE --collective NAME [OPTION...]",
      .examples =
          R"(  gradwire collective --platform star-10g --workers 8 --collective all-reduce:ring
  gradwire collective --platform my.xml --collective all-reduce:tree --sizes 1KiB,1MiB --json
)",
      .flags = {{"collective", "NAME", "a name from `gradwire list collectives`", "Collective"},
                {"sizes", "SIZES",
                 "bytes of the whole array, multiples of 4: a list or FROM:TO:xFACTOR (default "
                 "1KiB:64MiB:x4)",
                 "Collective"}},
      .run = collective};
  for (const char* key : {"platform", "hosts", "workers", "workers-per-host", "network-model",
                          "bandwidth", "latency", "exact-replay"})
    command.flags.push_back(field_flag(find_field(key)));
  command.flags.push_back({"json", "", "print JSON"});
  return command;
}

}  // namespace gradwire
