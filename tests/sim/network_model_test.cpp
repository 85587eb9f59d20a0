// Times of messages and collectives against closed forms.  L is the latency of a route (two host
// links), B the bandwidth of a port in bytes/s, S the bytes of a buffer.
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "algorithms/collectives.h"
#include "algorithms/in_process.h"
#include "fluid_star.h"
#include "platform_file.h"
#include "sim/simulate.h"

namespace gradwire {
namespace {

constexpr double kL = 50e-6;
constexpr double kB = 1e9 / 8;

using WorkerFunction = std::function<void(Communicator&)>;

/// When each worker ended `worker`.
std::vector<double> end_times_s(const Scenario& scenario, const WorkerFunction& worker) {
  const SimulatedRun run = run_simulated(scenario, {}, [&](Communicator& comm) {
    worker(comm);
    comm.end_step();
  });
  std::vector<double> ends_s;
  for (const auto& steps : run.steps_by_worker) ends_s.push_back(steps.back().time_s);
  return ends_s;
}

double last_end_s(const Scenario& scenario, const WorkerFunction& worker) {
  const std::vector<double> ends_s = end_times_s(scenario, worker);
  return *std::max_element(ends_s.begin(), ends_s.end());
}

/// A message that has a size and no content, as a replay sends them.
Request start_send(Communicator& comm, int to, std::size_t bytes) {
  return comm.isend(to, {static_cast<const std::byte*>(nullptr), bytes});
}
Request start_recv(Communicator& comm, int from, std::size_t bytes) {
  return comm.irecv(from, {static_cast<std::byte*>(nullptr), bytes});
}

Approx exactly(double seconds) { return Approx(seconds).epsilon(1e-9).margin(0); }

// The multiple of a float per chunk that is nearest below 100 kB: all chunks are equal.  S/B is
// then far longer than the latencies that the closed forms add up.
std::size_t bytes_for(int chunks) {
  const auto unit = 4 * static_cast<std::size_t>(chunks);
  return 100'000 / unit * unit;
}

struct ClosedForm {
  std::string collective;  // of collective_table()
  std::function<double(int workers, double bytes)> seconds;
  std::function<int(int workers)> chunks = [](int) { return 1; };
  std::function<bool(int workers)> holds = [](int) { return true; };
};

int log2_floor(int n) { return n == 1 ? 0 : 1 + log2_floor(n / 2); }
bool is_power_of_two(int n) { return n == 1 << log2_floor(n); }

std::vector<ClosedForm> closed_forms() {
  // Ring: 2(N-1) steps, in each of which every port sends and receives S/N.
  const auto ring = [](int n, double s) { return 2 * (n - 1) * (kL + s / n / kB); };
  // Halving-doubling over 2^k workers: k steps of S/2, S/4, ... and back.  The N - 2^k others first
  // hand their buffer to their neighbour, and get the result at the end.  While such a buffer
  // arrives, the port also takes what workers without a neighbour to wait for have sent already:
  // with N = 2^k + 1 the contributions S/2 ... S/2^k of all k steps, with N = 3/2 2^k the last one.
  const auto halving_doubling = [](int n, double s) {
    const int k = log2_floor(n);
    const double last = 1.0 / (1 << k);
    const double group = 2 * (k * kL + (1 - last) * s / kB);
    if (is_power_of_two(n)) return group;
    return group + 2 * (kL + s / kB) + (is_power_of_two(n - 1) ? 1 - last : last) * s / kB;
  };
  // Binomial tree over 2^k workers: k rounds up, k rounds down, of S each.  With one worker more
  // the root's port has k+1 messages to receive without a pause (the first two at the same time),
  // and k+1 to send: the last of them crosses k-1 further hops down.
  const auto tree_down = [](int n, double s) {
    const int k = log2_floor(n);
    return is_power_of_two(n) ? k * (kL + s / kB) : k * kL + (k + 1) * s / kB;
  };
  const auto tree = [tree_down](int n, double s) {
    const int k = log2_floor(n);
    const double up = is_power_of_two(n) ? k * (kL + s / kB) : kL + (k + 1) * s / kB;
    return up + tree_down(n, s);
  };
  // Star: the root's port carries N-1 buffers in, and N-1 out.
  const auto one_port = [](int n, double s) { return n == 1 ? 0 : kL + (n - 1) * s / kB; };
  const auto star = [one_port](int n, double s) { return 2 * one_port(n, s); };
  // Ring all-gather: N-1 steps.
  const auto ring_steps = [](int n, double s) { return (n - 1) * (kL + s / kB); };

  const auto by_worker = [](int n) { return n; };
  const auto by_segment = [](int n) { return 2 * n; };
  const auto never = [](int) { return false; };
  const auto by_power = [](int n) { return 1 << log2_floor(n); };
  const auto tree_sizes = [](int n) { return is_power_of_two(n) || is_power_of_two(n - 1); };
  return {
      {"all-reduce:ring", ring, by_worker},
      {"all-reduce:halving-doubling", halving_doubling, by_power,
       [](int n) {
         return is_power_of_two(n) || is_power_of_two(n - 1) ||
                (n % 3 == 0 && is_power_of_two(n / 3));
       }},
      {"all-reduce:tree", tree, [](int) { return 1; }, tree_sizes},
      {"all-reduce:star", star},
      {"all-reduce:allgather", ring_steps},
      {"all-gather:ring", [ring_steps](int n, double s) { return ring_steps(n, s / n); },
       by_worker},
      {"gather:direct", [one_port](int n, double s) { return one_port(n, s / n); }, by_worker},
      {"broadcast:tree", tree_down, [](int) { return 1; }, tree_sizes},
      {"broadcast:star", one_port},
      // Two segments, halves or sends at a time share a port.
      {"all-reduce:gloo", {}, by_segment, never},
      {"all-gather:gloo", {}, by_segment, never},
      {"broadcast:gloo", {}, [](int) { return 1; }, never},
  };
}

TEST_CASE("every collective takes its alpha-beta time on an uncontended star") {
  const PlatformFile star(star_xml());
  for (const ClosedForm& form : closed_forms()) {
    const CollectiveRow& row = find_collective(form.collective);
    for (int n = 2; n <= 64; ++n) {
      if (!form.holds(n)) continue;
      const std::size_t bytes = bytes_for(form.chunks(n));
      CAPTURE(row.name, n, bytes);
      CHECK(last_end_s(star.scenario(n), [&](Communicator& comm) { row.run(comm, bytes); }) ==
            exactly(form.seconds(n, static_cast<double>(bytes))));
    }
  }
}

TEST_CASE("every collective without one takes the time of an independent fluid model") {
  const PlatformFile star(star_xml());
  for (const ClosedForm& form : closed_forms()) {
    const CollectiveRow& row = find_collective(form.collective);
    for (int n = 2; n <= 64; ++n) {
      if (form.holds(n) && n > 5) continue;  // the closed form tests the simulation, or this model
      if (!form.seconds && n > 17) break;
      const std::size_t bytes = bytes_for(form.chunks(n));
      std::vector<WorkerRecording> recordings;
      run_in_process({.workers = n, .recordings = &recordings},
                     [&](Communicator& comm) { row.run(comm, bytes); });
      const std::vector<double> simulated_s =
          end_times_s(star.scenario(n), [&](Communicator& comm) { row.run(comm, bytes); });
      const std::vector<double> fluid_s = FluidStar(recordings, kB, kL).end_times_s();
      double difference = 0;
      for (std::size_t w = 0; w < fluid_s.size(); ++w)
        difference = std::max(difference, std::abs(simulated_s[w] / fluid_s[w] - 1));
      CAPTURE(row.name, n);
      CHECK(difference < 1e-9);
    }
  }
}

TEST_CASE("every collective in the table has a closed form here") {
  std::set<std::string> table, tested;
  for (const CollectiveRow& row : collective_table()) table.insert(row.name);
  for (const ClosedForm& form : closed_forms()) tested.insert(form.collective);
  CHECK(table == tested);
}

TEST_CASE("the largest value of 2^k workers takes k small messages") {
  const PlatformFile star(star_xml());
  const auto end_s = [&](int n) {
    return last_end_s(star.scenario(n),
                      [](Communicator& comm) { (void)all_reduce_max(comm, comm.rank()); });
  };
  for (const int k : {1, 2, 3, 6}) CHECK(end_s(1 << k) == exactly(k * (kL + 4 / kB)));
  // Worker 1 receives from 0 and 2 at the same time, then sends to 2 and 0 in turn.
  CHECK(end_s(3) == exactly(2 * kL + 16 / kB));
}

TEST_CASE("a flow never exceeds the capacity of its narrowest link") {
  // Both flows share l1 (1 GB/s); the second also crosses l2 (0.25 GB/s) and gets only that, so the
  // first has 0.75 GB/s.  SimGrid's own models give 0.5 GB/s to both.
  const PlatformFile platform(
      full_zone_xml(hosts_xml("abcd") + R"(<link id="l1" bandwidth="1GBps" latency="1us"/>
        <link id="l2" bandwidth="0.25GBps" latency="0"/>
        <link id="other" bandwidth="1GBps" latency="1us"/>
        <route src="a" dst="b"><link_ctn id="l1"/></route>
        <route src="c" dst="d"><link_ctn id="l1"/><link_ctn id="l2"/></route>
        <route src="a" dst="c"><link_ctn id="other"/></route>
        <route src="a" dst="d"><link_ctn id="other"/></route>
        <route src="b" dst="c"><link_ctn id="other"/></route>
        <route src="b" dst="d"><link_ctn id="other"/></route>)"));
  const auto ends_s = end_times_s(platform.scenario(4), [](Communicator& comm) {
    const int peer = comm.rank() ^ 1;
    comm.wait(comm.rank() % 2 == 0 ? start_send(comm, peer, 250'000'000)
                                   : start_recv(comm, peer, 250'000'000));
  });
  CHECK(ends_s[1] == exactly(0.25 / 0.75 + 1e-6));
  CHECK(ends_s[3] == exactly(1 + 1e-6));
}

// Two flows a -> b and c -> d of 100 MB over one link, with private links of 1 and 10 us.
std::vector<double> two_flows_end_s(const std::string& policy) {
  const PlatformFile platform(full_zone_xml(
      hosts_xml("abcd") + R"(<link id="shared" bandwidth="1GBps" latency="0" sharing_policy=")" +
      policy + R"("/>
        <link id="near" bandwidth="1GBps" latency="1us"/>
        <link id="far" bandwidth="1GBps" latency="10us"/>
        <link id="other" bandwidth="1GBps" latency="1us"/>
        <route src="a" dst="b"><link_ctn id="near"/><link_ctn id="shared"/></route>
        <route src="c" dst="d"><link_ctn id="far"/><link_ctn id="shared"/></route>
        <route src="a" dst="c"><link_ctn id="other"/></route>
        <route src="a" dst="d"><link_ctn id="other"/></route>
        <route src="b" dst="c"><link_ctn id="other"/></route>
        <route src="b" dst="d"><link_ctn id="other"/></route>)"));
  return end_times_s(platform.scenario(4), [](Communicator& comm) {
    const int peer = comm.rank() ^ 1;
    comm.wait(comm.rank() % 2 == 0 ? start_send(comm, peer, 100'000'000)
                                   : start_recv(comm, peer, 100'000'000));
  });
}

TEST_CASE("flows of unequal latency share a bottleneck equally") {
  const auto ends_s = two_flows_end_s("SHARED");
  CHECK(ends_s[1] == exactly(0.2 + 1e-6));
  CHECK(ends_s[3] == exactly(0.2 + 10e-6));
}

TEST_CASE("flows of unequal latency do not disturb each other on a FATPIPE") {
  const auto ends_s = two_flows_end_s("FATPIPE");
  CHECK(ends_s[1] == exactly(0.1 + 1e-6));
  CHECK(ends_s[3] == exactly(0.1 + 10e-6));
}

TEST_CASE("a ring runs at the pace of its slowest port") {
  // Worker 0's port takes m/b0 for each message in and out, far longer than any other port: the
  // last of its 2(N-1) messages leaves when it has sent them back to back, after waiting for the
  // first one's arrival: 2(N-1) m/b0 + L in, + L out.
  constexpr int kWorkers = 6;
  std::string xml, routes;
  for (int i = 0; i < kWorkers; ++i) {
    std::ostringstream host;
    host << "<host id='h" << i << "' speed='10Gf'/><link id='l" << i << "' bandwidth='"
         << (i == 0 ? 10 : 400 + 100 * i) << "Mbps' latency='10us' sharing_policy='SPLITDUPLEX'/>";
    xml += host.str();
    for (int j = 0; j < i; ++j) {
      std::ostringstream route;
      route << "<route src='h" << i << "' dst='h" << j << "'><link_ctn id='l" << i
            << "' direction='UP'/><link_ctn id='l" << j << "' direction='DOWN'/></route>";
      routes += route.str();
    }
  }
  const PlatformFile platform(full_zone_xml(xml + routes));
  const std::size_t bytes = std::size_t{4} * kWorkers * 10'000;
  const double message_s = 40'000 / (10e6 / 8);
  CHECK(last_end_s(platform.scenario(kWorkers), [&](Communicator& comm) {
          std::vector<Scalar> values(bytes / sizeof(Scalar), 1);
          ring_all_reduce(comm, values, Wire::kFp32);
        }) == exactly(2 * (kWorkers - 1) * message_s + 2 * 20e-6));
}

TEST_CASE("a sender pays the latency once for several messages, and waits only for its port") {
  const PlatformFile platform(platform_xml(
      R"(<cluster id="star" prefix="n" radical="0-4" suffix="" speed="10Gf" bw="100MBps" lat="10ms"
          sharing_policy="SPLITDUPLEX"/>)"));
  const auto ends_s = end_times_s(platform.scenario(5), [](Communicator& comm) {
    std::vector<Request> requests;
    if (comm.rank() == 0)
      for (int peer = 1; peer < 5; ++peer) requests.push_back(start_send(comm, peer, 1'000'000));
    else
      requests.push_back(start_recv(comm, 0, 1'000'000));
    for (const Request request : requests) comm.wait(request);
  });
  CHECK(ends_s[0] == exactly(0.040));  // 4 MB through 100 MB/s
  for (int peer = 1; peer < 5; ++peer)
    CHECK(ends_s[static_cast<std::size_t>(peer)] == exactly(0.060));
}

TEST_CASE("a message travels while its receiver computes") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(2);
  scenario.compute.device_flop_per_s = 1e9;
  const auto ends_s = end_times_s(scenario, [](Communicator& comm) {
    if (comm.rank() == 0) {
      comm.wait(start_send(comm, 1, 1'000'000));
    } else {
      comm.charge(Phase::kForward, {.flops = 1e8});  // 0.1 s; the message takes 0.008 s
      comm.wait(start_recv(comm, 0, 1'000'000));
    }
  });
  CHECK(ends_s[0] == exactly(0.008));
  CHECK(ends_s[1] == exactly(0.1));
}

TEST_CASE("the second lane communicates while the first computes") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(2);
  scenario.compute.device_flop_per_s = 1e9;
  std::vector<double> computed_s(2);
  const auto ends_s = end_times_s(scenario, [](Communicator& comm) {
    const int peer = 1 - comm.rank();
    for (int job = 0; job < 2; ++job)
      comm.start([peer](Communicator& lane) {
        const Request received = start_recv(lane, peer, 1'000'000);
        const Request sent = start_send(lane, peer, 1'000'000);
        lane.wait(sent);
        lane.wait(received);
      });
    comm.charge(Phase::kBackward, {.flops = 5e6});  // 0.005 s
    comm.end_step();
    comm.finish();
  });
  for (const double end_s : ends_s) CHECK(end_s == exactly(2 * (0.008 + kL)));  // one job at a time
}

TEST_CASE("messages between two workers arrive in order, however they are waited for") {
  const PlatformFile star(star_xml());
  const auto check = [](Communicator& comm) {
    constexpr int kMessages = 100;
    std::vector<int> values(kMessages, -1);
    std::vector<Request> requests;
    for (int i = 0; i < kMessages; ++i) {
      const auto slot = std::span(values).subspan(static_cast<std::size_t>(i), 1);
      if (comm.rank() == 0) {
        slot.front() = i;
        requests.push_back(comm.isend(1, bytes_of(std::span<const int>(slot))));
      } else {
        requests.push_back(comm.irecv(0, writable_bytes_of(slot)));
      }
    }
    for (int i = 0; i < kMessages; ++i)  // 37 is coprime with 100: every request once
      comm.wait(requests[static_cast<std::size_t>(i * 37 % kMessages)]);
    for (int i = 0; i < kMessages; ++i)
      if (values[static_cast<std::size_t>(i)] != i) throw std::runtime_error("out of order");
  };
  CHECK(last_end_s(star.scenario(2), check) == exactly(100 * 4 / kB + kL));
}

TEST_CASE("a message of no bytes takes the latency alone") {
  const PlatformFile star(star_xml());
  const auto ping = [](Communicator& comm) {
    std::vector<std::byte> nothing;
    if (comm.rank() == 0)
      comm.send(1, nothing);
    else
      comm.recv(0, nothing);
  };
  const auto ends_s = end_times_s(star.scenario(2), ping);
  CHECK(ends_s[0] == 0);
  CHECK(ends_s[1] == exactly(kL));
  Scenario ideal = star.scenario(2);
  ideal.latency_s = 0;
  CHECK(last_end_s(ideal, ping) == 0);
}

TEST_CASE("no latency leaves the bandwidth term alone") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(8);
  scenario.latency_s = 0;
  const std::size_t bytes = bytes_for(8);
  CHECK(last_end_s(scenario, [&](Communicator& comm) {
          find_collective("all-reduce:ring").run(comm, bytes);
        }) == exactly(14 * static_cast<double>(bytes) / 8 / kB));
}

TEST_CASE("one worker communicates with nobody and takes no time") {
  const PlatformFile star(star_xml());
  for (const CollectiveRow& row : collective_table()) {
    CAPTURE(row.name);
    CHECK(last_end_s(star.scenario(1), [&](Communicator& comm) { row.run(comm, 1000); }) == 0);
  }
}

TEST_CASE("the overrides replace bandwidth and latency of the workers' links") {
  // 10 Gbit/s and 5 us on each host's link; the backbone between them keeps its 100 us.
  const PlatformFile platform(star_xml(R"(bb_bw="1GBps" bb_lat="100us")"));
  Scenario scenario = platform.scenario(2);
  scenario.bandwidth_bit_per_s = 4e9;
  scenario.latency_s = 5e-6;
  CHECK(last_end_s(scenario, [](Communicator& comm) {
          comm.wait(comm.rank() == 0 ? start_send(comm, 1, 1'000'000)
                                     : start_recv(comm, 0, 1'000'000));
        }) == exactly(1e6 / 0.5e9 + 110e-6));
}

TEST_CASE("workers on one host use its loopback, and share its port") {
  // Workers 0, 1 on node-0 and 2, 3 on node-1; everyone sends 1 MB to its neighbour (+1).
  const PlatformFile platform(star_xml(R"(loopback_bw="10GBps" loopback_lat="2us")"));
  Scenario scenario = platform.scenario(4);
  scenario.workers_per_host = 2;
  const auto shift = [](int distance) {
    return [distance](Communicator& comm) {
      const int n = comm.size();
      const Request received = start_recv(comm, (comm.rank() + n - distance) % n, 1'000'000);
      const Request sent = start_send(comm, (comm.rank() + distance) % n, 1'000'000);
      comm.wait(sent);
      comm.wait(received);
    };
  };
  const auto neighbour_s = end_times_s(scenario, shift(1));
  CHECK(neighbour_s[1] == exactly(0.008));       // sends by the port, receives by the loopback
  CHECK(neighbour_s[2] == exactly(0.008 + kL));  // the other way round
  const auto across_s = end_times_s(scenario, shift(2));
  for (const double end_s : across_s) CHECK(end_s == exactly(0.016 + kL));  // two flows a port
}

TEST_CASE("SimGrid's own models keep their constants") {
  // LV08: 13.01 L + S / (0.97 B).
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(2);
  scenario.network_model = "simgrid:LV08";
  CHECK(last_end_s(scenario, [](Communicator& comm) {
          comm.wait(comm.rank() == 0 ? start_send(comm, 1, 1'000'000)
                                     : start_recv(comm, 0, 1'000'000));
        }) == Approx(13.01 * kL + 1e6 / (0.97 * kB)).epsilon(1e-6));
}

TEST_CASE("no collective gets faster when bandwidth falls") {
  const PlatformFile platform(star_xml(R"(bb_bw="5GBps" bb_lat="10us")"));
  for (const CollectiveRow& row : collective_table()) {
    Scenario scenario = platform.scenario(6);
    scenario.compute.device_flop_per_s = 1e9;
    Recording recording;
    run_in_process({.workers = 6, .recordings = &recording.workers}, [&](Communicator& comm) {
      comm.charge(Phase::kForward, {.flops = 1e4 * comm.rank()});
      row.run(comm, 100'000);
      comm.end_step();
    });
    double previous_s = INFINITY;
    for (const double bandwidth : {10e6, 30e6, 100e6, 300e6, 1e9, 3e9, 10e9, 30e9, 100e9}) {
      scenario.bandwidth_bit_per_s = bandwidth;
      double end_s = 0;
      for (const auto& steps : replay(scenario, recording).steps_by_worker)
        end_s = std::max(end_s, steps.back().time_s);
      CAPTURE(row.name, bandwidth);
      CHECK(end_s <= previous_s);
      previous_s = end_s;
    }
  }
}

}  // namespace
}  // namespace gradwire
