#include "sim/simulate.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "algorithms/serial.h"
#include "models/options.h"
#include "sim/compute_model.h"
#include "sim/flow_replay.h"
#include "sim/loaded_platform.h"
#include "sim/simgrid_communicator.h"

namespace gradwire {

namespace {

namespace s4u = simgrid::s4u;

struct Job {
  const Scenario& scenario;
  const ComputeModel& compute;
  const std::function<void(Communicator&)>& worker;
  const std::vector<WorkerRecording>* recorded = nullptr;  // by rank, of a replay
  bool keep_timeline = false;
};

[[noreturn]] void fail_with_deadlock(const std::vector<std::unique_ptr<SimGridCommunicator>>& comms,
                                     Child& child) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> waiting;
  for (const auto& comm : comms) comm->describe_waiting(waiting);
  std::string message = "deadlock: ";
  for (std::size_t i = 0; i < std::min(waiting.size(), kNamed); ++i)
    message += (i == 0 ? "" : ", ") + waiting[i];
  if (waiting.size() > kNamed)
    message += " and " + std::to_string(waiting.size() - kNamed) + " more";
  child.fail(std::runtime_error(message));
}

void put_network(ByteWriter& out, const LoadedPlatform& platform) {
  const auto constants = platform.constants();
  out.put(constants.size());
  for (const auto& [key, value] : constants) {
    out.put_string(key);
    out.put_string(value);
  }
  out.put_strings(platform.info().warnings);
}

void get_network(ByteReader& in, SimulatedRun& run) {
  for (auto constants = in.get<std::size_t>(); constants > 0; --constants) {
    std::string key = in.get_string();
    run.network.emplace_back(std::move(key), in.get_string());
  }
  run.warnings = in.get_strings();
}

std::string run_workers(const Job& job, LoadedPlatform& platform, Child& child) {
  const int size = job.scenario.workers;
  const auto workers = static_cast<std::size_t>(size);
  SimGridWorld world{platform, job.compute, child, {}};
  std::unique_ptr<GlooTransport> transport;
  if (const std::string file = calibration_file(job.scenario.network_model); !file.empty()) {
    transport = std::make_unique<GlooTransport>(read_calibration(file), platform, size);
    world.transport = transport.get();
  }
  std::vector<std::unique_ptr<SimGridCommunicator>> comms;
  Timeline timeline(job.keep_timeline ? workers : 0);
  std::size_t ended = 0;
  for (int rank = 0; rank < size; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    comms.push_back(std::make_unique<SimGridCommunicator>(
        world, rank, size, 0, job.recorded == nullptr ? nullptr : &(*job.recorded)[index]));
    SimGridCommunicator& comm = *comms.back();
    if (job.keep_timeline) comm.trace_to(&timeline[index]);
    world.workers.push_back(s4u::Actor::create(
        "worker " + std::to_string(rank), &platform.host_of(rank), [&job, &comm, &child, &ended] {
          try {
            comm.measure_cpu(job.recorded == nullptr &&
                             job.scenario.compute.mode == ComputeSpec::Mode::kMeasured);
            job.worker(comm);
            comm.require_idle();
            comm.close();
            ++ended;
          } catch (const std::exception& error) {
            child.fail(
                std::runtime_error("worker " + std::to_string(comm.rank()) + ": " + error.what()));
          }
        }));
  }
  s4u::Engine::on_deadlock_cb([&] { fail_with_deadlock(comms, child); });
  child.doing(kSimulating);
  platform.engine().run();
  if (ended != workers) fail_with_deadlock(comms, child);

  ByteWriter out;
  for (const auto& comm : comms) out.put_array(comm->steps());
  out.put(timeline.size());
  for (const auto& spans : timeline) out.put_array(spans);
  put_network(out, platform);
  return out.take();
}

ComputeModel compute_model(const Scenario& scenario, const BatchWork& batch_work) {
  ComputeSpec spec = scenario.compute;
  if (spec.mode == ComputeSpec::Mode::kCalibrated) {
    const std::string file = calibration_file(scenario.network_model);
    if (file.empty())
      throw std::invalid_argument("compute: calibrated needs network-model calibrated:FILE, not " +
                                  scenario.network_model);
    const Calibration calibration = read_calibration(file);
    spec.device_flop_per_s = calibration.flop_per_s;
    spec.device_memory_byte_per_s = calibration.memory_byte_per_s;
  }
  return {spec, batch_work};
}

SimulatedRun run(const Job& job) {
  const std::string bytes = run_on_platform(
      job.scenario,
      [&](LoadedPlatform& platform, Child& child) { return run_workers(job, platform, child); });
  ByteReader in(bytes);
  SimulatedRun result;
  for (int rank = 0; rank < job.scenario.workers; ++rank)
    result.steps_by_worker.push_back(in.get_array<Account>());
  for (auto workers = in.get<std::size_t>(); workers > 0; --workers)
    result.timeline.push_back(in.get_array<Span>());
  get_network(in, result);
  if (const std::string file = calibration_file(job.scenario.network_model); !file.empty())
    result.network.emplace_back(kPredictionUncertainty,
                                shortest(read_calibration(file).uncertainty));
  return result;
}

// Repeats what one lane did, up to the end of the job that begins at `next`, or to the end.
void repeat(Communicator& comm, const WorkerRecording& recording, std::size_t lane,
            std::array<std::size_t, 2>& next) {
  const EventLog& events = recording.lanes[lane].events;
  while (next[lane] < events.size()) {
    const Event& event = events[next[lane]++];
    const auto bytes = static_cast<std::size_t>(event.value);
    switch (event.kind) {
      case Event::Kind::kSend:
        (void)comm.isend(event.peer, {static_cast<const std::byte*>(nullptr), bytes});
        break;
      case Event::Kind::kReceive:
        (void)comm.irecv(event.peer, {static_cast<std::byte*>(nullptr), bytes});
        break;
      case Event::Kind::kWait:  // ids are given out in the same order as they were then
        comm.wait({static_cast<std::uint32_t>(event.value)});
        break;
      case Event::Kind::kCharge:  // the communicator looks up the measured time by itself
        comm.charge(event.phase, recording.lanes[lane].charges[event.value].work);
        break;
      case Event::Kind::kStart:
        comm.start(
            [&recording, &next](Communicator& second) { repeat(second, recording, 1, next); });
        break;
      case Event::Kind::kJobEnd:
        return;
      case Event::Kind::kFinish:
        comm.finish();
        break;
      case Event::Kind::kStep:
        comm.end_step();
        break;
    }
  }
}

SimulatedRun replay_through_simgrid(const Scenario& scenario, const Recording& recording,
                                    const ComputeModel& compute, bool keep_timeline) {
  std::vector<std::array<std::size_t, 2>> next(recording.workers.size());
  const auto worker = [&recording, &next](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    repeat(comm, recording.workers[rank], 0, next[rank]);
  };
  SimulatedRun result = run({.scenario = scenario,
                             .compute = compute,
                             .worker = worker,
                             .recorded = &recording.workers,
                             .keep_timeline = keep_timeline});
  result.network.emplace_back("replay", "exact");
  return result;
}

// The pairs of hosts between which the recording has messages.
HostPairs host_pairs(const Recording& recording, int workers_per_host) {
  const auto host = [&](auto worker) {
    return static_cast<std::uint32_t>(static_cast<int>(worker) / workers_per_host);
  };
  HostPairs pairs;
  for (std::size_t w = 0; w < recording.workers.size(); ++w)
    for (const LaneRecording& lane : recording.workers[w].lanes)
      for (const Event& event : lane.events.distinct()) {
        if (event.peer < 0 || static_cast<std::size_t>(event.peer) >= recording.workers.size())
          throw std::logic_error("replay: no worker " + std::to_string(event.peer));
        if (event.kind == Event::Kind::kSend) pairs.emplace_back(host(w), host(event.peer));
        if (event.kind == Event::Kind::kReceive) pairs.emplace_back(host(event.peer), host(w));
      }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

PlatformFacts load_facts(Scenario scenario, const Recording& recording) {
  const HostPairs pairs = host_pairs(recording, scenario.workers_per_host);
  scenario.bandwidth_bit_per_s.reset();
  scenario.latency_s.reset();
  return PlatformFacts::from_bytes(run_on_platform(
      scenario, [&](LoadedPlatform& platform, Child&) { return platform.facts(pairs).bytes(); }));
}

}  // namespace

// What is kept of the platforms, by how a scenario uses them; a use without facts is replayed
// through SimGrid.
struct Replayer::Platforms {
  std::mutex mutex;
  std::map<std::tuple<std::string, std::string, int>, PlatformFacts> by_use;

  const PlatformFacts& of(const Scenario& scenario, const Recording& recording) {
    const std::scoped_lock lock(mutex);  // whoever comes second waits for the first to load
    const auto [found, is_new] =
        by_use.try_emplace({scenario.platform, scenario.hosts, scenario.workers_per_host});
    if (!is_new) return found->second;
    try {
      found->second = load_facts(scenario, recording);
    } catch (...) {
      by_use.erase(found);
      throw;
    }
    return found->second;
  }
};

SimulatedRun run_simulated(const Scenario& scenario, const BatchWork& batch_work,
                           const std::function<void(Communicator&)>& worker, bool keep_timeline) {
  return run({.scenario = scenario,
              .compute = compute_model(scenario, batch_work),
              .worker = worker,
              .keep_timeline = keep_timeline});
}

Replayer::Replayer(const Recording& recording)
    : recording_(recording), platforms_(std::make_unique<Platforms>()) {}

Replayer::~Replayer() = default;

SimulatedRun Replayer::replay(const Scenario& scenario, bool keep_timeline) {
  if (recording_.workers.size() != static_cast<std::size_t>(scenario.workers))
    throw std::logic_error("replay: the recording has " +
                           std::to_string(recording_.workers.size()) + " workers, the scenario " +
                           std::to_string(scenario.workers));
  const ComputeModel compute = compute_model(scenario, recording_.batch_work);
  if (scenario.network_model == "exact" && !scenario.exact_replay && !keep_timeline) {
    check_scenario(scenario);
    const PlatformFacts& facts = platforms_->of(scenario, recording_);
    if (facts.beyond_routes.empty())
      if (auto steps = replay_flows(recording_, facts.routes_for(scenario),
                                    scenario.workers_per_host, compute)) {
        SimulatedRun run;
        run.steps_by_worker = std::move(*steps);
        run.network = facts.constants_for(scenario);
        run.warnings = facts.warnings_for(scenario);
        run.network.emplace_back("replay", "folded");
        return run;
      }
  }
  return replay_through_simgrid(scenario, recording_, compute, keep_timeline);
}

SimulatedRun replay(const Scenario& scenario, const Recording& recording, bool keep_timeline) {
  return Replayer(recording).replay(scenario, keep_timeline);
}

Result simulate(const Scenario& scenario, const Dataset& dataset) {
  check_platform(scenario);  // a bad one is not worth the mathematics
  const Rehearsal rehearsal = rehearse(scenario, dataset);
  SimulatedRun run = replay(scenario, rehearsal.recording);
  Result result;
  result.scenario = scenario;
  describe(rehearsal, result);
  describe_times(run.steps_by_worker, result);
  result.network = std::move(run.network);
  result.warnings = std::move(run.warnings);
  return result;
}

}  // namespace gradwire
