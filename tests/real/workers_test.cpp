#include "real/workers.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <thread>

#include "tests/real/processes.h"
#include "tests/scratch.h"

using namespace gradwire;

TEST_CASE("Every worker's bytes come back in the order of the ranks") {
  const auto results = run_workers(3, 1, [](int rank) {
    return std::string(static_cast<std::size_t>(rank) * 100'000, static_cast<char>('a' + rank));
  });
  REQUIRE(results.size() == 3);
  CHECK(results[0].empty());
  CHECK(results[1] == std::string(100'000, 'b'));
  CHECK(results[2] == std::string(200'000, 'c'));
}

TEST_CASE("Who died is named before who only failed") {
  CHECK_THROWS_WITH(run_workers(2, 5,
                                [](int rank) -> std::string {
                                  if (rank == 0) throw std::runtime_error("lost worker 1");
                                  usleep(20'000);
                                  raise(SIGKILL);
                                  return {};
                                }),
                    "worker 1: ended by signal: Killed; worker 0: lost worker 1");
}

TEST_CASE("A worker that leaves by exit is reported even with status 0") {
  CHECK_THROWS_WITH(run_workers(1, 1, [](int) -> std::string { _exit(0); }),
                    "worker 0: ended with status 0");
}

TEST_CASE("Workers that go on after a failure are killed when the grace is over") {
  CHECK_THROWS_WITH(run_workers(2, 0.05,
                                [](int rank) -> std::string {
                                  if (rank == 0) throw std::runtime_error("enough");
                                  for (;;) pause();
                                }),
                    "worker 0: enough");
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // no child left, not even a zombie
  CHECK(errno == ECHILD);
}

TEST_CASE("Workers die with the process that started them") {
  const ScratchFolder folder;
  const std::string file = folder / "pid";
  const pid_t starter = fork();
  REQUIRE(starter >= 0);
  if (starter == 0) {
    run_workers(1, 1, [&](int) -> std::string {
      std::ofstream(file) << getpid() << std::endl;
      for (;;) pause();
    });
    _exit(0);
  }
  pid_t worker = 0;
  while (worker == 0) {
    std::ifstream(file) >> worker;
    std::this_thread::yield();
  }
  REQUIRE(kill(worker, 0) == 0);
  kill(starter, SIGKILL);
  waitpid(starter, nullptr, 0);
  for (int i = 0; i < 1000 && runs(worker); ++i) usleep(1000);
  CHECK_FALSE(runs(worker));
}
