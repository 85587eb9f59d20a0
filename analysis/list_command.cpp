// `gradwire list`: what can be named on the command line.
#include <fstream>
#include <ostream>
#include <sstream>

#include "algorithms/algorithm.h"
#include "algorithms/collectives.h"
#include "algorithms/devices.h"
#include "analysis/command_line.h"
#include "analysis/report.h"
#include "analysis/scaling_text.h"
#include "analysis/table.h"
#include "analysis/text.h"
#include "models/layer_table.h"
#include "sim/platform.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

ordered_json options_json(const std::vector<OptionSpec>& options) {
  ordered_json list = ordered_json::array();
  for (const OptionSpec& option : options)
    list.push_back({{"key", option.key},
                    {"default", option.default_value},
                    {"help", option.help},
                    {"allowed", option.allowed}});
  return list;
}

ordered_json algorithms() {
  ordered_json list = ordered_json::array();
  for (const AlgorithmRow& row : algorithm_registry()) {
    list.push_back({{"name", row.name},
                    {"summary", row.summary},
                    {"exact", row.exact},
                    {"synchronous", row.synchronous},
                    {"consensus", row.consensus},
                    {"options", options_json(row.options)}});
  }
  return list;
}

ordered_json item(const std::string& name, const std::string& summary) {
  return {{"name", name}, {"summary", summary}};
}

ordered_json models() {
  ordered_json list = ordered_json::array();
  for (const ModelPreset& preset : model_presets()) {
    list.push_back(item(preset.name, preset.summary));
    if (!preset.options.empty()) list.back()["options"] = options_json(preset.options);
  }
  list.push_back(item("mlp:784-300-10", "an MLP of any layer sizes, inputs to classes"));
  for (const TableRow& table : shipped_tables())
    list.push_back(item("table:" + table.name, "cost only: " + table.summary));
  list.push_back(item("table:FILE[,rows=R]", "cost only: JSON list of a model's {name, shape}"));
  list.push_back(item("safetensors:FILE[,rows=R]",
                      "cost only: header of a .safetensors file, or a .index.json of several"));
  return list;
}

ordered_json device_list() {
  ordered_json list = ordered_json::array();
  for (const Device& device : devices()) list.push_back(item(device.name, device.summary));
  return list;
}

ordered_json datasets() {
  ordered_json list = ordered_json::array();
  for (const DatasetRow& row : dataset_table()) list.push_back(item(row.name, row.summary));
  return list;
}

// The first sentence of an XML file's first comment.
std::string first_comment(const std::string& path) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto begin = text.find("<!--");
  const auto end = text.find("-->", begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string comment;
  std::istringstream words(text.substr(begin + 4, end - begin - 4));
  for (std::string word; words >> word;) comment += word + " ";
  const auto stop = comment.find(". ");
  return stop == std::string::npos ? comment : comment.substr(0, stop + 1);
}

ordered_json platforms() {
  ordered_json list = ordered_json::array();
  for (const std::string& name : list_platforms()) {
    const std::string path = find_platform(name);
    ordered_json platform = item(name, first_comment(path));
    platform["file"] = path;
    list.push_back(std::move(platform));
  }
  return list;
}

ordered_json collectives() {
  ordered_json list = ordered_json::array();
  for (const CollectiveRow& row : collective_table()) list.push_back(item(row.name, row.summary));
  return list;
}

struct Catalogue {
  std::string name;
  ordered_json (*items)();
};
const std::vector<Catalogue>& catalogues() {
  static const std::vector<Catalogue> all{{"algorithms", algorithms}, {"models", models},
                                          {"datasets", datasets},     {"devices", device_list},
                                          {"platforms", platforms},   {"collectives", collectives}};
  return all;
}

std::string traits(const ordered_json& item) {
  std::vector<std::string> traits;
  traits.emplace_back(item.at("exact") ? "exact" : "approximate");
  if (!item.at("synchronous")) traits.emplace_back("depends on timing");
  if (!item.at("consensus")) traits.emplace_back("replicas differ");
  return join(traits);
}

std::string option_text(const ordered_json& option) {
  constexpr std::size_t kColumn = 28;
  auto help = option.at("help").get<std::string>();
  const auto allowed = option.at("allowed").get<std::vector<std::string>>();
  if (!allowed.empty()) help += " (" + join(allowed, "|") + ")";
  return entry(
      "    " + option.at("key").get<std::string>() + "=" + option.at("default").get<std::string>(),
      help, kColumn);
}

std::string name_of(const ordered_json& item) { return item.at("name"); }

std::string as_text(const ordered_json& items, bool with_options) {
  std::size_t column = 0;
  for (const auto& item : items) column = std::max(column, name_of(item).size() + 2);
  std::string text;
  for (const auto& item : items) {
    auto summary = item.at("summary").get<std::string>();
    if (item.contains("exact")) summary += " [" + traits(item) + "]";
    text += entry(name_of(item), summary, column);
    if (!with_options || !item.contains("options")) continue;
    for (const auto& option : item.at("options")) text += option_text(option);
  }
  return text;
}

int list(const Arguments& arguments, const std::string& /*command_line*/, const Streams& streams) {
  std::vector<std::string> names = collect(catalogues(), &Catalogue::name);
  names.emplace_back("schema");
  const auto& words = arguments.positional();
  if (words.empty()) throw UsageError("list needs one of: " + join(names));
  if (words.size() > 2) throw UsageError("list: unexpected \"" + words[2] + "\"");
  if (words[0] == "schema") {
    if (words.size() == 2 && words[1] != "scaling")
      throw UsageError("unknown schema " + words[1] + "; known: scaling");
    streams.out << (words.size() == 2 ? scaling_schema() : report_schema());
    return 0;
  }
  for (const Catalogue& catalogue : catalogues()) {
    if (catalogue.name != words[0]) continue;
    ordered_json items = catalogue.items();
    if (words.size() == 2) {
      const std::vector<std::string> known = collect(items, name_of);
      const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& name) {
        return name == words[1] || name.substr(0, name.find('[')) == words[1];
      });
      if (found == known.end())
        throw UsageError("unknown name " + words[1] + did_you_mean(words[1], known) +
                         "; known: " + join(known));
      items = ordered_json::array({items.at(static_cast<std::size_t>(found - known.begin()))});
    }
    const bool with_options = words.size() == 2 || arguments.has("options");
    streams.out << (arguments.has("json") ? dump(items) : as_text(items, with_options));
    return 0;
  }
  throw UsageError("unknown list " + words[0] + did_you_mean(words[0], names) +
                   "; known: " + join(names));
}

}  // namespace

Command list_command() {
  return {
      .name = "list",
      .summary =
          "Lists algorithms with their options, models, datasets, devices, platforms, collectives, "
          "the "
          "schema.",
      .usage = "algorithms|models|datasets|devices|platforms|collectives|schema [NAME] [--json]",
      .examples = R"(  gradwire list algorithms
  gradwire list algorithms rank-dad
  gradwire list platforms --json
  gradwire list schema > report.schema.json
  gradwire list schema scaling > scaling.schema.json
)",
      .flags = {{"options", "", "show all their options, as NAME does for one"},
                {"json", "", "print JSON, options included"}},
      .run = list};
}

}  // namespace gradwire
