#include "sim/cores.h"

#include <algorithm>

namespace gradwire {

namespace s4u = simgrid::s4u;

double Cores::rate() const {
  return std::min(1.0, static_cast<double>(count_) / static_cast<double>(jobs_.size()));
}

void Cores::advance() {
  const double now_s = s4u::Engine::get_clock();
  if (!jobs_.empty()) each_s_ += (now_s - since_s_) * rate();
  since_s_ = now_s;
}

void Cores::wake_all() {
  const auto jobs = jobs_;  // others run, and end, while this actor releases
  for (const s4u::SemaphorePtr& job : jobs) job->release();
}

void Cores::run(double seconds) {
  constexpr double kRounding = 1e-12;
  if (!(seconds > 0)) return;
  advance();
  const double goal_s = each_s_ + seconds;
  if (jobs_.size() >= static_cast<std::size_t>(count_)) wake_all();
  const auto job = jobs_.insert(jobs_.end(), s4u::Semaphore::create(0));
  while (goal_s - each_s_ > kRounding * (1 + goal_s)) {
    (*job)->acquire_timeout((goal_s - each_s_) / rate());
    advance();
  }
  jobs_.erase(job);
  if (jobs_.size() >= static_cast<std::size_t>(count_)) wake_all();
}

}  // namespace gradwire
