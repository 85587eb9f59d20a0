#include "sim/platform_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "models/input_file.h"
#include "sim/platform.h"
#include "sim/platform_elements.h"
#include "sim/platform_tags.h"

namespace gradwire {

namespace {

constexpr long kMostHosts = 100'000;     // a million take SimGrid more than a minute
constexpr double kSlowByte_per_s = 125;  // 1 kbit/s: rather a factor than a rate

class TextChecker {
 public:
  TextChecker(const std::string& path, PlatformText& found) : path_(path), found_(found) {}

  void see(const Tag& tag) {
    line_ = tag.line;
    if (!tag.whole) refuse("the file ends within <" + tag.name + ">; is it cut short?");
    if (tag.closing) {
      if (is_zone(tag) && !zones_.empty()) zones_.pop_back();
      if (tag.name == "config") in_config_ = false;
      return;
    }
    check_element(tag);
    if (tag.name == "platform") {
      if (platform_line_ > 0)
        refuse("a second <platform>; the first, in line " + std::to_string(platform_line_) +
               ", holds all of a file");
      platform_line_ = tag.line;
      check_version(tag);
    } else if (is_zone(tag)) {
      see_zone(tag);
    } else if (tag.name == "config") {
      in_config_ = !tag.empty;
    } else if (tag.name == "prop") {
      see_property(tag);
    } else if (tag.name == "host") {
      see_host(tag);
    } else if (tag.name == "cluster" || tag.name == "cabinet") {
      see_cluster(tag);
    } else if (tag.name == "router") {
      declare(nodes_, tag, tag.get("id"));
    } else if (tag.name == "link" || tag.name == "backbone") {
      see_link(tag);
    } else if (tag.name == "link_ctn") {
      check_link_of_route(tag);
    } else if (tag.name == "host_link") {
      for (const char* key : {"up", "down"}) check_link_exists(tag, key);
    }
    found_.varies = found_.varies || changes_over_time(tag);
  }

  void finish() {
    if (platform_line_ == 0 || has_zone_) return;
    line_ = platform_line_;
    refuse(
        "<platform> has no zone; write e.g. <zone id=\"world\" routing=\"Full\"> with hosts in it");
  }

  int line() const { return line_; }

 private:
  struct Zone {
    std::string id, routing;
    int line;
    int hosts;
  };
  using Lines = std::map<std::string, int>;  // a name, the line that declares it

  [[noreturn]] static void refuse(const std::string& what) { throw std::invalid_argument(what); }

  static bool changes_over_time(const Tag& tag) {
    return tag.name.starts_with("trace") ||
           std::any_of(tag.attributes.begin(), tag.attributes.end(), [](const auto& attribute) {
             return attribute.first.ends_with("_profile") || attribute.first.ends_with("_file");
           });
  }

  static bool is_zone(const Tag& tag) { return tag.name == "zone" || tag.name == "AS"; }

  static void check_version(const Tag& tag) {
    const std::string version = tag.get("version");
    if (version != "4" && version != "4.0" && version != "4.1")
      refuse("platform version \"" + version +
             "\" is not supported, only 4 and 4.1 (simgrid_update_xml converts)");
  }

  static void declare(Lines& names, const Tag& tag, const std::string& name) {
    if (name.empty()) refuse(tag.label("id") + " is empty; give it a name");
    const auto [known, is_new] = names.emplace(name, tag.line);
    if (!is_new)
      refuse(tag.label("id") + ": the name '" + name + "' is taken in line " +
             std::to_string(known->second) + "; names must differ");
  }

  void see_zone(const Tag& tag) {
    has_zone_ = true;
    declare(nodes_, tag, tag.get("id"));
    const std::string routing = tag.get("routing");
    if (routing == "Cluster") found_.cluster_zone = true;
    if (!tag.empty) zones_.push_back({tag.get("id"), routing, tag.line, 0});
  }

  // A lone host in an Empty zone is a common idiom; two cannot reach each other.
  void see_host(const Tag& tag) {
    declare(nodes_, tag, tag.get("id"));
    count(1, tag);
    if (zones_.empty()) return;
    Zone& zone = zones_.back();
    ++zone.hosts;
    if (zone.hosts < 2 || zone.routing != "None") return;
    line_ = zone.line;
    refuse("zone '" + zone.id + "' has routing " + zone.routing +
           ": its hosts cannot reach each other; use e.g. routing=\"Full\" with <route> elements");
  }

  void count(long hosts, const Tag& tag) {
    hosts_ += hosts;
    if (hosts_ > kMostHosts)
      refuse(tag.label() + " makes " + std::to_string(hosts_) + " hosts in the file; allowed are " +
             std::to_string(kMostHosts));
  }

  void see_cluster(const Tag& tag) {
    count(count_hosts(tag, kMostHosts), tag);
    generators_.push_back(tag.get("id") + "_");
    if (tag.name == "cabinet") {  // its links are named after its hosts
      generators_.push_back("link_" + tag.get("prefix"));
      return;
    }
    has_zone_ = true;
    declare(nodes_, tag, tag.get("id"));
    if (const std::string router = tag.get("router_id"); !router.empty())
      declare(nodes_, tag, router);
  }

  void see_property(const Tag& tag) {
    if (in_config_) found_.settings.push_back({tag.line, tag.get("id"), tag.get("value")});
    if (tag.get("id") == "remote_disk")
      refuse(tag.label() + ": disks of other hosts are not supported; leave it out");
  }

  void see_link(const Tag& tag) {
    const std::string id = tag.get("id"), policy = tag.get("sharing_policy");
    declare(links_, tag, id);
    if (policy == "SPLITDUPLEX" || policy == "FULLDUPLEX") {
      declare(links_, tag, id + "_UP");
      declare(links_, tag, id + "_DOWN");
      split_links_.insert(id);
    }
    if (tag.get("bandwidth_file").empty()) return;
    check_profile(tag);
  }

  // Whether a cluster may have made a link of this name.
  bool may_be_generated(const std::string& link) const {
    return std::any_of(generators_.begin(), generators_.end(),
                       [&](const std::string& start) { return link.starts_with(start); });
  }

  void check_link_exists(const Tag& tag, const char* key) const {
    const std::string link = tag.get(key);
    if (!links_.contains(link) && link != "__loopback__" && !may_be_generated(link))
      refuse(tag.label(key) + ": no <link> of that name comes before it");
    if (split_links_.contains(link) && tag.get("direction", "NONE") == "NONE")
      refuse(tag.label(key) + ": the link is SPLITDUPLEX; " +
             (tag.name == "link_ctn" ? "give a direction, UP or DOWN"
                                     : "write " + link + "_UP or " + link + "_DOWN"));
  }

  void check_link_of_route(const Tag& tag) const {
    check_link_exists(tag, "id");
    const std::string link = tag.get("id"), direction = tag.get("direction", "NONE");
    if (direction != "NONE" && links_.contains(link) && !split_links_.contains(link))
      refuse(tag.label("direction") +
             ": the link has no directions; leave it out or give the link "
             "sharing_policy=\"SPLITDUPLEX\"");
  }

  // Lines of a time and a bandwidth in byte/s, which SimGrid takes as it stands.
  void check_profile(const Tag& tag) {
    const std::string file = tag.get("bandwidth_file");
    namespace fs = std::filesystem;
    fs::path profile = "./" + file;  // SimGrid looks in both, for full paths too
    std::error_code error;
    if (!fs::is_regular_file(profile, error))
      profile = fs::path(path_).parent_path() / ("./" + file);
    std::ifstream in(profile);
    if (!fs::is_regular_file(profile, error) || !in)
      refuse(tag.label("bandwidth_file") +
             ": cannot be read; give a path from the platform's folder or the current one");
    std::string text;
    for (int line = 1; std::getline(in, text); ++line) check_profile_line(tag, text, line);
  }

  void check_profile_line(const Tag& tag, const std::string& text, int line) {
    const std::string what = tag.label("bandwidth_file") + ", its line " + std::to_string(line) +
                             " \"" + text.substr(0, 60) + "\"";
    if (text.find_first_not_of(" \t\r") == std::string::npos || text.front() == '#' ||
        text.front() == '%' || text.starts_with("PERIODICITY") || text.starts_with("LOOPAFTER"))
      return;
    std::istringstream in(text);
    double time_s = 0, byte_per_s = 0;
    std::string rest;
    if (!(in >> time_s >> byte_per_s) || in >> rest || time_s < 0)
      refuse(what + ": is not a time in s and a bandwidth in byte/s, e.g. \"1.5 125e6\"");
    if (!(byte_per_s > 0) || !std::isfinite(byte_per_s))
      refuse(what + ": the bandwidth is not above 0, e.g. 125e6 byte/s");
    if (byte_per_s < kSlowByte_per_s)
      found_.warnings.push_back("line " + std::to_string(tag.line) + ": " + what + " makes it " +
                                with_prefix(8 * byte_per_s) +
                                "bps; a profile gives byte/s, not a factor");
  }

  const std::string& path_;
  PlatformText& found_;
  std::vector<Zone> zones_;
  Lines nodes_, links_;                  // hosts, routers and zones share their names
  std::set<std::string> split_links_;    // of two directions
  std::vector<std::string> generators_;  // how the links begin that clusters make
  bool in_config_ = false, has_zone_ = false;
  int platform_line_ = 0, line_ = 0;
  long hosts_ = 0;
};

std::string fnv1a(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) digits[i] = "0123456789abcdef"[hash & 15];
  return digits;
}

// SimGrid reads plain UTF-8.
std::string read_text(const std::string& path) try {
  const std::string subject = path + ":";
  std::string text = read_input(subject, path);
  if (text.empty()) throw PlatformError(subject + " is empty; give a SimGrid platform XML file");
  if (text.find('\0') != std::string::npos)
    throw PlatformError(subject + " is not UTF-8 but perhaps UTF-16; save it as UTF-8");
  if (without_mark(text).size() < text.size())
    throw PlatformError(subject + " begins with a byte order mark; save it as UTF-8 without one");
  return text;
} catch (const std::invalid_argument& error) {
  throw PlatformError(error.what());
}

}  // namespace

PlatformText check_platform_text(const std::string& path) {
  const std::string text = read_text(path);
  PlatformText found;
  found.hash = fnv1a(text);
  TextChecker checker(path, found);
  try {
    for (const Tag& tag : read_tags(text)) checker.see(tag);
    checker.finish();
  } catch (const std::invalid_argument& error) {
    std::string what = error.what();
    for (char& c : what)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    throw PlatformError(path + ":" + std::to_string(checker.line()) + ": " + what);
  }
  return found;
}

}  // namespace gradwire
