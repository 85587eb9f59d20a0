// The replay over flows against the replay through SimGrid.
#include "sim/flow_replay.h"

#include <catch2/catch.hpp>

#include "algorithms/collectives.h"
#include "algorithms/dry_run.h"
#include "algorithms/in_process.h"
#include "platform_file.h"
#include "sim/simulate.h"

namespace gradwire {
namespace {

// Hosts a, b, ... with ports of different rates and latencies, in a zone of explicit routes.
std::string uneven_xml(int hosts, const std::string& policy) {
  std::string xml;
  const auto name = [](int i) { return std::string(1, static_cast<char>('a' + i)); };
  for (int i = 0; i < hosts; ++i) {
    xml += hosts_xml(name(i));
    xml.append("<link id=\"l").append(name(i)).append("\" bandwidth=\"");
    xml.append(std::to_string(100 + 137 * i % 700)).append("MBps\" latency=\"");
    xml.append(std::to_string(3 + 11 * i % 17)).append("us\" sharing_policy=\"");
    xml.append(policy).append("\"/>\n");
  }
  const bool split = policy == "SPLITDUPLEX";
  for (int a = 0; a < hosts; ++a)
    for (int b = 0; b < hosts; ++b) {
      if (a == b) continue;
      xml.append("<route src=\"").append(name(a)).append("\" dst=\"").append(name(b));
      xml.append("\" symmetrical=\"NO\"><link_ctn id=\"l").append(name(a)).append("\"");
      xml.append(split ? " direction=\"UP\"" : "").append("/><link_ctn id=\"l").append(name(b));
      xml.append("\"").append(split ? " direction=\"DOWN\"" : "").append("/></route>\n");
    }
  return full_zone_xml(xml);
}

struct Network {
  std::string name;
  Scenario scenario;
};

Network on(const std::string& name, Scenario scenario, int workers, int per_host = 1) {
  scenario.workers = workers;
  scenario.workers_per_host = per_host;
  scenario.compute.device_flop_per_s = 1e9;
  return {name, scenario};
}

struct Networks {
  PlatformFile star{star_xml()};
  PlatformFile backbone{star_xml(R"(bb_bw="150MBps" bb_lat="10us")")};
  PlatformFile ports{uneven_xml(9, "SPLITDUPLEX")};
  PlatformFile half_duplex{uneven_xml(9, "SHARED")};
  /// Four of the seven if the number of workers is even, else all.
  std::vector<Network> all(int workers) const {
    Scenario two_level, fat_tree, torus;
    two_level.platform = "two-level";
    fat_tree.platform = "fat-tree-64";
    torus.platform = "torus";
    std::vector<Network> networks{
        on("backbone", backbone.scenario(2), workers), on("ports", ports.scenario(2), workers),
        on("two levels", two_level, workers, 3), on("torus", torus, workers)};
    if (workers % 2 != 0)
      networks.insert(networks.end(), {on("star", star.scenario(2), workers),
                                       on("half duplex", half_duplex.scenario(2), workers),
                                       on("fat tree", fat_tree, workers)});
    return networks;
  }
};

double relative(double a, double b) {
  const double size = std::max(std::abs(a), std::abs(b));
  return size > 0 ? std::abs(a - b) / size : 0;
}

/// The largest relative difference of two runs' times; traffic must be equal.
double difference(const SimulatedRun& a, const SimulatedRun& b) {
  REQUIRE(a.steps_by_worker.size() == b.steps_by_worker.size());
  double largest = 0;
  for (std::size_t w = 0; w < a.steps_by_worker.size(); ++w) {
    REQUIRE(a.steps_by_worker[w].size() == b.steps_by_worker[w].size());
    for (std::size_t s = 0; s < a.steps_by_worker[w].size(); ++s) {
      const Account& x = a.steps_by_worker[w][s];
      const Account& y = b.steps_by_worker[w][s];
      largest = std::max(largest, relative(x.time_s, y.time_s));
      // Parts of the time: relative to all of it.
      const auto part = [&](double p, double q) {
        if (x.time_s > 0) largest = std::max(largest, std::abs(p - q) / x.time_s);
      };
      for (std::size_t phase = 0; phase < kPhases; ++phase) {
        part(x.phase_s[phase], y.phase_s[phase]);
        part(x.lane_phase_s[phase], y.lane_phase_s[phase]);
      }
      part(x.waiting_s, y.waiting_s);
      CHECK(x.traffic.bytes_sent == y.traffic.bytes_sent);
      CHECK(x.traffic.messages_sent == y.traffic.messages_sent);
      CHECK(x.traffic.bytes_received == y.traffic.bytes_received);
      CHECK(x.traffic.messages_received == y.traffic.messages_received);
    }
  }
  return largest;
}

std::string how(const SimulatedRun& run) {
  for (const auto& [key, value] : run.network)
    if (key == "replay") return value;
  return "";
}

SimulatedRun replay_exactly(Scenario scenario, const Recording& recording) {
  scenario.exact_replay = true;
  return replay(scenario, recording);
}

/// Whether it was folded: where flows meet, rounding may decide, and the replay is exact by itself.
bool check_folded_equals_exact(const Scenario& scenario, const Recording& recording,
                               double tolerance = 1e-9) {
  const SimulatedRun folded = replay(scenario, recording);
  const SimulatedRun exact = replay_exactly(scenario, recording);
  CHECK(how(exact) == "exact");
  CHECK(difference(folded, exact) < tolerance);
  return how(folded) == "folded";
}

Recording record(int workers, const std::function<void(Communicator&)>& worker) {
  Recording recording;
  run_in_process({.workers = workers, .recordings = &recording.workers}, worker);
  return recording;
}

TEST_CASE("folded and exact replays of every synchronous algorithm agree on every network") {
  const Networks networks;
  std::vector<std::string> specs{"dsgd:overlap=on,first-bucket-bytes=500,bucket-bytes=1000",
                                 "dsgd:exchange=halving-doubling,wire=bf16,overlap=off"};
  for (const AlgorithmRow& row : algorithm_registry())
    if (row.synchronous) specs.push_back(row.name);
  int all = 0;
  int folded = 0;
  for (const std::string& spec : specs)
    for (const int workers : {4, 7}) {
      Scenario training;
      training.workers = workers;
      training.algorithm = parse_algorithm_spec(spec);
      training.model.name = "mlp:20-16-12-4";
      training.dataset = "synthetic:20x4";
      training.batch_size = 8;
      training.batches = 2;
      const Rehearsal rehearsal = rehearse(training, load_dataset(training.dataset, training.seed));
      for (const Network& network : networks.all(workers)) {
        CAPTURE(spec, workers, network.name);
        ++all;
        folded += check_folded_equals_exact(network.scenario, rehearsal.recording) ? 1 : 0;
      }
    }
  CHECK(10 * folded > 9 * all);
}

TEST_CASE("folded and exact replays of every collective agree, whoever starts when") {
  const Networks networks;
  for (const CollectiveRow& row : collective_table())
    for (const int workers : {3, 8}) {
      const Recording recording = record(workers, [&](Communicator& comm) {
        comm.charge(Phase::kForward, {.flops = 1e5 * (comm.rank() * 7 % 5)});
        row.run(comm, 100'000);
        comm.end_step();
        row.run(comm, 12'345);
        comm.end_step();
      });
      for (const Network& network : networks.all(workers)) {
        CAPTURE(row.name, workers, network.name);
        // Two messages under way on one path amplify rounding.
        const bool pipelined = row.name == "all-gather:gloo" || row.name == "all-reduce:gloo";
        const bool folded =
            check_folded_equals_exact(network.scenario, recording, pipelined ? 5e-9 : 1e-9);
        CHECK((folded || pipelined));
      }
    }
}

TEST_CASE("random traffic on both lanes costs the same in folded and exact replays") {
  const Networks networks;
  int folded = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    constexpr int kWorkers = 7;
    const auto recording = record(kWorkers, [&](Communicator& comm) {
      std::vector<std::vector<std::byte>> buffers;
      const auto chatter = [&](Communicator& lane, std::uint64_t round) {
        // Everyone sends to everyone, sizes and pauses by (seed, round, from, to).
        const auto drawn = [&](int from, int to) {
          std::uint64_t x =
              seed * 1000003 + round * 10007 + static_cast<std::uint64_t>(from * 31 + to);
          x = (x ^ (x >> 31U)) * 0x9e3779b97f4a7c15ULL;
          return (x ^ (x >> 29U)) % 50'000;
        };
        std::vector<Request> requests;
        for (int w = 0; w < kWorkers; ++w) {
          if (w == lane.rank()) continue;
          buffers.emplace_back(drawn(w, lane.rank()));
          requests.push_back(lane.irecv(w, buffers.back()));
          lane.charge(Phase::kReduction, {.flops = static_cast<double>(drawn(w, w))});
          buffers.emplace_back(drawn(lane.rank(), w));
          requests.push_back(lane.isend(w, buffers.back()));
        }
        for (const Request request : requests) lane.wait(request);
      };
      for (std::uint64_t round = 0; round < 4; ++round) {
        comm.start([&, round](Communicator& lane) { chatter(lane, 100 + round); });
        comm.start([&, round](Communicator& lane) { chatter(lane, 200 + round); });
        chatter(comm, round);
        comm.finish();
        comm.end_step();
      }
    });
    for (const Network& network : networks.all(kWorkers)) {
      CAPTURE(seed, network.name);
      folded += check_folded_equals_exact(network.scenario, recording) ? 1 : 0;
    }
  }
  CHECK(folded > 6 * 7 / 2);
}

TEST_CASE("where rounding decides about the times, a replay is exact by itself") {
  // Skewed workers in a ring of uneven chunks over a backbone of 10 Gbit/s that 64 ports share. For
  // ports of 100 Gbit/s and a trained ring, times of this replay, of SimGrid and of a calculation
  // in 45 digits differed from the third digit on.
  Scenario scenario;
  scenario.platform = "shared-backbone";
  scenario.workers = 64;
  scenario.bandwidth_bit_per_s = 3e9;
  Recording recording;
  for (int rank = 0; rank < 64; ++rank)
    recording.workers.push_back(record_dry(rank, 64, [](Communicator& comm) {
      comm.charge(Phase::kForward, {.flops = 1e4 * (comm.rank() * 37 % 64)});
      for (int i = 0; i < 2; ++i) find_collective("all-reduce:ring").run(comm, 33'333);
      comm.end_step();
    }));
  CHECK(how(replay(scenario, recording)) == "exact");
  scenario.platform = "star-1g";
  CHECK(how(replay(scenario, recording)) == "folded");
}

TEST_CASE("a ring on an uncontended star has the exact replay's bits") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(9);
  const Recording recording = record(9, [](Communicator& comm) {
    find_collective("all-reduce:ring").run(comm, 10'000);
    comm.end_step();
  });
  const SimulatedRun folded = replay(scenario, recording);
  CHECK(difference(folded, replay_exactly(scenario, recording)) == 0);
}

TEST_CASE("a replay is exact by itself where routes do not say all") {
  const Recording recording = record(2, [](Communicator& comm) { comm.end_step(); });
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(2);
  CHECK(how(replay(scenario, recording)) == "folded");
  CHECK(how(replay(scenario, recording, true)) == "exact");
  scenario.network_model = "simgrid:LV08";
  CHECK(how(replay(scenario, recording)) == "exact");
  const PlatformFile configured(
      platform_xml("<config><prop id=\"maxmin/concurrency-limit\" value=\"1\"/></config>"
                   "<cluster id=\"c\" prefix=\"n\" radical=\"0-3\" suffix=\"\" speed=\"10Gf\" "
                   "bw=\"1Gbps\" lat=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>"));
  CHECK(how(replay(configured.scenario(2), recording)) == "exact");
}

TEST_CASE("in a large star, too, a scenario's rate and latency hold at every port") {
  const PlatformFile star(
      platform_xml("<cluster id=\"star\" prefix=\"n\" radical=\"0-299\" suffix=\"\" speed=\"10Gf\" "
                   "bw=\"1Gbps\" lat=\"25us\" sharing_policy=\"SPLITDUPLEX\"/>"));
  Scenario scenario = star.scenario(300);
  scenario.bandwidth_bit_per_s = 8e9;
  scenario.latency_s = 1e-3;
  Recording recording;
  recording.workers.resize(300);
  for (const auto& [from, to] : {std::pair{0, 150}, std::pair{299, 7}}) {
    recording.workers[static_cast<std::size_t>(from)] = record_dry(
        from, 300, [to = to](Communicator& comm) { comm.send(to, absent<std::byte>(1'000'000)); });
    recording.workers[static_cast<std::size_t>(to)] =
        record_dry(to, 300, [from = from](auto& comm) {
          comm.recv(from, absent<std::byte>(1'000'000));
          comm.end_step();
        });
  }
  for (const bool exact : {false, true}) {
    scenario.exact_replay = exact;
    const SimulatedRun run = replay(scenario, recording);
    for (const std::size_t to : {150, 7})
      CHECK(run.steps_by_worker[to].front().time_s == Approx(3e-3).epsilon(1e-9));
  }
}

TEST_CASE("workers that wait for ever are named by a folded replay, too") {
  const PlatformFile star(star_xml());
  Recording recording;
  recording.workers.resize(2);
  for (int w = 0; w < 2; ++w) {
    LaneRecording& lane = recording.workers[static_cast<std::size_t>(w)].lanes[0];
    lane.add({.kind = Event::Kind::kReceive, .peer = 1 - w, .value = 8});
    lane.add({.kind = Event::Kind::kWait, .value = 0});
  }
  CHECK_THROWS_WITH(replay(star.scenario(2), recording),
                    "deadlock: worker 0 waits for worker 1, worker 1 waits for worker 0");
}

}  // namespace
}  // namespace gradwire
