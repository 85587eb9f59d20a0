#include "sim/platform_tags.h"

#include <optional>

namespace gradwire {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

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
    tag.whole = !at_end();
    return tag;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::string Tag::label() const {
  std::string label = "<" + name;
  for (const char* key : {"id", "src", "dst"})
    if (const std::string value = get(key); !value.empty())
      label.append(" ").append(key).append("=\"").append(value).append("\"");
  return label.append(">");
}

std::string Tag::label(const std::string& key) const {
  std::string text = key == "id" || key == "src" || key == "dst" ? "<" + name + ">" : label();
  return text.append(" ").append(key).append("=\"").append(get(key)).append("\"");
}

std::vector<Tag> read_tags(std::string_view text) {
  std::vector<Tag> tags;
  TagReader reader(text);
  while (std::optional<Tag> tag = reader.next()) tags.push_back(*std::move(tag));
  return tags;
}

}  // namespace gradwire
