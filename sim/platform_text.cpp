#include "sim/platform_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "sim/platform.h"

namespace gradwire {

namespace {

struct Tag {
  std::string name;
  bool closing = false;  // </name>
  bool empty = false;    // <name/>
  int line = 0;
  std::map<std::string, std::string> attributes;

  std::string get(const std::string& key) const {
    const auto it = attributes.find(key);
    return it == attributes.end() ? "" : it->second;
  }
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The tags of an XML text in order, without judging what is between them.
class TagReader {
 public:
  explicit TagReader(std::string_view text) : text_(text) {}

  std::optional<Tag> next() {
    while (skip_to('<')) {
      if (skip("<!--")) {
        skip_past("-->");
      } else if (skip("<?")) {
        skip_past("?>");
      } else if (skip("<!")) {
        skip_past(">");
      } else {
        return read_tag();
      }
    }
    return std::nullopt;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return at_end() ? '\0' : text_[at_]; }
  void step() { line_ += text_[at_++] == '\n' ? 1 : 0; }
  bool skip_to(char c) {
    while (!at_end() && here() != c) step();
    return !at_end();
  }
  bool skip(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    for (std::size_t i = 0; i < word.size(); ++i) step();
    return true;
  }
  void skip_past(std::string_view word) {
    while (!at_end() && !skip(word)) step();
  }
  void skip_spaces() {
    while (!at_end() && is_space(here())) step();
  }
  std::string read_word() {
    std::string word;
    while (!at_end() && !is_space(here()) &&
           std::string_view("=<>/\"'").find(here()) == std::string_view::npos) {
      word += here();
      step();
    }
    return word;
  }

  Tag read_tag() {
    step();  // '<'
    Tag tag;
    tag.line = line_;
    tag.closing = skip("/");
    tag.name = read_word();
    for (skip_spaces(); !at_end() && here() != '>'; skip_spaces()) {
      if (skip("/")) {
        tag.empty = true;
        continue;
      }
      const std::string key = read_word();
      skip_spaces();
      if (key.empty() || !skip("=")) {
        if (!at_end() && here() != '>') step();  // malformed: SimGrid will say so
        continue;
      }
      skip_spaces();
      const char quote = here();
      if (quote != '"' && quote != '\'') continue;
      step();
      std::string& value = tag.attributes[key];
      while (!at_end() && here() != quote) {
        value += here();
        step();
      }
      if (!at_end()) step();
    }
    return tag;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

class TextChecker {
 public:
  TextChecker(const std::string& path, PlatformText& found) : path_(path), found_(found) {}

  void see(const Tag& tag) {
    if (tag.name == "zone" || tag.name == "AS") {
      see_zone(tag);
    } else if (tag.name == "config") {
      in_config_ = !tag.closing && !tag.empty;
    } else if (tag.name == "prop" && in_config_) {
      found_.settings.push_back({tag.line, tag.get("id"), tag.get("value")});
    } else if (tag.name == "platform" && !tag.closing) {
      check_version(tag);
    } else if (tag.name == "host" && !tag.closing) {
      see_host();
    } else if (tag.name == "trace_connect" && tag.get("kind") == "LATENCY") {
      refuse_latency_profile(tag);
    }
    found_.varies = found_.varies || changes_over_time(tag);
    check_quantities(tag);
  }

 private:
  struct Zone {
    std::string id, routing;
    int line;
    int hosts;
  };

  [[noreturn]] void refuse(int line, const std::string& what) const {
    throw PlatformError(path_ + ":" + std::to_string(line) + ": " + what);
  }

  static bool changes_over_time(const Tag& tag) {
    return tag.name.starts_with("trace") ||
           std::any_of(tag.attributes.begin(), tag.attributes.end(), [](const auto& attribute) {
             return attribute.first.ends_with("_profile") || attribute.first.ends_with("_file");
           });
  }

  void refuse_latency_profile(const Tag& tag) const {
    refuse(tag.line, "a latency that changes over time is not supported; give a constant latency");
  }

  void check_version(const Tag& tag) const {
    const std::string version = tag.get("version");
    if (version != "4" && version != "4.0" && version != "4.1")
      refuse(tag.line, "platform version \"" + version +
                           "\" is not supported, only 4 and 4.1 (simgrid_update_xml converts)");
  }

  void see_zone(const Tag& tag) {
    if (tag.closing) {
      if (!zones_.empty()) zones_.pop_back();
      return;
    }
    const std::string routing = tag.get("routing");
    if (routing == "Vivaldi")
      refuse(tag.line, "zone '" + tag.get("id") +
                           "' has routing Vivaldi, in which bandwidth is infinite; use another "
                           "routing, with links");
    if (routing == "Cluster") found_.cluster_zone = true;
    if (!tag.empty) zones_.push_back({tag.get("id"), routing, tag.line, 0});
  }

  // A lone host in an Empty zone is a common idiom; two cannot reach each other.
  void see_host() {
    if (zones_.empty()) return;
    Zone& zone = zones_.back();
    ++zone.hosts;
    if (zone.hosts == 2 && (zone.routing == "Empty" || zone.routing == "None"))
      refuse(zone.line, "zone '" + zone.id + "' has routing " + zone.routing +
                            ": its hosts cannot reach each other; use e.g. routing=\"Full\" with "
                            "<route> elements");
  }

  void check_quantities(const Tag& tag) const {
    for (const auto& [key, value] : tag.attributes) {
      if (is_bandwidth(key)) check_numbers(tag, key, "a bandwidth above 0, e.g. 10Gbps");
      if (is_latency(key)) check_numbers(tag, key, "a time of 0 or more, e.g. 50us");
      if (key == "speed") check_numbers(tag, key, "a speed above 0, e.g. 10Gf");
      if (key == "latency_file" || key == "latency_profile") refuse_latency_profile(tag);
    }
  }

  static bool is_bandwidth(std::string_view key) {
    static constexpr std::array<std::string_view, 7> kKeys{
        "bandwidth", "bw", "bb_bw", "loopback_bw", "limiter_link", "bw_in", "bw_out"};
    return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
  }
  static bool is_latency(std::string_view key) {
    return key == "latency" || key == "lat" || key == "bb_lat" || key == "loopback_lat";
  }

  // One number or a comma-separated list of them (pstates, Wi-Fi rates).
  void check_numbers(const Tag& tag, const std::string& key, const std::string& allowed) const {
    const std::string& value = tag.attributes.at(key);
    std::string where = "<" + tag.name;
    if (const std::string id = tag.get("id"); !id.empty()) where += " id=\"" + id + "\"";
    where.append("> ").append(key).append("=\"").append(value).append("\"");
    std::istringstream list(value);
    for (std::string item; std::getline(list, item, ',');) {
      char* rest = nullptr;
      const double number = std::strtod(item.c_str(), &rest);
      if (rest == item.c_str()) continue;  // no number at all: SimGrid says so
      while (is_space(*rest)) ++rest;
      if (!std::isfinite(number) || number < 0 || (number == 0 && !is_latency(key)))
        refuse(tag.line, where.append(" is not ").append(allowed));
      if (*rest == '\0' && is_bandwidth(key))
        refuse(tag.line,
               where.append(" has no unit (SimGrid would take bytes per second); write e.g. ")
                   .append(item)
                   .append("Gbps"));
    }
  }

  const std::string& path_;
  PlatformText& found_;
  std::vector<Zone> zones_;
  bool in_config_ = false;
};

std::string fnv1a(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) digits[i] = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace

PlatformText check_platform_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf()))
    throw PlatformError(path + ": is empty or cannot be read; give a SimGrid platform XML file");
  const std::string text = content.str();
  PlatformText found;
  found.hash = fnv1a(text);
  TagReader reader(text);
  TextChecker checker(path, found);
  while (const std::optional<Tag> tag = reader.next()) checker.see(*tag);
  return found;
}

}  // namespace gradwire
