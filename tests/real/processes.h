// What tests ask about processes that are not their children.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace gradwire {

/// False also for a zombie that nobody has reaped yet.
inline bool runs(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string id, name, state;
  return stat >> id >> name >> state && state != "Z";
}

}  // namespace gradwire
