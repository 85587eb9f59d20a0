// One line on a terminal that says what is being computed and how much time is left.
#pragma once

#include <chrono>
#include <ostream>
#include <string>

namespace gradwire {

class Progress {
 public:
  /// Writes nothing unless `show`.
  Progress(std::ostream& err, bool show) : err_(err), show_(show) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done`: the share of the work, from 0 to 1.
  void update(const std::string& what, double done);

 private:
  std::ostream& err_;
  bool show_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace gradwire
