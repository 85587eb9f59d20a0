// What a platform file says, read from its text: SimGrid loses units, accepts nonsense silently and
// aborts on much of the rest, so these checks come before it sees the file.
#pragma once

#include <string>
#include <vector>

namespace gradwire {

struct PlatformText {
  struct Setting {
    int line;
    std::string key, value;
  };
  std::vector<Setting> settings;  ///< <config> properties: they change SimGrid behind one's back
  bool varies = false;            ///< has profiles or traces: something changes over time
  std::vector<std::string> warnings;
  bool cluster_zone = false;  ///< has a zone whose hosts need host links of their own
  std::string hash;           ///< FNV-1a of the bytes, 16 hexadecimal digits
};

/// Throws PlatformError "FILE:LINE: ..." for a file that cannot be read, another version than 4, an
/// element that check_element refuses, a name given twice, a link that a route does not find, Empty
/// zones of several hosts, a bandwidth profile that is no list of times and bandwidths above 0, and
/// more than 100 000 hosts.  How elements nest is left to SimGrid.
PlatformText check_platform_text(const std::string& path);

}  // namespace gradwire
