#include "analysis/cli.h"

#include <algorithm>
#include <exception>
#include <new>
#include <ostream>
#include <stdexcept>

#include "analysis/report.h"
#include "analysis/text.h"

namespace gradwire {

namespace {

constexpr int kFailed = 1, kUsage = 2, kBadInput = 3;

std::vector<Command> commands() {
  return {run_command(),  replay_command(),    sweep_command(),     report_command(),
          real_command(), calibrate_command(), validate_command(),  lab_command(),
          list_command(), platform_command(),  collective_command()};
}

std::string overview() {
  std::string text =
      R"(gradwire predicts how long a batch of distributed training takes on a network that you describe.

Examples:
  gradwire run --platform star-1g --workers 2,4,8 --algorithm rank-dad dsgd powersgd
  gradwire sweep scenario.json
  gradwire real --workers 4 --bandwidth 100Mbps --algorithm rank-dad dsgd
  gradwire list algorithms
  gradwire platform check my-cluster.xml

Commands:
)";
  for (const Command& command : commands()) {
    std::string name = "  " + command.name;
    name.resize(14, ' ');
    text += name + command.summary + "\n";
  }
  return text + R"(
`gradwire COMMAND --help` says more.  Results go to stdout, progress and warnings to stderr.
Exit status: 0 ok, 1 the run failed, 2 usage, 3 bad input, 130 interrupted.
)";
}

std::string version_text() {
  std::string text;
  const nlohmann::ordered_json all = versions();
  for (const auto& [name, version] : all.items())
    text += name + " " + version.get<std::string>() + "\n";
  return text;
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

// A word as a shell reads it back.
std::string quoted(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:,./+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

int dispatch(const std::vector<std::string>& words, const Streams& streams) {
  if (words.empty()) throw UsageError("no command; see gradwire --help");
  if (asks_for_help(words[0]) || (words[0] == "help" && words.size() == 1)) {
    streams.out << overview();
    return 0;
  }
  if (words[0] == "--version") {
    streams.out << version_text();
    return 0;
  }
  if (words[0] == "help") return dispatch({words[1], "--help"}, streams);
  const std::vector<Command> all = commands();
  const auto command =
      std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.name == words[0]; });
  if (command == all.end()) {
    const std::vector<std::string> names = collect(all, &Command::name);
    const std::string what = words[0].starts_with('-') ? "option " : "command ";
    throw UsageError("unknown " + what + words[0] + did_you_mean(words[0], names) +
                     "; known: " + join(names));
  }
  if (std::any_of(words.begin() + 1, words.end(), asks_for_help)) {
    streams.out << command_help(*command);
    return 0;
  }
  return command->run(Arguments(command->flags, {words.begin() + 1, words.end()}),
                      "gradwire " + join(collect(words, quoted), " "), streams);
}

}  // namespace

int run_command_line(const std::vector<std::string>& words, const Streams& streams) {
  const auto report = [&](int status, std::string message) {
    std::replace(message.begin(), message.end(), '\n', ' ');
    streams.err << "gradwire: " << message << "\n";
    return status;
  };
  try {
    const int status = dispatch(words, streams);
    streams.out.flush();
    if (!streams.out) throw std::runtime_error("cannot write to standard output");
    return status;
  } catch (const UsageError& error) {
    return report(kUsage, error.what());
  } catch (const std::invalid_argument& error) {
    return report(kBadInput, error.what());
  } catch (const std::bad_alloc&) {
    return report(kFailed, "out of memory");
  } catch (const std::exception& error) {
    return report(kFailed, error.what());
  }
}

}  // namespace gradwire
