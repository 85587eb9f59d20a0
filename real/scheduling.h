// How the kernel schedules a worker's threads.  Under the default policy Gloo's small messages cost
// up to a timer tick each: its event loop preempts the thread that holds the lock it needs and
// spins.  SCHED_BATCH has no such preemption, but a thread that wakes for a message waits for the
// end of somebody's time slice where all cores compute.  In a network lab, where workers that would
// have a machine each share one, messages go first: all that touches Gloo runs under SCHED_RR, only
// mathematics under SCHED_BATCH; and each worker has its core, shared with every so many others.
#pragma once

#include <sched.h>

namespace gradwire {

inline bool schedule_this_thread(int policy) {
  const sched_param parameters{.sched_priority = policy == SCHED_RR ? 1 : 0};
  return sched_setscheduler(0, policy, &parameters) == 0;
}

/// Keeps the calling process, and the threads it will start, on one core of those it may use:
/// workers take turns.  Without that the kernel leaves cores idle while workers wait on others.
inline void stay_on_core_of(int worker) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  int turn = worker % CPU_COUNT(&allowed);
  int core = 0;
  while (!CPU_ISSET(core, &allowed) || turn-- > 0) ++core;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(core, &mine);
  sched_setaffinity(0, sizeof(mine), &mine);
}

/// While it exists, this thread handles messages; nothing happens unless `first`.
class MessageTurn {
 public:
  explicit MessageTurn(bool first)
      : changes_(first && sched_getscheduler(0) != SCHED_RR && schedule_this_thread(SCHED_RR)) {}
  ~MessageTurn() {
    if (changes_) schedule_this_thread(SCHED_BATCH);
  }
  MessageTurn(const MessageTurn&) = delete;
  MessageTurn& operator=(const MessageTurn&) = delete;

 private:
  bool changes_;
};

}  // namespace gradwire
