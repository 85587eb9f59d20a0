#include "real/foreign_load.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

using namespace gradwire;

namespace {

void compute_for(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds)
    continue;
}

double processor_s(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The load of a process whose parent has ended, as this process sees it.
double share_beside_orphan(bool orphan_computes) {
  const ForeignLoad load;
  const pid_t parent = fork();
  if (parent == 0) {
    if (fork() == 0) {
      if (orphan_computes) compute_for(0.4);
      usleep(400000);
    }
    _exit(0);
  }
  waitpid(parent, nullptr, 0);
  usleep(500000);
  return load.share();
}

}  // namespace

TEST_CASE("Processor time of this process and its children is not foreign", "[real][load]") {
  const double own_before_s = processor_s(RUSAGE_SELF) + processor_s(RUSAGE_CHILDREN);
  const ForeignLoad load;
  const double before = load.share();
  CHECK(before >= 0);
  const pid_t child = fork();
  if (child == 0) {
    compute_for(0.3);
    _exit(0);
  }
  const auto start = std::chrono::steady_clock::now();
  compute_for(0.3);
  waitpid(child, nullptr, 0);
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // Ours and theirs together are no more than there is; counted twice, ours alone would be.  Half
  // as much again is for ticks, which are coarse where many processes share the cores.
  const double own_s = processor_s(RUSAGE_SELF) + processor_s(RUSAGE_CHILDREN) - own_before_s;
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  CHECK(load.share() + own_s / (cores * wall_s) < 1.5);
}

TEST_CASE("A process of somebody else counts as foreign load", "[real][load]") {
  CHECK(share_beside_orphan(true) > 0);
}

TEST_CASE("A measurement is repeated while others compute, but not for ever", "[real][load]") {
  int calls = 0;
  bool disturbed = true;
  const int result = measure_undisturbed(2, disturbed, [&] { return ++calls; });
  CHECK(result == calls);
  CHECK((calls == 1 || calls == 2));
  CHECK((disturbed ? calls == 2 : true));
}
