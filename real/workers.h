// Forked worker processes: whatever becomes of them, the caller gets all their results or one
// exception that says who failed first and how, and none is left over.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace gradwire {

/// Runs `body(rank)` in a process of its own per rank and returns what they returned.  When one
/// fails, the others have `grace_s` to say what they saw before they are killed.  Throws
/// std::runtime_error naming the workers that failed, one killed by a signal first.  What workers
/// print is not shown, but is quoted if they die.  They die with the calling thread.
std::vector<std::string> run_workers(int size, double grace_s,
                                     const std::function<std::string(int rank)>& body);

}  // namespace gradwire
