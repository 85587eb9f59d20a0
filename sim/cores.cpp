#include "sim/cores.h"

#include <algorithm>
#include <vector>

namespace gradwire {

namespace s4u = simgrid::s4u;

double Cores::rate(Urgency urgency) const {
  const auto urgent = static_cast<double>(queues_[0].jobs.size());
  const auto others = static_cast<double>(queues_[1].jobs.size());
  if (urgency == Urgency::kMessages) return std::min(1.0, count_ / std::max(urgent, 1.0));
  return std::min(1.0, std::max(count_ - urgent, 0.0) / std::max(others, 1.0));
}

void Cores::advance() {
  const double now_s = s4u::Engine::get_clock();
  mathematics_s_ += (now_s - since_s_) * rate(Urgency::kMathematics) *
                    static_cast<double>(queue(Urgency::kMathematics).jobs.size());
  for (const Urgency urgency : {Urgency::kMessages, Urgency::kMathematics})
    queue(urgency).each_s += (now_s - since_s_) * rate(urgency);
  since_s_ = now_s;
}

double Cores::mathematics_s() {
  advance();
  return mathematics_s_;
}

void Cores::wake_all() {
  std::vector<s4u::SemaphorePtr> jobs;  // others run, and end, while this actor releases
  for (const Queue& queue : queues_) jobs.insert(jobs.end(), queue.jobs.begin(), queue.jobs.end());
  for (const s4u::SemaphorePtr& job : jobs) job->release();
}

void Cores::run(double seconds, Urgency urgency) {
  constexpr double kRounding = 1e-12;
  if (!(seconds > 0)) return;
  advance();
  Queue& mine = queue(urgency);
  const double goal_s = mine.each_s + seconds;
  const auto crowded = [this] {
    return queues_[0].jobs.size() + queues_[1].jobs.size() > static_cast<std::size_t>(count_);
  };
  const auto job = mine.jobs.insert(mine.jobs.end(), s4u::Semaphore::create(0));
  const s4u::SemaphorePtr woken = *job;
  if (crowded()) wake_all();
  while (goal_s - mine.each_s > kRounding * (1 + goal_s)) {
    if (const double rate_now = rate(urgency); rate_now > 0) {
      woken->acquire_timeout((goal_s - mine.each_s) / rate_now);
    } else {
      woken->acquire();
    }
    advance();
  }
  const bool was_crowded = crowded();
  mine.jobs.erase(job);
  if (was_crowded) wake_all();
}

}  // namespace gradwire
