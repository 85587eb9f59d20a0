#include "models/layer_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "models/table_file.h"

namespace gradwire {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kMaxSize = 1099511627776.0;  // 2^40

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw std::invalid_argument("model: " + file + " " + what);
}

double size_of(const std::vector<Index>& shape) {
  double size = 1;
  for (const Index n : shape) size *= static_cast<double>(n);
  return size;
}

void check(const std::string& file, const std::vector<TableTensor>& tensors) {
  if (tensors.empty()) fail(file, "has no tensors");
  std::set<std::string> names;
  for (const TableTensor& t : tensors) {
    const bool good = std::all_of(t.shape.begin(), t.shape.end(), [](Index n) { return n >= 1; });
    if (!good || size_of(t.shape) > kMaxSize)
      fail(file, "has a tensor " + in_quotes(t.name) + " with a size that is not from 1 to 2^40");
    if (!names.insert(t.name).second) fail(file, "has two tensors named " + in_quotes(t.name));
    for (const double x : {t.forward_flops, t.forward_s, t.backward_s})
      if (!(x >= 0 && x < 1e30))
        fail(file, "has a negative or infinite cost of " + in_quotes(t.name));
  }
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

bool is_embedding(const TableTensor& t) {
  if (!t.kind.empty()) return t.kind == "embedding";
  return contains(t.name, "emb") || contains(t.name, "wte") || contains(t.name, "wpe");
}

bool is_map(const TableTensor& t) {
  if (!t.kind.empty() && t.kind != "linear" && t.kind != "conv") return false;
  const bool positions = t.kind.empty() && t.shape.size() == 3 && t.shape.front() == 1;
  return t.shape.size() >= 2 && size_of(t.shape) > static_cast<double>(t.shape.back()) &&
         !is_embedding(t) && !positions;
}

// What batch normalisation keeps but nobody trains; PyTorch's state_dict() has it.
bool is_buffer(const TableTensor& t) {
  return t.name.ends_with("running_mean") || t.name.ends_with("running_var");
}

// Whether the network, by this tensor, goes over several rows of an example: pixels, tokens.
bool shows_rows(const TableTensor& t) {
  return is_embedding(t) || t.kind == "conv" ||
         (is_map(t) && size_of(t.shape) > static_cast<double>(t.shape[0] * t.shape[1]));
}

std::string bias_name(const std::string& weight) {
  constexpr std::string_view kWeight = "weight";
  if (!weight.ends_with(kWeight)) return "";
  return weight.substr(0, weight.size() - kWeight.size()) + "bias";
}

class Maker {
 public:
  Maker(const std::string& file, const std::vector<TableTensor>& tensors,
        const TableOptions& options)
      : file_(file), tensors_(tensors), options_(options) {
    check(file, tensors);
    for (const TableTensor& t : tensors) by_name_[t.name] = &t;
  }

  LayerTable make() {
    check_rows();
    for (const TableTensor& t : tensors_)
      if (!is_buffer(t)) add(t);
    for (TableMap& map : table_.maps) {
      const auto found =
          index_.find(bias_name(weight_names_[static_cast<std::size_t>(map.weight)]));
      if (found == index_.end()) continue;
      if (table_.parameters[static_cast<std::size_t>(found->second)].cols == map.out)
        map.bias = found->second;
    }
    table_.other_forward_flops += options_.attention_forward_flops;
    check_times();
    return std::move(table_);
  }

 private:
  void check_rows() const {
    const auto tells = [](const TableTensor& t) {
      return is_map(t) && (t.rows > 0 || t.forward_flops > 0);
    };
    const auto several = std::find_if(tensors_.begin(), tensors_.end(), shows_rows);
    if (options_.rows > 0 || several == tensors_.end() ||
        std::any_of(tensors_.begin(), tensors_.end(), tells))
      return;
    fail(file_, "has " + in_quotes(several->name) +
                    ", so that layers work on several rows (pixels, tokens) of an example, but "
                    "says nowhere on how many; give each layer's \"rows\" in a table, or one "
                    "number for all after the file's name, as in " +
                    file_ + ",rows=128");
  }

  void add(const TableTensor& t) {
    if (!t.tied_to.empty()) {
      if (!by_name_.contains(t.tied_to))
        fail(file_, "ties " + in_quotes(t.name) + " to " + in_quotes(t.tied_to) +
                        ", which it does not have");
      table_.other_forward_flops += t.forward_flops;
      return;
    }
    const auto index = static_cast<int>(table_.parameters.size());
    index_[t.name] = index;
    weight_names_.push_back(t.name);
    if (is_map(t)) return add_map(t, index);
    const Index last = t.shape.empty() ? 1 : t.shape.back();
    const auto size = static_cast<Index>(size_of(t.shape));
    const bool used_by_rows = is_embedding(t) && t.shape.size() == 2;
    const Index tokens = t.rows > 0            ? t.rows
                         : options_.tokens > 0 ? options_.tokens
                                               : std::max<Index>(1, options_.rows);
    table_.parameters.push_back({.name = t.name,
                                 .rows = size / last,
                                 .cols = last,
                                 .touched_rows = used_by_rows ? tokens : 0});
  }

  void add_map(const TableTensor& t, int index) {
    TableMap map{.name = t.name,
                 .weight = index,
                 .in = static_cast<Index>(size_of(t.shape)) / t.shape.front(),
                 .out = t.shape.front(),
                 .rows = std::max<Index>(1, t.rows > 0 ? t.rows : options_.rows),
                 .forward_s = t.forward_s,
                 .backward_s = t.backward_s};
    if (map.name.ends_with(".weight")) map.name.resize(map.name.size() - 7);
    const auto bias = by_name_.find(bias_name(t.name));
    if (t.shape.size() == 2 && bias != by_name_.end()) {
      const double length = size_of(bias->second->shape);
      if (length != static_cast<double>(map.out) && length == static_cast<double>(map.in))
        std::swap(map.in, map.out);  // stored as (in, out)
    }
    const double once = 2 * static_cast<double>(map.in) * static_cast<double>(map.out);
    const double rows = std::round(t.forward_flops / once);
    if (rows > kMaxSize) fail(file_, "has too many flops in " + in_quotes(t.name));
    if (t.rows == 0 && t.forward_flops > 0) map.rows = std::max<Index>(1, static_cast<Index>(rows));
    table_.parameters.push_back({.name = t.name, .rows = map.in, .cols = map.out});
    table_.maps.push_back(map);
  }

  void check_times() const {
    if (table_.maps.empty()) fail(file_, "has no matrix that could be a linear map");
    const auto given = std::count_if(table_.maps.begin(), table_.maps.end(), [](const TableMap& m) {
      return m.forward_s > 0 && m.backward_s > 0;
    });
    const bool any = std::any_of(table_.maps.begin(), table_.maps.end(), [](const TableMap& m) {
      return m.forward_s > 0 || m.backward_s > 0;
    });
    if (any && given != static_cast<std::ptrdiff_t>(table_.maps.size()))
      fail(file_, "gives times (fwd_us, bwd_us) for some linear maps only");
  }

  const std::string& file_;
  const std::vector<TableTensor>& tensors_;
  TableOptions options_;
  LayerTable table_;
  std::map<std::string, const TableTensor*> by_name_;
  std::map<std::string, int> index_;       // of parameters
  std::vector<std::string> weight_names_;  // likewise, as in the file
};

double number(const std::string& file, const ordered_json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return 0;
  if (!found->is_number()) fail(file, std::string("has a ") + key + " that is not a number");
  return found->get<double>();
}

std::string text(const std::string& file, const ordered_json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "";
  if (!found->is_string()) fail(file, std::string("has a ") + key + " that is not a text");
  return found->get<std::string>();
}

TableTensor parse_tensor(const std::string& file, const ordered_json& json) {
  if (!json.is_object()) fail(file, "has a tensor that is not an object");
  TableTensor t{.name = text(file, json, "name"),
                .shape = parse_shape(file, json),
                .kind = text(file, json, "kind"),
                .tied_to = text(file, json, "tied_to"),
                .forward_flops = number(file, json, "fwd_flops"),
                .forward_s = number(file, json, "fwd_us") * 1e-6,
                .backward_s = number(file, json, "bwd_us") * 1e-6};
  if (t.name.empty()) fail(file, "has a tensor without a name");
  const double rows = number(file, json, "rows");
  if (!(rows >= 0 && rows <= kMaxSize) || rows != std::floor(rows))
    fail(file,
         "has rows of " + in_quotes(t.name) + " that are not an integer from 0 (unknown) to 2^40");
  t.rows = static_cast<Index>(rows);
  return t;
}

fs::path tables_folder() { return GRADWIRE_TABLES_DIR; }

std::string find_table(const std::string& name) {
  const fs::path shipped = tables_folder() / (name + ".json");
  std::error_code error;
  if (fs::is_regular_file(shipped, error)) return shipped.string();
  if (fs::is_regular_file(name, error)) return name;
  std::string known;
  for (const TableRow& row : shipped_tables()) known += (known.empty() ? "" : ", ") + row.name;
  fail(in_quotes(name), "is neither a file nor a shipped table; shipped: " + known);
}

}  // namespace

double LayerTable::parameter_count() const {
  double count = 0;
  for (const TableParameter& p : parameters)
    count += static_cast<double>(p.rows) * static_cast<double>(p.cols);
  return count;
}

LayerTable make_table(const std::string& file, const std::vector<TableTensor>& tensors,
                      const TableOptions& options) {
  return Maker(file, tensors, options).make();
}

LayerTable load_layer_table(const std::string& arguments) {
  TableArguments parsed = parse_table_arguments(arguments);
  const std::string file = find_table(parsed.path);
  const ordered_json json = parse_json(file, read_file(file));
  const ordered_json& list = json.is_object() && json.contains("tensors") ? json["tensors"] : json;
  if (!list.is_array()) fail(file, "is neither a list of tensors nor an object with \"tensors\"");
  std::vector<TableTensor> tensors;
  for (const ordered_json& tensor : list) tensors.push_back(parse_tensor(file, tensor));
  if (!json.is_object()) return make_table(file, tensors, parsed.options);

  parsed.options.attention_forward_flops = number(file, json, "attention_fwd_flops_per_sample");
  const auto input = json.find("input");
  if (input != json.end() && input->is_array() && input->size() == 1 &&
      input->front().is_number_unsigned())
    parsed.options.tokens = input->front().get<Index>();
  LayerTable table = make_table(file, tensors, parsed.options);
  table.source = text(file, json, "source");
  const double total = number(file, json, "total_params");
  if (total > 0 && total != table.parameter_count())
    fail(file, "says " + std::to_string(std::llround(total)) +
                   " parameters, but its tensors have " +
                   std::to_string(std::llround(table.parameter_count())));
  return table;
}

std::vector<TableRow> shipped_tables() {
  std::vector<TableRow> rows;
  std::error_code error;
  for (fs::directory_iterator at(tables_folder(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string file = at->path().string();
    rows.push_back(
        {at->path().stem().string(), text(file, parse_json(file, read_file(file)), "source")});
  }
  std::sort(rows.begin(), rows.end(),
            [](const TableRow& a, const TableRow& b) { return a.name < b.name; });
  return rows;
}

}  // namespace gradwire
