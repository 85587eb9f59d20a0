// A forked child process in which SimGrid may abort, crash or leak without harm: whatever happens
// there, the caller gets bytes or one exception with one clear line.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradwire {

/// The child ended by a signal or by an exit of its own.
struct ChildDied : std::runtime_error {
  ChildDied(const std::string& reason, std::string activity)
      : std::runtime_error(reason), doing(std::move(activity)) {}
  std::string doing;  ///< what it last said it was doing
};

/// The child was interrupted from the keyboard (SIGINT).
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

/// The child's own side.
class Child {
 public:
  Child(int result_fd, char* note) : result_fd_(result_fd), note_(note) {}
  /// Remembers what the child is about to do, in case that it dies of it.
  void doing(std::string_view what);
  /// Ends the process with an error, from anywhere: an actor, a callback.
  [[noreturn]] void fail(const std::exception& error) const;
  /// Ends the process with its result.
  [[noreturn]] void succeed(std::string_view result) const;

 private:
  [[noreturn]] void leave(char outcome, std::string_view bytes) const;
  int result_fd_;
  char* note_;  ///< shared with the parent
};

/// Runs `body` in a forked child and returns what it returned.  An exception of `body` is rethrown
/// here as PlatformError if it was one, else as std::runtime_error with its message.  Throws
/// ChildDied with the last complaint that the child printed, or with the signal's name; what a
/// child prints is never shown.  The child does not outlive this process.
std::string run_in_child(const std::function<std::string(Child&)>& body);

}  // namespace gradwire
