#include "real/foreign_load.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

using namespace gradwire;

namespace {

void compute_for(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds)
    continue;
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
  const ForeignLoad load;
  const double before = load.share();
  CHECK(before >= 0);
  const pid_t child = fork();
  if (child == 0) {
    compute_for(0.3);
    _exit(0);
  }
  compute_for(0.3);
  waitpid(child, nullptr, 0);
  CHECK(load.share() <= 1);
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
