#include "real/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace gradwire {

namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, NI_MAXHOST> text{};
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

// Every interface that is up, IPv4 addresses before IPv6 ones.
std::vector<Interface> interfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) throw std::runtime_error("cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, freeifaddrs);
  std::vector<Interface> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != family ||
          (i->ifa_flags & IFF_UP) == 0)
        continue;
      const std::string address = numeric(i->ifa_addr);
      const bool link_local = address.starts_with("fe80:");
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const Interface& f) { return f.name == i->ifa_name; });
      if (!address.empty() && !link_local && !known) found.push_back({i->ifa_name, address});
    }
  }
  return found;
}

// The interface of the IPv4 default route (Linux), or nothing.
std::string default_route() {
  std::ifstream table("/proc/net/route");
  std::string line, name, destination;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    if (words >> name >> destination && destination == "00000000") return name;
  }
  return {};
}

std::string names(const std::vector<Interface>& list) {
  std::string text;
  for (const Interface& i : list) text += (text.empty() ? "" : ", ") + i.name;
  return text.empty() ? "none" : text;
}

}  // namespace

Interface loopback() { return {"lo", "127.0.0.1"}; }

Interface find_interface(const std::string& name) {
  std::vector<Interface> all = interfaces();
  const auto named = [&](const std::string& wanted) {
    return std::find_if(all.begin(), all.end(), [&](const auto& i) { return i.name == wanted; });
  };
  if (!name.empty()) {
    if (const auto i = named(name); i != all.end()) return *i;
    throw std::invalid_argument("interface: no interface " + name +
                                " with an address is up; up are: " + names(all));
  }
  std::erase_if(all, [](const Interface& i) { return i.name == "lo"; });
  if (all.size() == 1) return all.front();
  if (const auto i = named(default_route()); i != all.end()) return *i;
  throw std::invalid_argument(
      "interface: cannot tell which one reaches the other workers; up are: " + names(all));
}

}  // namespace gradwire
