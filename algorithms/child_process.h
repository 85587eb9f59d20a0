// What a forked process of ours is from its first line on.
#pragma once

#include <sys/types.h>

namespace gradwire {

/// Called in the child: ends it when `parent` does, also if that has ended already.
void die_with(pid_t parent);

/// Called in the child: dies with `parent`, takes every signal's default action, leaves no core
/// file, and writes its standard streams to `output_fd`.
void become_child(pid_t parent, int output_fd);

}  // namespace gradwire
