// Whatever a child process does, its parent gets bytes or one line.
#include "sim/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sim/platform.h"

namespace gradwire {
namespace {

TEST_CASE("a child's bytes come back whatever they are") {
  std::string bytes(3'000'000, '\0');
  CHECK(run_in_child([&](Child&) { return bytes; }) == bytes);
  CHECK(run_in_child([](Child&) { return std::string(); }).empty());
}

TEST_CASE("a child's exception comes back with its message, a PlatformError as one") {
  CHECK_THROWS_WITH(run_in_child([](Child&) -> std::string { throw std::out_of_range("too far"); }),
                    "too far");
  CHECK_THROWS_AS(run_in_child([](Child&) -> std::string { throw PlatformError("bad"); }),
                  PlatformError);
  CHECK_THROWS_WITH(
      run_in_child([](Child& child) -> std::string { child.fail(std::runtime_error("deep")); }),
      "deep");
}

TEST_CASE("a dying child names the signal and what it was doing") {
  try {
    run_in_child([](Child& child) -> std::string {
      child.doing("dividing");
      raise(SIGFPE);
      return "";
    });
    FAIL("no exception");
  } catch (const ChildDied& death) {
    CHECK(death.doing == "dividing");
    CHECK_THAT(death.what(), Catch::Contains("Floating point exception"));
  }
}

TEST_CASE("an aborting child's last complaint is the reason") {
  CHECK_THROWS_WITH(run_in_child([](Child&) -> std::string {
                      std::fputs(
                          "[0.000000] ./src/x.cpp:1: [root/CRITICAL] no such thing\n"
                          "Backtrace:\n  -> 0# main\n",
                          stderr);
                      std::abort();
                    }),
                    "no such thing");
}

TEST_CASE("a child that exits on its own is an error") {
  CHECK_THROWS_WITH(run_in_child([](Child&) -> std::string { _exit(3); }), "ended with status 3");
  CHECK_THROWS_AS(run_in_child([](Child&) -> std::string { _exit(0); }), ChildDied);
}

TEST_CASE("an interrupted child interrupts") {
  CHECK_THROWS_AS(run_in_child([](Child&) -> std::string {
                    raise(SIGINT);
                    return "";
                  }),
                  Interrupted);
}

TEST_CASE("a child dies with its parent") {
  // A process in between starts a child that tells its number and sleeps; killing the process must
  // end the child, which is seen by the pipe closing.
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t between = fork();
  if (between == 0) {
    close(ends[0]);
    run_in_child([&](Child&) -> std::string {
      const char ready = 'r';
      if (write(ends[1], &ready, 1) != 1) _exit(1);
      sleep(60);
      return "";
    });
    _exit(0);
  }
  close(ends[1]);
  char byte = 0;
  CHECK(read(ends[0], &byte, 1) == 1);  // the child runs
  kill(between, SIGKILL);
  CHECK(read(ends[0], &byte, 1) == 0);  // nobody holds the other end any more
  close(ends[0]);
  waitpid(between, nullptr, 0);
}

}  // namespace
}  // namespace gradwire
