#include "analysis/command_line.h"

#include <algorithm>
#include <boost/program_options.hpp>

#include "analysis/text.h"

namespace gradwire {

namespace po = boost::program_options;

namespace {

constexpr const char* kPositional = " ";  // a name that no flag has
constexpr std::size_t kHelpColumn = 30;

std::string flag_help(const Flag& flag) {
  std::string name = "  --" + flag.key;
  if (!flag.argument.empty()) name += " " + flag.argument;
  return entry(name, flag.help, kHelpColumn);
}

po::options_description describe(const std::vector<Flag>& flags) {
  po::options_description description;
  for (const Flag& flag : flags) {
    auto* value = po::value<std::vector<std::string>>();
    if (flag.several) value->multitoken();
    description.add_options()(flag.key.c_str(), value);
  }
  description.add_options()(kPositional, po::value<std::vector<std::string>>());
  return description;
}

// `--switch` as `--switch=on`: Boost's implicit values would take the next word.
std::vector<std::string> with_switch_values(const std::vector<Flag>& flags,
                                            std::vector<std::string> words) {
  for (std::string& word : words)
    for (const Flag& flag : flags)
      if (flag.argument.empty() && word == "--" + flag.key) word += "=on";
  return words;
}

}  // namespace

Flag field_flag(const Field& field) {
  std::string help = field.help;
  const std::string fallback = field.get(Scenario{});
  if (!field.argument.empty() && !fallback.empty()) help += " (default " + fallback + ")";
  return {field.key, field.argument, help, field.group,
          /*several=*/field.separator == ' '};
}

Arguments::Arguments(const std::vector<Flag>& flags, const std::vector<std::string>& words) {
  namespace style = po::command_line_style;
  po::positional_options_description positional;
  positional.add(kPositional, -1);
  const auto keys = collect(flags, [](const Flag& flag) { return "--" + flag.key; });
  try {
    const auto description = describe(flags);
    const auto parsed =
        po::command_line_parser(with_switch_values(flags, words))
            .options(description)
            .positional(positional)
            .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
            .run();
    for (const auto& option : parsed.options) {
      if (option.string_key == kPositional) {
        positional_.insert(positional_.end(), option.value.begin(), option.value.end());
        continue;
      }
      auto& values = values_[option.string_key];
      const auto flag = std::find_if(flags.begin(), flags.end(),
                                     [&](const Flag& f) { return f.key == option.string_key; });
      if (!values.empty() && !flag->several)
        throw UsageError("--" + option.string_key + " is given twice");
      for (const std::string& value : option.value)
        if (value.starts_with("--")) throw UsageError("--" + option.string_key + " needs a value");
      values.insert(values.end(), option.value.begin(), option.value.end());
    }
    for (const Flag& flag : flags) {  // a switch that is off was not given, unless it overrides
      const auto given = values_.find(flag.key);
      if (!flag.argument.empty() || given == values_.end()) continue;
      bool on = true;
      try {
        on = parse_switch(flag.key, given->second.front());
      } catch (const std::invalid_argument& error) {
        throw UsageError(std::string("--") + error.what());
      }
      const auto fields = collect(scenario_fields(), &Field::key);
      if (!on && std::count(fields.begin(), fields.end(), flag.key) == 0) values_.erase(given);
    }
  } catch (const po::unknown_option& error) {
    const std::string name = split(error.get_option_name(), '=').front();
    throw UsageError("unknown option " + name + did_you_mean(name, keys));
  } catch (const po::error_with_option_name& error) {
    throw UsageError(error.get_option_name() + " needs a value");
  }
}

std::string Arguments::value(const std::string& key, const std::string& fallback) const {
  const auto found = values_.find(key);
  return found == values_.end() ? fallback : found->second.front();
}

std::vector<std::string> Arguments::values(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

void Arguments::apply_to(Grid& grid) const {
  for (const Field& field : scenario_fields()) {
    const auto found = values_.find(field.key);
    if (found == values_.end()) continue;
    const bool one_word = field.separator != 0 && field.separator != ' ';
    grid.set(field, one_word ? split(found->second.front(), field.separator) : found->second);
  }
}

std::string command_help(const Command& command) {
  std::string text = command.summary + "\n\nUsage: gradwire " + command.name + " " + command.usage +
                     "\n\nExamples:\n" + command.examples;
  std::string group;
  for (const Flag& flag : command.flags) {
    if (flag.group != group) text += "\n" + flag.group + ":\n";
    group = flag.group;
    text += flag_help(flag);
  }
  return text;
}

}  // namespace gradwire
