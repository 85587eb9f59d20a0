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
  bool cluster_zone = false;      ///< has a zone whose hosts need host links of their own
  std::string hash;               ///< FNV-1a of the bytes, 16 hexadecimal digits
};

/// Throws PlatformError "FILE:LINE: ..." for a file that cannot be read, another version than 4, a
/// bandwidth without unit or not above 0, a negative latency, a speed not above 0, Vivaldi and
/// Empty zones, latency profiles.  Leaves XML and units to SimGrid, whose parser is lenient where
/// real files need it (a comment before the XML declaration).
PlatformText check_platform_text(const std::string& path);

}  // namespace gradwire
