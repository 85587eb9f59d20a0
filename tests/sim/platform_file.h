// Small platforms written to a temporary file for the length of a test.
#pragma once

#include <cmath>
#include <string>

#include "algorithms/scenario.h"
#include "tests/scratch.h"

namespace gradwire {

class PlatformFile {
 public:
  explicit PlatformFile(const std::string& content) : file_("platform.xml", content) {}

  const std::string& path() const { return file_.path(); }

  /// A scenario on it in which mathematics costs nothing.
  Scenario scenario(int workers) const {
    Scenario s;
    s.platform = path();
    s.workers = workers;
    s.compute.device_flop_per_s = INFINITY;
    return s;
  }

 private:
  ScratchFile file_;
};

inline std::string platform_xml(const std::string& content) {
  return "<?xml version=\"1.0\"?>\n"
         "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n" +
         content + "\n</platform>\n";
}

/// A zone of explicit routes.
inline std::string full_zone_xml(const std::string& content) {
  return platform_xml("<zone id=\"world\" routing=\"Full\">\n" + content + "\n</zone>");
}

inline std::string hosts_xml(const std::string& letters) {
  std::string xml;
  for (const char name : letters)
    xml += std::string("<host id=\"") + name + "\" speed=\"10Gf\"/>\n";
  return xml;
}

/// 64 hosts with full-duplex ports of 1 Gbit/s on a non-blocking switch, 25 us each.
inline std::string star_xml(const std::string& attributes = "") {
  return platform_xml(
      "<cluster id=\"star\" prefix=\"node-\" radical=\"0-63\" suffix=\"\" speed=\"10Gf\" "
      "bw=\"1Gbps\" lat=\"25us\" sharing_policy=\"SPLITDUPLEX\" " +
      attributes + "/>");
}

}  // namespace gradwire
