// The program as its users run it: a process, its status, its two outputs.
#include "analysis/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/text.h"
#include "tests/scratch.h"

namespace gradwire {

namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int status = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

class Process {
 public:
  explicit Process(const Words& words) {
    pid_ = fork();
    if (pid_ != 0) return;
    redirect(STDOUT_FILENO, "out");
    redirect(STDERR_FILENO, "err");
    std::vector<char*> argv{const_cast<char*>(GRADWIRE_BINARY)};
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }

  pid_t pid() const { return pid_; }

  Outcome wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder_ / "out"),
            read_text(folder_ / "err")};
  }

 private:
  void redirect(int fd, const std::string& name) const {
    dup2(open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), fd);
  }
  ScratchFolder folder_;
  pid_t pid_ = 0;
};

Outcome gradwire_process(const Words& words) { return Process(words).wait(); }

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Milliseconds of work; `--platform` is left to the test.
const Words kTiny{"run", "--dataset", "synthetic:20x3", "--model", "mlp:20-8-3"};
const Words kOnStar = kTiny + Words{"--platform", "star-1g"};

// Runs with the status expected, nothing on stdout and one clear line on stderr.
void check_refused(const Words& words, int status, const std::string& message) {
  CAPTURE(words);
  const Outcome outcome = gradwire_process(words);
  CHECK(outcome.status == status);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::StartsWith("gradwire: ") && Catch::Contains(message));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

const std::string kHead =
    "<?xml version='1.0'?>\n"
    "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n";

// Two hosts joined by one link; the marked places vary.
std::string platform_xml(const std::string& speed, const std::string& bandwidth,
                         const std::string& latency, const std::string& more = "") {
  return kHead + "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n" +
         "<host id=\"a\" speed=\"" + speed + "\"/><host id=\"b\" speed=\"1Gf\"/>\n" +
         "<link id=\"l\" bandwidth=\"" + bandwidth + "\" latency=\"" + latency +
         "\" sharing_policy=\"SPLITDUPLEX\"/>\n" + more +
         "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\" direction=\"UP\"/></route>\n" +
         "</zone></platform>\n";
}

}  // namespace

TEST_CASE("results go to stdout and nothing to stderr where it is no terminal") {
  const Outcome outcome = gradwire_process(kOnStar);
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith("dsgd "));
  CHECK(outcome.err.empty());
}

TEST_CASE("the same command gives byte-identical JSON, with any number of jobs") {
  const Words words = kOnStar + Words{"--workers", "2,3", "--bandwidth", "1Gbps,10Gbps", "--json"};
  const Outcome first = gradwire_process(words);
  CHECK(first.status == 0);
  CHECK(gradwire_process(words).out == first.out);
  const auto results = [](const std::string& text) {
    return nlohmann::json::parse(text)["results"];
  };
  CHECK(results(first.out).size() == 4);
  CHECK(results(gradwire_process(words + Words{"--jobs", "3"}).out) == results(first.out));
}

TEST_CASE("the report's scenario is a scenario file that gives the report's results") {
  const Outcome first = gradwire_process(kOnStar + Words{"--workers", "2,3", "--json"});
  CAPTURE(first.status, first.err);
  const auto report = nlohmann::json::parse(first.out);
  const ScratchFile file("scenario.json", report["context"]["scenario"].dump());
  const Outcome again = gradwire_process({"run", "--scenario", file.path(), "--json"});
  CAPTURE(again.status, again.err);
  CHECK(nlohmann::json::parse(again.out)["results"] == report["results"]);
  const Outcome other =
      gradwire_process({"run", "--scenario", file.path(), "--workers", "1", "--json"});
  CHECK(nlohmann::json::parse(other.out)["results"].size() == 1);
}

TEST_CASE("the report and the trace are written to files, the table is still printed") {
  const ScratchFolder folder;
  const Outcome outcome = gradwire_process(
      kOnStar + Words{"--output", folder / "report.json", "--trace", folder / "trace.json"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith("dsgd "));
  CHECK(nlohmann::json::parse(read_text(folder / "report.json"))["results"].size() == 1);
  CHECK_FALSE(nlohmann::json::parse(read_text(folder / "trace.json"))["traceEvents"].empty());
}

TEST_CASE("a full disk is an error") {}

TEST_CASE("one worker, latency 0 and a far faster network are legal") {
  for (const Words& more :
       {Words{"--workers", "1"}, Words{"--latency", "0"}, Words{"--bandwidth", "10Tbps"}})
    CHECK(gradwire_process(kOnStar + more).status == 0);
}

TEST_CASE("a loss that diverges is a warning, and the JSON stays valid") {
  const Outcome outcome =
      gradwire_process({"run", "--platform", "star-1g", "--dataset", "synthetic:20x3", "--model",
                        "mlp:20-16-16-16-16-3", "--optimizer", "sgd", "--learning-rate", "1e9",
                        "--batches", "8", "--json"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, Catch::StartsWith("gradwire: warning: ") &&
                              Catch::Contains("the loss is not finite in batch"));
  const auto row = nlohmann::json::parse(outcome.out)["results"][0];
  CHECK(row["status"] == "diverged");
  CHECK(row["loss"].back().is_null());
}

TEST_CASE("an unknown command or option is refused with the nearest one, status 2") {
  check_refused({}, 2, "no command; see gradwire --help");
  check_refused({"rnu"}, 2, "unknown command rnu; did you mean run?");
  check_refused({"--versoin"}, 2, "unknown option --versoin");
  check_refused({"run", "--worker", "2"}, 2, "unknown option --worker; did you mean --workers?");
  check_refused(kOnStar + Words{"--workers"}, 2, "--workers needs a value");
  check_refused(kOnStar + Words{"stray"}, 2, "unexpected \"stray\"");
  check_refused(kTiny, 2, "run needs --platform FILE");
  check_refused(kOnStar + Words{"--trace", "t.json", "--workers", "2,3"}, 2, "2 combinations");
  check_refused({"list", "algorithm"}, 2, "did you mean algorithms?");
  check_refused({"platform", "chekc", "x"}, 2, "gradwire platform check FILE");
}

TEST_CASE("a bad value is refused with its key, status 3") {
  const std::vector<std::pair<Words, std::string>> cases{
      {{"--workers", "-3"}, "workers: \"-3\" is not an integer"},
      {{"--workers", "0"}, "workers: \"0\""},
      {{"--workers", "2,,4"}, "workers: \"\""},
      {{"--workers", "5000"}, "workers: 5000"},
      {{"--hosts", "nobody-*"}, "nobody-*"},
      {{"--bandwidth", "0Gbps"}, "bandwidth: \"0Gbps\""},
      {{"--bandwidth", "-1Gbps"}, "bandwidth: \"-1Gbps\""},
      {{"--bandwidth", "nan"}, "bandwidth: \"nan\""},
      {{"--bandwidth", "1000"}, "bandwidth: \"1000\""},
      {{"--latency", "-1us"}, "latency: \"-1us\""},
      {{"--compute", "10ms"}, "compute: \"10ms\""},
      {{"--compute", "-1ms,2ms"}, "compute: \"-1ms\""},
      {{"--device-rate", "0f"}, "device-rate: \"0f\""},
      {{"--seed", "-1"}, "seed: \"-1\""},
      {{"--momentum", "2"}, "momentum: \"2\""},
      {{"--batch-size", "0"}, "batch-size: \"0\""},
      {{"--optimizer", "best"}, "best"},
      {{"--activation", "best"}, "best"},
      {{"--network-model", "best"}, "best"},
      {{"--algorithm", "dsgd", "best"}, "unknown algorithm best"},
      {{"--algorithm", "dsgd:wire=fp8"}, "wire=fp8; allowed: fp32"},
      {{"--algorithm", "dsgd:wire"}, "is not key=value"},
      {{"--output", "no/such/folder/x"}, "no folder no/such/folder"},
      {{"--scenario", "none.json"}, "none.json: cannot be read"},
      {{"--jobs", "-1"}, "jobs: \"-1\""}};
  for (const auto& [words, message] : cases) check_refused(kOnStar + words, 3, message);
}

TEST_CASE("a bad platform file is refused with its name, status 3") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "platform.xml"},
      {"<platform", "platform.xml"},
      {kHead + "<platform version=\"3\"></platform>", "version"},
      {kHead + "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><hots id=\"a\"/></zone>"
               "</platform>",
       "platform.xml:3"},
      {platform_xml("1Gf", "0Bps", "1us"), "bandwidth"},
      {platform_xml("1Gf", "-5Bps", "1us"), "bandwidth"},
      {platform_xml("1Gf", "nanBps", "1us"), "bandwidth"},
      {platform_xml("1Gf", "10", "1us"), "bandwidth"},
      {platform_xml("1Gf", "1GBps", "-1us"), "latency"},
      {platform_xml("0f", "1GBps", "1us"), "speed"},
      {platform_xml(
           "1Gf", "1GBps", "1us",
           "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>\n"),
       "the name 'l' is taken"},
      {platform_xml("1Gf", "1GBps", "1us", "<host id=\"c\" speed=\"1Gf\"/>\n"), "route"},
      {kHead + "<platform version=\"4.1\"><zone id=\"z\" routing=\"Empty\"/></platform>",
       "platform.xml"},
      {kHead + "<platform version=\"4.1\"><zone id=\"z\" routing=\"Vivaldi\">"
               "<host id=\"a\" speed=\"1Gf\" coordinates=\"1 2 3\"/></zone></platform>",
       "Vivaldi"}};
  for (const auto& [xml, message] : cases) {
    const ScratchFile file("platform.xml", xml);
    const Words platform{"--platform", file.path(), "--workers", message == "route" ? "3" : "2"};
    CAPTURE(xml);
    check_refused(kTiny + platform, 3, message);
  }
  check_refused(kTiny + Words{"--platform", "no-such.xml"}, 3, "no-such.xml");
}

TEST_CASE("a broken IDX file is refused with its name, status 3") {
  const ScratchFile images("train-images-idx3-ubyte", std::string("\0\0\x08\x03\0\0\0\x05", 8));
  const std::string folder = std::filesystem::path(images.path()).parent_path();
  check_refused(kOnStar + Words{"--workers", "2"} + Words{"--scenario", "/dev/null"}, 3,
                "/dev/null");
  const Words run{"run", "--platform", "star-1g", "--dataset", "idx:" + folder};
  check_refused(run, 3, folder);
}

TEST_CASE("help leads with examples for every command") {
  for (const Words& words : {Words{"--help"},
                             {"run", "--help"},
                             {"help", "run"},
                             {"list", "-h"},
                             {"platform", "--help"},
                             {"collective", "--platform", "x", "--help"}}) {
    CAPTURE(words);
    const Outcome outcome = gradwire_process(words);
    CHECK(outcome.status == 0);
    CHECK_THAT(outcome.out, Catch::Contains("Examples:\n  gradwire "));
    CHECK(outcome.err.empty());
  }
  CHECK(gradwire_process({"help", "run"}).out == gradwire_process({"run", "--help"}).out);
  CHECK_THAT(gradwire_process({"--version"}).out,
             Catch::StartsWith("gradwire ") && Catch::Contains("\nsimgrid 3."));
}

TEST_CASE("every list is printed as text and as JSON") {
  for (const std::string what : {"algorithms", "models", "datasets", "platforms", "collectives"}) {
    CAPTURE(what);
    const Outcome outcome = gradwire_process({"list", what, "--json"});
    CHECK(outcome.status == 0);
    const auto items = nlohmann::json::parse(outcome.out);
    REQUIRE_FALSE(items.empty());
    const std::string name = items[0]["name"];
    CHECK_FALSE(items[0]["summary"].get<std::string>().empty());
    CHECK_THAT(gradwire_process({"list", what}).out, Catch::StartsWith(name));
  }
  CHECK_THAT(gradwire_process({"list", "algorithms"}).out, !Catch::Contains("exchange=ring"));
  for (const Words& words :
       {Words{"list", "algorithms", "dsgd"}, {"list", "algorithms", "--options"}})
    CHECK_THAT(gradwire_process(words).out,
               Catch::Contains("exchange=ring") && Catch::Contains("halving-doubling"));
}

TEST_CASE("platform check describes a good platform and refuses a bad one") {
  const ScratchFile good("good.xml", platform_xml("1Gf", "125MBps", "50us"));
  const Outcome outcome = gradwire_process({"platform", "check", good.path(), "--json"});
  CHECK(outcome.status == 0);
  const auto info = nlohmann::json::parse(outcome.out);
  CHECK(info["hosts"] == nlohmann::json({"a", "b"}));
  CHECK(info["max_route_bandwidth_bit_per_s"] == 1e9);
  CHECK(info["max_route_latency_s"].get<double>() == Approx(50e-6));
  const ScratchFile bad("bad.xml", platform_xml("1Gf", "0Bps", "50us"));
  check_refused({"platform", "check", bad.path()}, 3, "bandwidth");
}

TEST_CASE("a ring all-reduce of two workers takes two latencies and one array's time") {
  const ScratchFile file("pair.xml", platform_xml("1Gf", "125MBps", "50us"));
  const Words words{"collective", "--platform", file.path(), "--collective", "all-reduce:ring"};
  const Outcome outcome = gradwire_process(words + Words{"--sizes", "1MB", "--json"});
  CHECK(outcome.status == 0);
  const auto row = nlohmann::json::parse(outcome.out)["results"][0];
  const double expected_s = 2 * (50e-6 + 0.5e6 / 125e6);  // 2 (N-1) steps of S/N bytes
  CHECK(row["time_s"].get<double>() == Approx(expected_s).epsilon(1e-9));
  CHECK(row["algbw_byte_per_s"].get<double>() == Approx(1e6 / expected_s).epsilon(1e-9));
  CHECK(row["busbw_byte_per_s"].get<double>() == Approx(1e6 / expected_s).epsilon(1e-9));
  CHECK_THAT(gradwire_process(words + Words{"--sizes", "1KiB:16KiB:x4"}).out,
             Catch::Contains("\n        1024 ") && Catch::Contains("\n       16384 "));
  check_refused(words + Words{"--sizes", "1KiB:16KiB"}, 3, "sizes: \"1KiB:16KiB\"");
}

TEST_CASE("an interrupt ends a run at once with status 130 and no file") {
  const ScratchFolder folder;
  Process process(kOnStar + Words{"--batches", "10000000", "--output", folder / "report.json"});
  const std::string status_file = "/proc/" + std::to_string(process.pid()) + "/status";
  const auto handles_interrupts = [&] {  // the handler's bit in the program's mask
    const std::string text = read_text(status_file);
    const auto place = text.find("SigCgt:");
    return text.starts_with("Name:\tgradwire") && place != std::string::npos &&
           (std::stoull(text.substr(place + 7), nullptr, 16) >> (SIGINT - 1) & 1U) != 0;
  };
  while (!handles_interrupts()) usleep(1000);
  usleep(50'000);
  kill(process.pid(), SIGINT);
  const Outcome outcome = process.wait();
  CHECK(outcome.status == 130);
  CHECK(outcome.out.empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("an exception of any kind becomes a status, in process too") {
  std::ostringstream out;
  std::ostringstream err;
  CHECK(run_command_line({"run", "--jobs"}, {.out = out, .err = err}) == 2);
  CHECK(run_command_line({"run", "--scenario", "none.json"}, {.out = out, .err = err}) == 3);
  out.setstate(std::ios::failbit);
  CHECK(run_command_line({"--version"}, {.out = out, .err = err}) == 1);
  CHECK_THAT(err.str(), Catch::EndsWith("gradwire: cannot write to standard output\n"));
}

TEST_CASE("a full disk does not lose the table of a run that has ended") {
  const Outcome outcome = gradwire_process(kOnStar + Words{"--output", "/dev/full"});
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Catch::Contains("2 workers"));
  CHECK(outcome.err == "gradwire: cannot write /dev/full: No space left on device\n");
}

TEST_CASE("closed standard streams are not mistaken for a bad platform") {
  const auto status_with = [](const std::string& redirections) {
    std::string command = GRADWIRE_BINARY;
    for (const std::string& word : kOnStar) command.append(" ").append(word);
    command.append(" ").append(redirections);
    return WEXITSTATUS(std::system(command.c_str()));  // NOLINT(concurrency-mt-unsafe)
  };
  CHECK(status_with(">&- 2>/dev/null") == 1);
  CHECK(status_with(">/dev/null 2>&-") == 0);
  CHECK(status_with(">/dev/null <&-") == 0);
}

TEST_CASE("a switch that is off counts as not given, and a senseless one is refused") {
  CHECK_THAT(gradwire_process(kOnStar + Words{"--json=off"}).out, Catch::StartsWith("dsgd "));
  check_refused(kOnStar + Words{"--json=maybe"}, 2, "--json: \"maybe\" is not on or off");
}

TEST_CASE("outputs that exclude each other are refused before the run") {
  check_refused(kOnStar + Words{"--output", "x.json", "--trace", "./x.json"}, 2, "same file");
  check_refused(kOnStar + Words{"--output", "-"}, 2, "--json");
  check_refused(kOnStar + Words{"--wall-clock"}, 2, "--json or --output");
}

TEST_CASE("one worker's collective has no bandwidth instead of -nan") {
  const Outcome outcome = gradwire_process({"collective", "--platform", "star-1g", "--workers", "1",
                                            "--collective", "all-reduce:ring", "--sizes", "1KiB"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out,
             Catch::Contains("1 worker,") && !Catch::Contains("nan") && !Catch::Contains("inf"));
}

TEST_CASE("an output that would overwrite an input, or another output, is refused beforehand") {
  const ScratchFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  const std::string scenario = write("s.json", R"({"platform": "star-1g"})");
  const std::string platform = write("p.xml", platform_xml("1Gf", "1Gbps", "1us"));
  const std::string table = write("t.json", R"({"tensors": []})");
  const std::string other = write("r", "not read");
  const std::string link = folder / "link";
  std::filesystem::create_symlink(scenario, link);
  check_refused({"run", "--scenario", scenario, "--output", link}, 2,
                "--output and --scenario name the same file");
  check_refused({"run", "--platform", platform, "--trace", platform}, 2,
                "--trace and --platform name the same file");
  check_refused({"run", "--platform", "star-1g", "--model", "table:" + table, "--record", table}, 2,
                "--record and --model name the same file");
  check_refused(
      {"run", "--platform", "star-1g", "--dataset", "text:x,test=" + other, "--output", other}, 2,
      "--output and --dataset name the same file");
  check_refused({"replay", other, "--output", other}, 2, "--output and the input name");
  check_refused({"sweep", scenario, "--output", scenario}, 2, "--output and the input name");
  for (const char* key : {"--output", "--csv", "--html", "--learning"})
    check_refused({"report", other, key, other}, 2, std::string(key) + " and the input name");
  check_refused({"report", other, "--csv", folder / "x", "--html", folder / "x"}, 2,
                "--html and --csv name the same file");
  CHECK(read_text(scenario) == R"({"platform": "star-1g"})");
  CHECK(read_text(other) == "not read");
}

TEST_CASE("outputs to one device are no clash") {
  const Words words = kOnStar + Words{"--output", "/dev/null", "--trace", "/dev/null"};
  CHECK(gradwire_process(words).status == 0);
}

TEST_CASE("a FIFO or a device as input is refused instead of hanging") {
  const ScratchFolder folder;
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  const Words run{"run", "--platform", "star-1g"};
  for (const std::string& path : {folder / "fifo", std::string("/dev/zero")}) {
    check_refused({"report", path}, 3, "is not a regular file");
    check_refused({"replay", path}, 3, "is not a regular file");
    check_refused(run + Words{"--dataset", "text:" + path}, 3, "is not a regular file");
    check_refused(run + Words{"--model", "safetensors:" + path}, 3, "is not a regular file");
    check_refused(run + Words{"--network-model", "calibrated:" + path}, 3, "is not a regular file");
    check_refused({"run", "--platform", path}, 3, "is not a regular file");
  }
  check_refused({"sweep", "/dev/zero"}, 3, "is not a regular file");
  check_refused({"run", "--scenario", folder / "fifo"}, 3, "is a pipe that nobody writes to");
}

TEST_CASE("deeply nested JSON is refused instead of crashing, and no line repeats it") {
  const ScratchFolder folder;
  const std::string path = folder / "deep.json";
  const auto write_nested = [&](std::size_t levels) {
    std::ofstream(path) << "{\"workers\": " << std::string(levels, '[') << std::string(levels, ']')
                        << "}";
  };
  const Words run{"run", "--platform", "star-1g"};
  write_nested(100'000);
  check_refused({"run", "--scenario", path}, 3, "more than 100 levels");
  check_refused({"sweep", path}, 3, "more than 100 levels");
  check_refused(run + Words{"--model", "table:" + path}, 3, "more than 100 levels");
  check_refused(run + Words{"--network-model", "calibrated:" + path}, 3, "more than 100 levels");
  write_nested(90);
  check_refused({"run", "--scenario", path}, 3, std::string(60, '[') + "... is a list in a list");
}

TEST_CASE("a collective's size of part of a number, or beyond all memory, is refused") {
  const Words words{"collective", "--platform",   "star-1g",         "--workers",
                    "2",          "--collective", "all-reduce:ring", "--sizes"};
  check_refused(words + Words{"1"}, 3, "sizes: \"1\" is not a multiple of 4 bytes");
  check_refused(words + Words{"99999999999999999999"}, 3, "up to 100TB");
}

TEST_CASE("quantities at the ends of their ranges run") {
  const Outcome outcome =
      gradwire_process(kOnStar + Words{"--bandwidth", "1bps,1000000Tbps", "--latency",
                                       "0,1000000000s", "--device-rate", "1f"});
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
}

TEST_CASE("a name of the lists with its placeholder is found as it stands there") {
  for (const std::string name : {"table:FILE", "safetensors:FILE"})
    CHECK_THAT(gradwire_process({"list", "models", name}).out, Catch::Contains(name + "[,rows=R]"));
}

TEST_CASE("lists with --trace or with --record are usage errors alike") {
  const Words words = kOnStar + Words{"--algorithm", "dsgd", "powersgd"};
  check_refused(words + Words{"--trace", "x"}, 2, "--trace draws one run");
  check_refused(words + Words{"--record", "x"}, 2, "--record: a recording holds one");
}

}  // namespace gradwire
