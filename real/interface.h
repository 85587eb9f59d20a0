// Which of this host's addresses Gloo binds to.  Gloo itself crashes on a host name that does not
// resolve and silently binds to loopback without one.
#pragma once

#include <string>

namespace gradwire {

struct Interface {
  std::string name;     ///< e.g. "eth0"
  std::string address;  ///< numeric, IPv4 if it has one
};

Interface loopback();

/// The interface of that name; for an empty name the one that reaches other hosts: the only one
/// that is up and no loopback, or the one of the default route.  Throws std::invalid_argument
/// naming the candidates.
Interface find_interface(const std::string& name);

}  // namespace gradwire
