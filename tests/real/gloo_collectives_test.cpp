// Gloo's own collectives in real processes against their schedules in memory: the same bits, and
// on the wire the bytes and messages that the communicator counts.
#include "algorithms/gloo_collectives.h"

#include <linux/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "algorithms/collectives.h"
#include "algorithms/in_process.h"
#include "algorithms/serial.h"
#include "real/launch.h"
#include "tests/algorithms/training_runs.h"

using namespace gradwire;

namespace {

constexpr int kTcp = 6;  // IPPROTO_TCP: <netinet/in.h> does not go with <linux/tcp.h>

// Bytes that this process has handed to its TCP connections.
std::int64_t tcp_bytes_written() {
  std::int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(std::stoi(entry.path().filename()), kTcp, TCP_INFO, &info, &size) != 0) continue;
    bytes += static_cast<std::int64_t>(info.tcpi_bytes_sent - info.tcpi_bytes_retrans) +
             info.tcpi_notsent_bytes;
  }
  return bytes;
}

struct Counts {
  std::int64_t written = 0;
  Traffic traffic;
};

// What a collective makes each worker write.
std::vector<Counts> count(int workers, const std::function<void(Communicator&)>& collective) {
  const auto results = run_on_mesh(workers, {}, {}, [&](const Mesh& mesh) {
    const std::int64_t before = tcp_bytes_written();
    collective(*mesh.comm);
    ByteWriter out;
    out.put(Counts{tcp_bytes_written() - before, mesh.comm->account().traffic});
    return out.take();
  });
  std::vector<Counts> counts;
  for (const std::string& bytes : results) counts.push_back(ByteReader(bytes).get<Counts>());
  return counts;
}

std::vector<Scalar> numbers(int rank, std::size_t length) {
  std::mt19937 engine(static_cast<unsigned>(rank + 1));
  std::uniform_real_distribution<Scalar> uniform(-1, 1);
  std::vector<Scalar> values(length);
  for (Scalar& x : values) x = uniform(engine);
  return values;
}

std::string hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 1099511628211ULL;
  return std::to_string(hash);
}

// All collectives on some sizes; what they leave, hashed.
std::string run_all(Communicator& comm) {
  std::string hashes;
  for (const std::size_t length : {1U, 7U, 1000U, 700'001U}) {
    std::vector<Scalar> values = numbers(comm.rank(), length);
    gloo_all_reduce(comm, values, Wire::kFp32);
    hashes += hash_of(bytes_of(std::span<const Scalar>(values))) + " ";
    gloo_broadcast(comm, comm.size() - 1, writable_bytes_of(std::span(values)));
    const auto mine = bytes_of(std::span<const Scalar>(values));
    const std::vector<std::size_t> equal(static_cast<std::size_t>(comm.size()), mine.size());
    hashes += hash_of(gloo_all_gather(comm, mine, equal)) + " ";
    std::vector<std::size_t> ragged = equal;
    for (std::size_t w = 0; w < ragged.size(); ++w) ragged[w] = w % 3 * length;
    const std::size_t own = ragged[static_cast<std::size_t>(comm.rank())];
    hashes += hash_of(gloo_all_gather(comm, mine.first(own), ragged)) + " ";
  }
  return hashes;
}

}  // namespace

TEST_CASE("Gloo's collectives leave the bits that their schedules leave in memory") {
  const int workers = GENERATE(2, 3, 5, 8);
  std::vector<std::string> expected(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    expected[static_cast<std::size_t>(comm.rank())] = run_all(comm);
  });
  CHECK(run_on_mesh(workers, {}, {}, [](const Mesh& mesh) { return run_all(*mesh.comm); }) ==
        expected);
}

TEST_CASE("Gloo's collectives write the bytes and messages that their schedules count") {
  // A message is a note by its sender, one by its receiver, and a header before the payload.
  constexpr std::int64_t kHeader = 48;
  const int workers = GENERATE(2, 3, 5, 8);
  const std::vector<std::size_t> equal(static_cast<std::size_t>(workers), 1001);
  std::vector<std::size_t> ragged = equal;
  ragged[0] = 5;
  const std::vector<std::pair<std::string, std::function<void(Communicator&)>>> collectives{
      {"all-reduce of 3 MB",
       [](Communicator& comm) {
         std::vector<Scalar> values(786'000);
         gloo_all_reduce(comm, values, Wire::kFp32);
       }},
      {"all-reduce of 20 bytes",
       [](Communicator& comm) {
         std::vector<Scalar> values(5);
         gloo_all_reduce(comm, values, Wire::kFp32);
       }},
      {"all-gather of equal blocks",
       [&](Communicator& comm) { gloo_all_gather(comm, std::vector<std::byte>(equal[0]), equal); }},
      {"all-gather of ragged blocks",
       [&](Communicator& comm) {
         const std::size_t own = ragged[static_cast<std::size_t>(comm.rank())];
         gloo_all_gather(comm, std::vector<std::byte>(own), ragged);
       }},
      {"broadcast", [](Communicator& comm) {
         std::vector<std::byte> buffer(5000);
         gloo_broadcast(comm, 1, buffer);
       }}};
  for (const auto& [name, collective] : collectives) {
    CAPTURE(name, workers);
    for (const Counts& worker : count(workers, collective))
      CHECK(worker.written ==
            worker.traffic.bytes_sent +
                kHeader * (2 * worker.traffic.messages_sent + worker.traffic.messages_received));
  }
}

TEST_CASE("Training with Gloo's collectives gives the rehearsal's numbers") {
  const int workers = GENERATE(2, 3, 8);
  for (const std::string algorithm :
       {"dsgd:exchange=gloo", "powersgd:exchange=gloo,rank=1,min-compression-rate=0",
        "dad:exchange=gloo", "rank-dad:exchange=gloo"}) {
    CAPTURE(algorithm, workers);
    Scenario scenario = small_scenario(algorithm, workers, "mlp:40-30-5");
    scenario.gradient_error = false;
    const Dataset& dataset = small_dataset(scenario);
    const Rehearsal rehearsal = rehearse(scenario, dataset);
    const Result real = run_real(scenario, dataset, {}).value();
    CHECK(real.parameter_hash == rehearsal.workers[0].parameter_hash);
    CHECK(real.replicas_equal);
    CHECK(real.messages_sent_by_worker[0] > 0);
  }
}

TEST_CASE("A worker that dies in one of Gloo's collectives, or stands still, ends it for all") {
  const int signal_number = GENERATE(SIGKILL, SIGSTOP);
  RealOptions options;
  options.timeout_s = 0.5;
  std::string message;
  try {
    run_on_mesh(3, {}, options, [&](const Mesh& mesh) -> std::string {
      std::vector<Scalar> values(1000);
      gloo_all_reduce(*mesh.comm, values, Wire::kFp32);
      if (mesh.comm->rank() == 1) raise(signal_number);
      gloo_all_reduce(*mesh.comm, values, Wire::kFp32);
      return {};
    });
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  CHECK_THAT(message, Catch::Contains("lost a worker in Gloo's all-reduce of 4000 bytes: "));
  CHECK(message.starts_with("worker 1: ended by signal: Killed") == (signal_number == SIGKILL));
}

TEST_CASE("Workers that mean different sizes in Gloo's all-reduce are told so, not aborted") {
  RealOptions options;
  options.timeout_s = 0.3;
  CHECK_THROWS_WITH(
      run_on_mesh(2, {}, options,
                  [](const Mesh& mesh) -> std::string {
                    std::vector<Scalar> values(mesh.comm->rank() == 0 ? 10 : 20);
                    gloo_all_reduce(*mesh.comm, values, Wire::kFp32);
                    return {};
                  }),
      Catch::Contains("worker 0: lost worker 1 in Gloo's all-reduce of 40 bytes: ") &&
          Catch::Contains("worker 1: lost worker 0 in Gloo's all-reduce of 80 bytes: "));
}
