#include "analysis/progress.h"

#include <cmath>

namespace gradwire {

namespace {
constexpr const char* kEraseLine = "\r\x1b[K";
}  // namespace

Progress::~Progress() {
  if (show_) err_ << kEraseLine << std::flush;
}

void Progress::update(const std::string& what, double done) {
  if (!show_) return;
  err_ << kEraseLine << std::lround(100 * done) << " %  " << what;
  if (done > 0) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const long left_s = std::lround(std::ceil(elapsed.count() * (1 - done) / done));
    err_ << ", about ";
    if (left_s >= 120) {
      err_ << (left_s + 30) / 60 << " min left";
    } else {
      err_ << left_s << " s left";
    }
  }
  err_ << std::flush;
}

}  // namespace gradwire
