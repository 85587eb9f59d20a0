// Values as bytes, for other processes of this build and for files: the layout in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace gradwire {

class ByteWriter {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof(T));
  }
  template <class T>
  void put_array(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put<std::uint64_t>(values.size());
    append(values.data(), values.size() * sizeof(T));
  }
  void put_string(const std::string& text) {
    put<std::uint64_t>(text.size());
    append(text.data(), text.size());
  }
  void put_strings(const std::vector<std::string>& texts) {
    put<std::uint64_t>(texts.size());
    for (const std::string& text : texts) put_string(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(const std::string& bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, next(sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> get_array() {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto size = get<std::uint64_t>();
    if (size > (bytes_.size() - at_) / sizeof(T)) fail();
    std::vector<T> values(size);
    if (size > 0) std::memcpy(values.data(), next(size * sizeof(T)), size * sizeof(T));
    return values;
  }
  std::string get_string() {
    const auto size = get<std::uint64_t>();
    return {next(size), size};
  }
  std::vector<std::string> get_strings() {
    std::vector<std::string> texts;
    for (auto count = get<std::uint64_t>(); count > 0; --count) texts.push_back(get_string());
    return texts;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  [[noreturn]] static void fail() { throw std::logic_error("bytes are missing"); }
  const char* next(std::size_t size) {
    if (size > bytes_.size() - at_) fail();
    const char* here = bytes_.data() + at_;
    at_ += size;
    return here;
  }
  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace gradwire
