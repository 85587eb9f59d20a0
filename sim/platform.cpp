#include "sim/platform.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "algorithms/serial.h"
#include "models/input_file.h"
#include "sim/loaded_platform.h"

namespace gradwire {

namespace {

namespace fs = std::filesystem;

// GRADWIRE_PLATFORMS if set, and the source tree's own folder.
std::vector<fs::path> platform_folders() {
  std::vector<fs::path> folders;
  if (const char* own = std::getenv("GRADWIRE_PLATFORMS")) folders.emplace_back(own);
  folders.emplace_back(GRADWIRE_PLATFORMS_DIR);
  return folders;
}

}  // namespace

std::string find_platform(const std::string& name_or_path) {
  std::error_code error;
  if (fs::is_regular_file(name_or_path, error)) return name_or_path;
  for (const fs::path& folder : platform_folders())
    if (const fs::path file = folder / (name_or_path + ".xml"); fs::is_regular_file(file, error))
      return file.string();
  if (fs::exists(name_or_path, error) || error == std::errc::permission_denied) try {
      check_input(name_or_path + ":", name_or_path);
    } catch (const std::invalid_argument& reason) {
      throw PlatformError(reason.what());
    }
  std::string known;
  for (const std::string& name : list_platforms()) known += (known.empty() ? "" : ", ") + name;
  std::string folders;
  for (const fs::path& folder : platform_folders())
    folders += (folders.empty() ? "" : " or ") + folder.string();
  throw PlatformError("platform: '" + name_or_path +
                      (known.empty() ? "' is not a file, and there are no platforms in " + folders
                                     : "' is neither a file nor one of the platforms " + known));
}

std::vector<std::string> list_platforms() {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::path& folder : platform_folders())
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".xml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

PlatformInfo check_platform(const Scenario& scenario) {
  const std::string bytes = run_on_platform(scenario, [](LoadedPlatform& platform, Child&) {
    const PlatformInfo& info = platform.info();
    ByteWriter out;
    out.put_strings(info.hosts);
    out.put(info.links);
    out.put(info.min_route_latency_s);
    out.put(info.max_route_latency_s);
    out.put(info.min_route_bandwidth_bit_per_s);
    out.put(info.max_route_bandwidth_bit_per_s);
    out.put_strings(info.warnings);
    return out.take();
  });
  ByteReader in(bytes);
  PlatformInfo info;
  info.path = find_platform(scenario.platform);
  info.hosts = in.get_strings();
  info.links = in.get<int>();
  info.min_route_latency_s = in.get<double>();
  info.max_route_latency_s = in.get<double>();
  info.min_route_bandwidth_bit_per_s = in.get<double>();
  info.max_route_bandwidth_bit_per_s = in.get<double>();
  info.warnings = in.get_strings();
  return info;
}

}  // namespace gradwire
