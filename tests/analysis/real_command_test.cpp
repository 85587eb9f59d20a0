// `gradwire real` on this machine, and as one of a cluster's processes, against `gradwire run`.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/cli.h"
#include "tests/scratch.h"

#ifdef GRADWIRE_WITH_GLOO

namespace gradwire {

namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int status;
  std::string out;
  std::string err;
};

Outcome gradwire(const Words& command, const Words& more = {}) {
  Words words = command;
  for (const char* word : {"--dataset", "synthetic:20x3", "--model", "mlp:20-8-3"})
    words.emplace_back(word);
  words.insert(words.end(), more.begin(), more.end());
  std::ostringstream out, err;
  const int status = run_command_line(words, {.out = out, .err = err});
  return {status, out.str(), err.str()};
}

// torchrun's variables for one rank of two.
void set_rank(const char* rank) {
  setenv("RANK", rank, 1);
  setenv("LOCAL_RANK", rank, 1);
  setenv("WORLD_SIZE", "2", 1);
}
void unset_rank() {
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE"}) unsetenv(name);
}

}  // namespace

TEST_CASE("A real run reports the numbers of the simulated one, and how it was connected") {
  const Words same{"--workers", "2,3", "--algorithm", "dsgd", "rank-dad", "--json"};
  const Outcome real = gradwire({"real"}, same);
  const Outcome run = gradwire({"run", "--platform", "star-1g"}, same);
  REQUIRE(real.status == 0);
  REQUIRE(run.status == 0);
  const auto measured = nlohmann::json::parse(real.out);
  const auto predicted = nlohmann::json::parse(run.out);
  REQUIRE(measured["results"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& a = measured["results"][i];
    const auto& b = predicted["results"][i];
    for (const char* key : {"algorithm", "workers", "parameter_hash", "loss",
                            "bytes_sent_by_worker", "messages_by_worker", "effective_rank"})
      CHECK(a[key] == b[key]);
    CHECK(a["batch_time_s"]["samples"].size() == 3);
    CHECK(a["platform"] == "loopback");
  }
  CHECK(measured["context"]["network_model"]["transport"] == "Gloo, TCP");
  CHECK(measured["context"]["compute"]["mode"] == "measured");
}

TEST_CASE("With a bandwidth a real run is in a lab, or says why not", "[lab]") {
  const Outcome real = gradwire({"real"}, {"--bandwidth", "50Mbps", "--latency", "2ms", "--json"});
  REQUIRE(real.status == 0);
  const auto result = nlohmann::json::parse(real.out)["results"][0];
  if (result["platform"] == "lab") {
    CHECK(result["bandwidth_bit_per_s"] == 50e6);
    CHECK(result["latency_s"] == 0.002);
    CHECK(result["batch_time_s"]["min"] > 0.004);
  } else {
    CHECK(result["platform"] == "loopback");
    CHECK(result["bandwidth_bit_per_s"].is_null());
    CHECK_THAT(real.err, Catch::Contains("no network lab (") && Catch::Contains("over loopback"));
  }
}

TEST_CASE("On a cluster rank 0 alone reports") {
  const ScratchFolder folder;
  const std::string meeting = folder / "meeting";
  const Words words{"--rendezvous", meeting, "--json", "--workers", "2"};
  const pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    set_rank("1");
    const Outcome outcome = gradwire({"real"}, words);
    _exit(outcome.out.empty() ? outcome.status : 99);
  }
  set_rank("0");
  const Outcome outcome = gradwire({"real"}, words);
  unset_rank();
  int status = -1;
  waitpid(other, &status, 0);
  CHECK(status == 0);
  REQUIRE(outcome.status == 0);
  const auto report = nlohmann::json::parse(outcome.out);
  CHECK(report["results"][0]["platform"] == "cluster");
  CHECK(report["context"]["network_model"]["launcher"] == "torchrun");
}

TEST_CASE("A cluster's processes need a folder, one of their own number, and no lab") {
  set_rank("0");
  const Outcome no_folder = gradwire({"real"});
  CHECK(no_folder.status == 2);
  CHECK_THAT(no_folder.err, Catch::Contains("--rendezvous"));
  const Outcome shaped = gradwire({"real"}, {"--rendezvous", "x", "--bandwidth", "1Gbps"});
  CHECK(shaped.status == 2);
  const Outcome size = gradwire({"real"}, {"--rendezvous", "x", "--workers", "3"});
  CHECK(size.status == 3);
  CHECK_THAT(size.err, Catch::Contains("torchrun started 2 processes, not 3"));
  unset_rank();
  CHECK(gradwire({"real"}, {"--rendezvous", "x"}).status == 2);
}

TEST_CASE("Bad input of a real run is refused in one line and with its status") {
  const auto refused = [](const Words& words, int status, const std::string& message) {
    const Outcome outcome = gradwire({"real"}, words);
    CHECK(outcome.status == status);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Catch::StartsWith("gradwire: ") && Catch::Contains(message));
  };
  refused({"--interface", "gradwire9"}, 3, "no interface gradwire9");
  refused({"--timeout", "1us"}, 3, "timeout");
  refused({"--timeout", "5"}, 3, "timeout");
  refused({"--algorithm", "sgd"}, 3, "unknown algorithm sgd");
  refused({"--output", "/no/such/folder/file"}, 3, "/no/such/folder");
  refused({"--platform", "star-1g"}, 2, "platform");
}

}  // namespace gradwire

#endif
