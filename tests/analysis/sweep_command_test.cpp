// `gradwire sweep` as its users run it: files that grow, are cut, shared out and fought over.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "analysis/cli.h"
#include "analysis/sweep_file.h"
#include "analysis/sweep_run.h"
#include "tests/scratch.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;
using Words = std::vector<std::string>;

const std::string kScenario = R"({"platform": "star-1g", "workers": [2, 3],
  "bandwidth": ["10Mbps", "1Gbps", "100Gbps"], "algorithm": ["dsgd", "dad"],
  "dataset": "synthetic:20x3", "model": "mlp:20-64-64-3", "batch-size": 4, "batches": 2})";
constexpr std::size_t kPoints = 12 + 1;  // and the single worker
constexpr std::size_t kPairs = 2;

struct Outcome {
  int status;
  std::string out;
  std::string err;
};

Outcome gradwire(const Words& words) {
  std::ostringstream out, err;
  const int status = run_command_line(words, {.out = out, .err = err});
  return {status, out.str(), err.str()};
}

struct Folder : ScratchFolder {
  Folder() { std::ofstream(scenario()) << kScenario; }
  std::string scenario() const { return *this / "s.json"; }
  Outcome sweep(const std::string& output, const Words& more = {}) const {
    Words words{"sweep", scenario(), "--output", *this / output};
    words.insert(words.end(), more.begin(), more.end());
    return gradwire(words);
  }
  // Its lines in order of their text.
  std::vector<std::string> lines(const std::string& name) const {
    std::istringstream text(read_text(*this / name));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

void check_refused(const Outcome& outcome, int status, const std::string& message) {
  CHECK(outcome.status == status);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::Contains(message));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

// As if the disk were full beyond so many bytes of a file.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a sweep's file has its identity and a line for each point and pair") {
  const Folder folder;
  const Outcome outcome = folder.sweep("a.jsonl");
  REQUIRE(outcome.status == 0);
  CHECK(outcome.out == (folder / "a.jsonl") + ": 13 points\n");
  CHECK(folder.lines("a.jsonl").size() == 1 + kPoints + kPairs);
  CHECK(folder.sweep("a.jsonl").out ==
        (folder / "a.jsonl") + ": 13 points, 13 of them found there\n");
  CHECK(folder.lines("a.jsonl").size() == 1 + kPoints + kPairs);
}

TEST_CASE("a sweep cut off anywhere continues to the same file") {
  const Folder folder;
  REQUIRE(folder.sweep("whole.jsonl").status == 0);
  const std::string whole = read_text(folder / "whole.jsonl");
  const std::size_t identity = whole.find('\n') + 1;
  for (const std::size_t size :
       {std::size_t{5}, identity - 1, identity + 40, whole.size() / 2, whole.size() - 1}) {
    CAPTURE(size);
    std::ofstream(folder / "cut.jsonl", std::ios::binary) << whole.substr(0, size);
    REQUIRE(folder.sweep("cut.jsonl").status == 0);
    CHECK(folder.lines("cut.jsonl") == folder.lines("whole.jsonl"));
  }
}

TEST_CASE("shards together are the unsharded sweep, whatever their number and that of processes") {
  const Folder folder;
  REQUIRE(folder.sweep("whole.jsonl", {"--jobs", "3"}).status == 0);
  for (const int shards : {2, 7}) {
    std::vector<std::string> all;
    for (int i = 1; i <= shards; ++i) {
      const std::string shard = std::to_string(i) + "/" + std::to_string(shards);
      const std::string name = std::to_string(shards) + "-" + std::to_string(i) + ".jsonl";
      REQUIRE(folder.sweep(name, {"--shard", shard, "--jobs", "1"}).status == 0);
      for (const std::string& line : folder.lines(name)) all.push_back(line);
    }
    std::sort(all.begin(), all.end());
    CHECK(all.size() == kPoints + kPairs + static_cast<std::size_t>(shards));
    all.erase(std::unique(all.begin(), all.end()), all.end());
    CHECK(all == folder.lines("whole.jsonl"));
  }
}

TEST_CASE("a point of a sweep is what gradwire run gives for it") {
  const Folder folder;
  REQUIRE(folder.sweep("a.jsonl").status == 0);
  const Outcome run =
      gradwire({"run", "--platform", "star-1g", "--workers", "3", "--bandwidth", "1Gbps",
                "--algorithm", "dad", "--dataset", "synthetic:20x3", "--model", "mlp:20-64-64-3",
                "--batch-size", "4", "--batches", "2", "--json"});
  REQUIRE(run.status == 0);
  const auto expected = ordered_json::parse(run.out)["results"][0];
  int found = 0;
  read_sweep_file(folder / "a.jsonl", [&](const ordered_json& record) {
    if (!record.contains("point") || record["point"] != 9) return;
    ++found;
    for (const char* key : {"algorithm", "workers", "bandwidth_bit_per_s", "batch_time_s",
                            "compute_time_s", "bytes_sent_per_worker", "loss", "parameter_hash"})
      CHECK(record["result"][key] == expected[key]);
  });
  CHECK(found == 1);
}

TEST_CASE("at a crossover both algorithms take the same time") {
  const Folder folder;
  REQUIRE(folder.sweep("a.jsonl").status == 0);
  int crossings = 0;
  read_sweep_file(folder / "a.jsonl", [&](const ordered_json& record) {
    if (!record.contains("crossover")) return;
    for (const double bandwidth : record["bandwidths_bit_per_s"]) {
      ++crossings;
      const std::string workers = record["crossover"][0] == 0 ? "2" : "3";
      const Outcome run =
          gradwire({"run", "--platform", "star-1g", "--workers", workers, "--bandwidth",
                    std::to_string(bandwidth) + "bps", "--algorithm", "dsgd", "dad", "--dataset",
                    "synthetic:20x3", "--model", "mlp:20-64-64-3", "--batch-size", "4", "--batches",
                    "2", "--json"});
      REQUIRE(run.status == 0);
      const auto rows = ordered_json::parse(run.out)["results"];
      CHECK(rows[0]["batch_time_s"]["mean"].get<double>() ==
            Approx(rows[1]["batch_time_s"]["mean"].get<double>()).epsilon(2e-3));
    }
  });
  CHECK(crossings >= 1);
}

TEST_CASE("a file of another sweep, of another program or with a corrupt line stays untouched") {
  const Folder folder;
  REQUIRE(folder.sweep("a.jsonl").status == 0);
  const std::string whole = read_text(folder / "a.jsonl");
  check_refused(folder.sweep("a.jsonl", {"--seed", "2"}), 3, "seed was 1, is 2");
  CHECK(read_text(folder / "a.jsonl") == whole);

  std::ofstream(folder / "mine.txt") << "not a sweep's";
  check_refused(folder.sweep("mine.txt"), 3, "is not a file that gradwire sweep wrote");
  CHECK(read_text(folder / "mine.txt") == "not a sweep's");

  for (const char* line : {"{\"point\": 3, \"res", "17", "{\"pint\": 3}", "{\"point\": 3}"}) {
    CAPTURE(line);
    std::string corrupt = whole;
    corrupt.insert(whole.find('\n') + 1, std::string(line) + "\n");
    std::ofstream(folder / "corrupt.jsonl") << corrupt;
    check_refused(folder.sweep("corrupt.jsonl"), 3, "corrupt.jsonl:2: corrupt line");
    CHECK(read_text(folder / "corrupt.jsonl") == corrupt);
  }
}

TEST_CASE("a sweep's file of another format is named as such and left alone") {
  const Folder folder;
  REQUIRE(folder.sweep("a.jsonl").status == 0);
  std::string older = read_text(folder / "a.jsonl");
  const std::string key = "{\"gradwire_sweep\":";
  REQUIRE(older.starts_with(key + std::to_string(kSweepFormat)));
  older[key.size()] = '1';
  std::ofstream(folder / "a.jsonl") << older;
  check_refused(folder.sweep("a.jsonl"), 3, "is a sweep of format 1; this gradwire writes");
  check_refused(gradwire({"report", folder / "a.jsonl"}), 3, "is a sweep of format 1");
  CHECK(read_text(folder / "a.jsonl") == older);
}

TEST_CASE("two sweeps cannot write one file") {
  const Folder folder;
  const SweepFile mine(folder / "a.jsonl", sweep_identity(load_sweep(folder.scenario(), Grid())),
                       [](const ordered_json&) {});
  const std::string command = std::string(GRADWIRE_BINARY) + " sweep " + folder.scenario() +
                              " --output " + (folder / "a.jsonl") + " 2> " + (folder / "err");
  CHECK(shell(command) == 1);
  CHECK_THAT(read_text(folder / "err"), Catch::Contains("another sweep is writing it"));
  CHECK(folder.lines("a.jsonl").size() == 1);
}

TEST_CASE("an interrupted sweep ends with status 130 and keeps every finished point") {
  const Folder folder;
  const std::string output = folder / "a.jsonl";
  std::ofstream(folder / "long.json") << R"({"platform": "star-1g", "workers": [2],
    "latency": {"from": "1us", "to": "5ms", "step": "1us"}, "dataset": "synthetic:20x3",
    "model": "mlp:20-64-3", "batch-size": 4})";
  const std::string scenario = folder / "long.json";
  const char* const argv[] = {GRADWIRE_BINARY, "sweep",        scenario.c_str(),
                              "--output",      output.c_str(), nullptr};
  pid_t pid = 0;
  REQUIRE(posix_spawn(&pid, argv[0], nullptr, nullptr, const_cast<char* const*>(argv), environ) ==
          0);
  const auto finished = [&] {
    const std::string text = read_text(output);
    return std::count(text.begin(), text.end(), '\n');
  };
  while (finished() < 4) usleep(1000);
  kill(pid, SIGINT);
  int status = 0;
  waitpid(pid, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  int points = 0;
  read_sweep_file(output, [&](const ordered_json&) { ++points; });
  CHECK(points >= 3);
}

TEST_CASE("on a full disk a sweep's file keeps its whole lines and can be continued") {
  const Folder folder;
  const std::string output = folder / "a.jsonl";
  const auto identity = sweep_identity(load_sweep(folder.scenario(), Grid()));
  const ordered_json record{{"point", 1}, {"text", std::string(100, 'x')}};
  int written = 0;
  {
    SweepFile file(output, identity, [](const ordered_json&) {});
    const FileSizeLimit limit(4096);
    CHECK_THROWS_WITH(
        [&] {
          for (; written < 100; ++written) file.append(record);
        }(),
        Catch::StartsWith("cannot write ") && Catch::Contains("a.jsonl: "));
  }
  CHECK(written > 10);
  CHECK(std::filesystem::file_size(output) == 4096);
  int read = 0;
  const auto count = [&](const ordered_json& found) {
    CHECK(found == record);
    ++read;
  };
  read_sweep_file(output, count);
  CHECK(read == written);
  read = 0;
  SweepFile(output, identity, count).append(record);
  read_sweep_file(output, count);
  CHECK(read == 2 * written + 1);
}

TEST_CASE("a grid of a million points says how long it takes and waits for a word") {
  const Folder folder;
  std::ofstream(folder.scenario()) << R"({"platform": "star-1g", "workers": [2, 4],
    "bandwidth": {"from": "1Mbps", "to": "1Tbps", "points": 1000, "spacing": "log"},
    "latency": {"from": "1us", "to": "1s", "points": 500, "spacing": "log"},
    "dataset": "synthetic:20x3", "model": "mlp:20-8-3", "batch-size": 4})";
  const Outcome outcome = folder.sweep("a.jsonl");
  check_refused(outcome, 2, "the sweep has 1000000 points and 2 trainings, and takes about ");
  CHECK_THAT(outcome.err, Catch::Contains("give --max-points 1000000 to go on"));
  CHECK_FALSE(std::filesystem::exists(folder / "a.jsonl"));
}

TEST_CASE("max-points 0 says how large the sweep is on stdout, and computes nothing") {
  const Folder folder;
  std::ofstream(folder.scenario()) << R"({"platform": "star-1g", "workers": [2, 4],
    "dataset": "synthetic:20x3", "model": "mlp:20-8-3", "batch-size": 4})";
  const Outcome outcome = folder.sweep("a.jsonl", {"--max-points", "0"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith("the sweep has 2 points and 2 trainings"));
  CHECK_FALSE(std::filesystem::exists(folder / "a.jsonl"));
}

TEST_CASE("a sweep asks for what it needs") {
  const Folder folder;
  check_refused(gradwire({"sweep"}), 2, "sweep needs one scenario file");
  check_refused(gradwire({"sweep", "none.json"}), 3, "none.json: cannot be read");
  check_refused(folder.sweep("a.jsonl", {"--shard", "9/8"}), 3, "shard: \"9\" is not");
  check_refused(folder.sweep("a.jsonl", {"--shard", "3"}), 3, "is not I/N");
  check_refused(folder.sweep("no/a.jsonl"), 3, "no folder");
  check_refused(folder.sweep("a.jsonl", {"--algorithm", "rank-dad:rnk=2"}), 3, "rnk");
  CHECK_FALSE(std::filesystem::exists(folder / "a.jsonl"));
}

}  // namespace gradwire
