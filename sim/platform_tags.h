// The tags of an XML text with their lines, which SimGrid's own reader does not tell.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct Tag {
  std::string name;
  bool closing = false;  ///< </name>
  bool empty = false;    ///< <name/>
  bool whole = true;     ///< false: the text ends before it does
  int line = 0;
  std::map<std::string, std::string> attributes;

  std::string get(const std::string& key, const std::string& otherwise = "") const {
    const auto it = attributes.find(key);
    return it == attributes.end() ? otherwise : it->second;
  }
  /// `<link id="l">`, or `<route src="a" dst="b">` where there is no id.
  std::string label() const;
  /// The label with ` key="value"` of an attribute behind it.
  std::string label(const std::string& key) const;
};

/// The tags in order, without judging how they nest: XML errors are left to SimGrid, whose parser
/// is lenient where real files need it (a comment before the XML declaration).
std::vector<Tag> read_tags(std::string_view text);

}  // namespace gradwire
