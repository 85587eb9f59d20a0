// `gradwire calibrate`: measures transport and processors for --network-model calibrated:FILE.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>

#include "analysis/calibrate.h"
#include "analysis/command_line.h"
#include "analysis/output_file.h"
#include "analysis/progress.h"
#include "analysis/real_options.h"
#include "analysis/report.h"
#include "analysis/table.h"
#include "analysis/text.h"
#include "analysis/units.h"
#ifdef GRADWIRE_WITH_GLOO
#include "algorithms/serial.h"
#include "analysis/local_network.h"
#include "real/foreign_load.h"
#endif

namespace gradwire {

namespace {

#ifdef GRADWIRE_WITH_GLOO

// Rates and delays that nobody validates with.  The lab shapes rates above 200 Mbit/s otherwise
// than below, which shows in what their bytes cost.
constexpr double kShaped_bit_per_s[] = {50e6, 200e6, 250e6, 700e6};
constexpr double kDelayed_bit_per_s = 50e6, kCableDelay_s = 5e-3;
constexpr std::size_t kSizes[] = {64, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
constexpr std::size_t kShortSizes = 3;  // of them, all latency
constexpr std::size_t kStreamSizes[] = {4096, 1048576};

std::string pack(const Stream& s) {
  ByteWriter out;
  out.put(s);
  return out.take();
}

// Set for good where nobody else ever left the machine alone.
bool was_disturbed = false;

template <class Measure>
auto undisturbed(const Measure& measure) {
  constexpr int kTries = 8;
  bool disturbed = false;
  auto found = measure_undisturbed(kTries, disturbed, measure);
  was_disturbed = was_disturbed || disturbed;
  return found;
}

// Worker 0's result of one measurement by `workers` processes; nothing on a cluster's other ranks.
using Measure = std::function<std::string(Communicator& comm)>;
std::optional<std::string> run_measurement(int workers, const RealOptions& options,
                                           const Measure& measure) {
  const auto run = [&] {
    return run_on_mesh(workers, {{"command", "calibrate"}}, options,
                       [&](const Mesh& mesh) { return measure(*mesh.comm); });
  };
  const auto all = options.cluster ? run() : undisturbed(run);  // processes there decide alone
  return all.empty() ? std::nullopt : std::optional(all.front());
}

// A network of the lab, or none where there is none.
class Networks {
 public:
  Networks(const RealOptions& options, bool lab_wanted) : options_(options) {
    has_lab_ = lab_wanted && network_.of(scenario(2, 0, 0)) != nullptr;
    if (has_lab_) open(2, 0, 0);
  }
  bool has_lab() const { return has_lab_; }
  const std::string& obstacle() const { return network_.obstacle(); }
  const RealOptions& options() const { return options_; }
  /// Of labs that do not keep their promise.
  const std::set<std::string>& complaints() const { return complaints_; }

  void open(int workers, double bit_per_s, double delay_s) {
    options_.lab = network_.of(scenario(workers, bit_per_s, delay_s));
    if (options_.lab == nullptr) throw std::runtime_error(network_.obstacle());
    if (std::string complaint = network_.complaint(); !complaint.empty())
      complaints_.insert(std::move(complaint));
  }

 private:
  static Scenario scenario(int workers, double bit_per_s, double delay_s) {
    Scenario s;
    s.workers = workers;
    s.bandwidth_bit_per_s = bit_per_s;
    s.latency_s = delay_s;
    return s;
  }

  RealOptions options_;
  LocalNetwork network_;
  bool has_lab_ = false;
  std::set<std::string> complaints_;
};

void on_lane(Communicator& comm, std::size_t lane,
             const std::function<void(Communicator&)>& measure) {
  if (lane == 0) return measure(comm);
  comm.start(measure);
  comm.finish();
}

std::span<const std::size_t> sizes_on(std::size_t lane) {
  return std::span(kSizes).first(lane == 0 ? std::size(kSizes) : kShortSizes);
}

constexpr int kBurstTimes = 3;

void put_bursts(Communicator& comm, ByteWriter& out) {
  for (const bool second_lane : {false, true})
    for (const int messages : {LaneSamples::kShortBurst, LaneSamples::kLongBurst})
      out.put(measure_burst(comm, second_lane, messages));
}

void take_bursts(ByteReader& in, CalibrationSamples& samples) {
  for (LaneSamples& lane : samples.lanes)
    for (auto* each_s : {&lane.short_burst_cpu_s, &lane.long_burst_cpu_s})
      each_s->push_back(in.get<double>());
}

// A cluster's processes meet once, for bursts too.  Returns whether this process is the one that
// has the result.
bool sample_messages(const RealOptions& options, int workers, CalibrationSamples& samples) {
  const int bursts = options.cluster ? kBurstTimes : 0;
  const auto bytes = run_measurement(workers, options, [&](Communicator& comm) {
    ByteWriter out;
    for (std::size_t lane = 0; lane < 2; ++lane)
      for (const std::size_t size : sizes_on(lane)) {
        constexpr double kMost_bytes = 64 << 20;
        const int times =
            static_cast<int>(std::clamp(kMost_bytes / static_cast<double>(size), 20.0, 400.0));
        on_lane(comm, lane, [&](Communicator& on) {
          const PingPong p = measure_ping_pong(on, size, times);
          out.put_array(p.one_way_s);
          out.put(p.cpu_s);
        });
      }
    for (const std::size_t size : kStreamSizes)
      out.put(measure_stream(comm, StreamPattern::kOneWay, size, size > 65536 ? 300 : 3000));
    for (int time = 0; time < bursts; ++time) put_bursts(comm, out);
    return out.take();
  });
  if (!bytes) return false;
  ByteReader in(*bytes);
  for (std::size_t lane = 0; lane < 2; ++lane)
    for (const std::size_t size : sizes_on(lane)) {
      PingPong p{.bytes = static_cast<double>(size), .one_way_s = in.get_array<double>()};
      p.cpu_s = in.get<double>();
      samples.lanes[lane].messages.push_back(std::move(p));
    }
  for ([[maybe_unused]] const std::size_t size : kStreamSizes)
    samples.streams.push_back(in.get<Stream>());
  for (int time = 0; time < bursts; ++time) take_bursts(in, samples);
  return true;
}

// Bursts of short messages, each time by new processes.
void sample_bursts(const RealOptions& options, int workers, CalibrationSamples& samples) {
  for (int time = 0; time < kBurstTimes; ++time) {
    const auto bytes = run_measurement(workers, options, [](Communicator& comm) {
      ByteWriter out;
      put_bursts(comm, out);
      return out.take();
    });
    ByteReader in(*bytes);
    take_bursts(in, samples);
  }
}

Stream sample_stream(const RealOptions& options, int workers, StreamPattern pattern,
                     double bit_per_s) {
  constexpr std::size_t kBytes = 1 << 20;
  const int messages = std::max(8, static_cast<int>(1.5 * bit_per_s / 8 / kBytes));
  const auto bytes = run_measurement(workers, options, [&](Communicator& comm) {
    return pack(measure_stream(comm, pattern, kBytes, messages));
  });
  return ByteReader(*bytes).get<Stream>();
}

ShapedSamples sample_shaped(Networks& networks, double bit_per_s) {
  ShapedSamples s;
  s.bit_per_s = bit_per_s;
  networks.open(2, bit_per_s, 0);
  s.one_way = sample_stream(networks.options(), 2, StreamPattern::kOneWay, bit_per_s);
  s.both_ways = sample_stream(networks.options(), 2, StreamPattern::kBothWays, bit_per_s);
  networks.open(4, bit_per_s, 0);
  s.fan_out = sample_stream(networks.options(), 4, StreamPattern::kFanOut, bit_per_s / 3);
  s.fan_in = sample_stream(networks.options(), 4, StreamPattern::kFanIn, bit_per_s / 3);
  return s;
}

DelayedSamples sample_delayed(Networks& networks) {
  constexpr std::size_t kBytes = 8 << 20;
  constexpr int kTimes = 5;
  DelayedSamples d;
  d.one_way_s = 2 * kCableDelay_s;
  d.bit_per_s = kDelayed_bit_per_s;
  d.sent_bytes = kBytes;
  networks.open(2, kDelayed_bit_per_s, kCableDelay_s);
  const auto bytes = run_measurement(2, networks.options(), [&](Communicator& comm) {
    ByteWriter out;
    out.put_array(measure_ping_pong(comm, kSizes[0], 20).one_way_s);
    out.put_array(measure_arrival(comm, 10 * kCableDelay_s, kTimes));
    out.put_array(measure_arrival(comm, 0, kTimes));
    out.put(measure_send_wait(comm, kBytes));
    return out.take();
  });
  ByteReader in(*bytes);
  d.short_message.one_way_s = in.get_array<double>();
  d.arrival_posted_early_s = in.get_array<double>();
  d.arrival_posted_together_s = in.get_array<double>();
  d.send_wait_s = in.get<double>();
  networks.open(3, kDelayed_bit_per_s, kCableDelay_s);
  const auto queue = run_measurement(3, networks.options(), [&](Communicator& comm) {
    ByteWriter out;
    out.put(measure_queue(comm, 32));
    return out.take();
  });
  d.queue_s = ByteReader(*queue).get<double>();
  return d;
}

// Nothing on a cluster's ranks other than 0.
std::optional<CalibrationSamples> sample(const RealOptions& options, Progress& progress,
                                         std::string& warning) {
  CalibrationSamples samples;
  samples.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  samples.one_machine = !options.cluster;
  Networks networks(options, samples.one_machine);
  samples.network = options.cluster ? "cluster" : networks.has_lab() ? "lab" : "loopback";
  samples.pinned = networks.has_lab();
  progress.update("single messages", 0);
  const int workers = options.cluster ? options.cluster->size : 2;
  if (!sample_messages(networks.options(), workers, samples)) return std::nullopt;
  if (networks.has_lab()) networks.open(2 * samples.cores, 0, 0);
  if (!options.cluster) sample_bursts(networks.options(), 2 * samples.cores, samples);
  if (networks.has_lab()) {
    double done = 0.2;
    for (const double bit_per_s : kShaped_bit_per_s) {
      progress.update("streams", done);
      samples.shaped.push_back(sample_shaped(networks, bit_per_s));
      done += 0.12;
    }
    progress.update("delays", done);
    samples.delayed = sample_delayed(networks);
    for (const auto& [up_to_bit_per_s, bytes] : NetLab::bursts())
      samples.token_buckets.push_back({.up_to_bit_per_s = up_to_bit_per_s, .bytes = bytes});
  } else if (samples.one_machine) {
    warning = "no network lab (" + networks.obstacle() +
              "): shares of headers and acknowledgements are assumed, not measured";
  }
  for (const std::string& complaint : networks.complaints())
    warning += (warning.empty() ? "" : "; ") + complaint;
  progress.update("mathematics", 0.9);
  samples.compute = undisturbed([&] { return measure_compute(samples.cores); });
  return samples;
}

std::string format_percent(double share) { return shortest(std::round(1000 * share) / 10) + " %"; }

std::string table(const nlohmann::ordered_json& file) {
  std::vector<std::vector<std::string>> rows{{"parameter", "value"}};
  const auto flat = file["parameters"].flatten();
  for (const auto& [key, value] : flat.items()) {
    std::string name = key.substr(1);
    std::replace(name.begin(), name.end(), '/', ' ');
    rows.push_back({name, value.is_number_float() ? shortest(value.get<double>()) : value.dump()});
  }
  rows.push_back({"", ""});
  rows.push_back({"fit", "relative error: median, largest"});
  for (const auto& [name, fit] : file["fits"].items())
    rows.push_back({name, format_percent(fit["median_relative_error"].get<double>()) + ", " +
                              format_percent(fit["max_relative_error"].get<double>())});
  return align(rows);
}

int run(const Arguments& arguments, const std::string& /*command_line*/, const Streams& streams) {
  if (!arguments.positional().empty())
    throw UsageError("calibrate: unexpected \"" + arguments.positional().front() + "\"");
  if (!arguments.has("output")) throw UsageError("calibrate needs --output FILE");
  check_writable(arguments.value("output"));
  const RealOptions options = read_real_options(arguments);
  std::string warning;
  std::optional<CalibrationSamples> samples;
  {
    const bool leads = !options.cluster || options.cluster->rank == 0;
    Progress progress(streams.err, leads && streams.err_is_terminal && !arguments.has("quiet"));
    samples = sample(options, progress, warning);
  }
  if (!samples) return 0;
  if (was_disturbed)
    warning +=
        (warning.empty() ? "" : "; ") + std::string(
                                            "other processes took processor time from the "
                                            "measurements: calibrate again on a quiet machine");
  if (!warning.empty() && !arguments.has("quiet"))
    streams.err << "gradwire: warning: " << warning << "\n";
  const auto file = calibration_json(*samples);
  write_file(arguments.value("output"), dump(file));
  streams.out << table(file);
  return 0;
}

#else

int run(const Arguments& /*arguments*/, const std::string& /*command_line*/,
        const Streams& /*streams*/) {
  throw std::runtime_error("this gradwire was built without Gloo: it cannot calibrate");
}

#endif

}  // namespace

Command calibrate_command() {
  Command command{
      .name = "calibrate",
      .summary = "Measures this machine and its transport for run --network-model calibrated:FILE.",
      .usage = "--output FILE [OPTION...]",
      .examples =
          R"(  gradwire calibrate --output calibration.json         # as root: in a network lab
  mpirun -n 2 gradwire calibrate --rendezvous /shared/folder --output calibration.json
  gradwire run --platform star-1g --network-model calibrated:calibration.json --compute calibrated
)",
      .flags = {{"output", "FILE", "the calibration, as JSON with all samples"},
                {"quiet", "", "no progress and no warnings"}},
      .run = run};
  for (Flag& flag : real_network_flags()) command.flags.push_back(std::move(flag));
  return command;
}

}  // namespace gradwire
