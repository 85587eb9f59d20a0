// An open file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace gradwire {

class Descriptor {
 public:
  Descriptor() = default;
  /// Takes what `call` returned; throws std::system_error naming it if that is an error.
  Descriptor(int fd, const std::string& call) : fd_(fd) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), call);
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace gradwire
