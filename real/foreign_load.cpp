#include "real/foreign_load.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace gradwire {

namespace {

constexpr long kKernelThreads = 2;  // the process id of their parent

// Processor time of a process and of its children that have ended; 0 for ours and the kernel's.
double used_s(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string skipped;
  long parent = 0;
  fields >> skipped >> parent;  // state, parent: fields 3 and 4
  for (int i = 5; i <= 13; ++i) fields >> skipped;
  double ticks = 0;
  for (int i = 14; i <= 17; ++i) {  // user, system, and the same of children
    double each = 0;
    if (fields >> each) ticks += each;
  }
  if (parent == getpid() || parent == kKernelThreads) return 0;
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double all_foreign_s() {
  const std::string self = std::to_string(getpid());
  double sum_s = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name != self && name.find_first_not_of("0123456789") == std::string::npos)
      sum_s += used_s(entry->path());
  }
  return sum_s;
}

}  // namespace

ForeignLoad::ForeignLoad()
    : foreign_s_(all_foreign_s()), start_(std::chrono::steady_clock::now()) {}

double ForeignLoad::share() const {
  const double foreign_s = all_foreign_s() - foreign_s_;
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  constexpr double kRounding_s = 0.03;  // a few ticks
  return wall_s > 0 ? std::max(0.0, (foreign_s - kRounding_s) / (cores * wall_s)) : 0;
}

}  // namespace gradwire
