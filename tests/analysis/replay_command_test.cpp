// Recordings written by `run`, read by `replay`.
#include "analysis/replay_command.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "algorithms/in_process.h"
#include "analysis/cli.h"
#include "tests/scratch.h"

namespace gradwire {
namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int status;
  std::string out, err;
};

Outcome gradwire_command(const Words& words) {
  std::ostringstream out, err;
  const int status = run_command_line(words, {.out = out, .err = err});
  return {status, out.str(), err.str()};
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

nlohmann::json results(const Outcome& outcome) {
  CAPTURE(outcome.err);
  REQUIRE(outcome.status == 0);
  return nlohmann::json::parse(outcome.out)["results"];
}

const Words kRun{"run",     "--platform", "star-1g",      "--dataset", "synthetic:20x3",
                 "--model", "mlp:20-8-3", "--batch-size", "8"};

void check_refused(const Words& words, int status, const std::string& message) {
  CAPTURE(words);
  const Outcome outcome = gradwire_command(words);
  CHECK(outcome.status == status);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::StartsWith("gradwire: ") && Catch::Contains(message));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

TEST_CASE("a replay has the rows of the run, on the recorded network and on others") {
  const ScratchFolder folder;
  const std::string file = folder / "training.rec";
  const Words networks[] = {{},
                            {"--bandwidth", "100Mbps,10Gbps", "--latency", "50us,20ms"},
                            {"--platform", "fat-tree-64", "--device-rate", "1Tf", "--exact-replay"},
                            {"--compute", "10ms,20ms", "--network-model", "simgrid:LV08"}};
  for (const char* algorithm : {"dsgd", "rank-dad:rank=2", "powersgd", "top-k", "d-psgd"}) {
    const Words run = kRun + Words{"--workers",        "3", "--algorithm",      algorithm,
                                   "--evaluate-every", "2", "--gradient-error", "--json"};
    CAPTURE(algorithm);
    const auto recorded = results(gradwire_command(run + Words{"--record", file}));
    CHECK(results(gradwire_command({"replay", file, "--json"})) == recorded);
    for (const Words& network : networks) {
      Words elsewhere = run + network;
      if (!network.empty() && network[0] == "--platform")
        elsewhere.erase(elsewhere.begin() + 1, elsewhere.begin() + 3);
      CHECK(results(gradwire_command(Words{"replay", file, "--json"} + network)) ==
            results(gradwire_command(elsewhere)));
    }
  }
}

TEST_CASE("a replayed report says of data set and model what the run's says") {
  const ScratchFolder folder;
  const Words run = kRun + Words{"--json", "--record", folder / "r"};
  const auto before = nlohmann::json::parse(gradwire_command(run).out)["context"];
  const auto after =
      nlohmann::json::parse(gradwire_command({"replay", folder / "r", "--json"}).out)["context"];
  for (const char* key : {"dataset", "model", "compute", "network_model", "seed"})
    CHECK(after[key] == before[key]);
}

TEST_CASE("what is no recording is refused in one line") {
  const ScratchFolder folder;
  const std::string file = folder / "r";
  CHECK(gradwire_command(kRun + Words{"--record", file}).status == 0);
  const std::string bytes = read_text(file);
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "bad", std::ios::binary) << text;
  };
  write(bytes.substr(0, bytes.size() / 2));
  check_refused({"replay", folder / "bad"}, 3, "damaged recording");
  std::string older = bytes;
  older[19] = 0;
  write(older);
  check_refused({"replay", folder / "bad"}, 3, "version 0");
  write("<?xml?>");
  check_refused({"replay", folder / "bad"}, 3, "is no recording");
  check_refused({"replay", folder / "absent"}, 3, "absent: cannot be read");
  check_refused({"replay", folder / ""}, 3, "is a folder");
}

TEST_CASE("a recording holds one mathematics, and only its times can be changed") {
  const ScratchFolder folder;
  const std::string file = folder / "r";
  check_refused(kRun + Words{"--record", file, "--workers", "2,3"}, 2, "--record: ");
  check_refused(kRun + Words{"--record", file, "--algorithm", "dsgd", "dad"}, 2, "--record: ");
  check_refused(kRun + Words{"--record", folder / "no/such"}, 3, "cannot write");
  CHECK(read_text(file).empty());
  CHECK(gradwire_command(kRun + Words{"--record", file}).status == 0);
  check_refused({"replay", file, "--workers", "4"}, 2, "--workers");
  check_refused({"replay", file, "--compute", "measured"}, 3, "no measured times");
  check_refused({"replay", file, "--bandwidth", "0bps"}, 3, "bandwidth");
  check_refused({"replay"}, 2, "one recording");
  check_refused({"replay", file, file}, 2, "one recording");
}

TEST_CASE("a time-independent trace has SMPI's words") {
  Recording recording;
  run_in_process({.workers = 2, .recordings = &recording.workers}, [](Communicator& comm) {
    std::vector<std::byte> buffer(5);
    comm.charge(Phase::kForward, {.flops = 1.5e6});
    const int other = 1 - comm.rank();
    for (int round = 0; round < 2; ++round) {
      const Request received = comm.irecv(other, buffer);
      const std::vector<std::byte> payload(5);
      comm.wait(comm.isend(other, payload));
      comm.wait(received);
    }
    comm.end_step();
  });
  const ScratchFolder folder;
  export_time_independent(recording, folder / "ti");
  CHECK(read_text(folder / "ti/rank-1.txt") ==
        "1 init\n1 compute 1500000\n"
        "1 irecv 0 0 5\n1 isend 0 0 5\n1 wait 1 0 0\n1 wait 0 1 0\n"
        "1 irecv 0 1 5\n1 isend 0 1 5\n1 wait 1 0 1\n1 wait 0 1 1\n1 finalize\n");
  const std::string list = read_text(folder / "ti/ti.list");
  CHECK(list == (folder / "ti/rank-0.txt") + "\n" + (folder / "ti/rank-1.txt") + "\n");
}

TEST_CASE("overlapped communication cannot be exported to traces of one lane") {
  const ScratchFolder folder;
  CHECK(gradwire_command(kRun + Words{"--record", folder / "r"}).status == 0);
  check_refused({"replay", folder / "r", "--export-ti", folder / "ti"}, 3, "overlap=off");
}

}  // namespace
}  // namespace gradwire
