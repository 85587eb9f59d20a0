// A loop over independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace gradwire {

/// Calls f(0) .. f(n-1), `jobs` at the same time (0: one per processor); rethrows the exception of
/// the lowest index after all threads have ended.
template <class F>
void parallel_for(std::size_t n, int jobs, const F& f) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t threads = std::min(n, jobs > 0 ? static_cast<std::size_t>(jobs) : cores);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t failed_at = n;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        f(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (i < failed_at) failure = std::current_exception();
        failed_at = std::min(failed_at, i);
        next = n;
      }
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace gradwire
