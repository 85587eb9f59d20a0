#include "analysis/output_file.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <stdexcept>

#include "tests/scratch.h"

namespace gradwire {

namespace fs = std::filesystem;

namespace {

std::ptrdiff_t files_in(const ScratchFolder& folder) {
  return std::distance(fs::directory_iterator(folder.path()), {});
}

}  // namespace

TEST_CASE("a file is written whole, an older one replaced, nothing else left") {
  const ScratchFolder folder;
  write_file(folder / "report.json", "first, and longer");
  write_file(folder / "report.json", "second");
  CHECK(read_text(folder / "report.json") == "second");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a link keeps pointing to its target, which is replaced") {
  const ScratchFolder folder;
  write_file(folder / "target", "old");
  fs::create_symlink(folder / "target", folder / "link");
  write_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_text(folder / "target") == "new");
}

TEST_CASE("a full device is an error that names it, and stays a device") {
  CHECK_THROWS_AS(write_file("/dev/full", "text"), std::runtime_error);
  CHECK_THROWS_WITH(write_file("/dev/full", "text"),
                    "cannot write /dev/full: No space left on device");
  CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE("a line of which only the beginning fits says why, not \"Success\"") {
  const ScratchFile file("results", "header\n");
  append_to_file(file.path(), "whole\n");
  CHECK(read_text(file.path()) == "header\nwhole\n");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // a short write first, then the error
    const rlimit limit{20, 20};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    errno = 0;
    try {
      append_to_file(file.path(), "does not fit\n");
    } catch (const std::runtime_error& error) {
      _exit(std::string(error.what()).ends_with("File too large") ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(read_text(file.path()) == "header\nwhole\ndoes no");
}

TEST_CASE("a file that cannot be put in place leaves nothing behind") {
  const ScratchFolder folder;
  fs::create_directory(folder / "taken");
  CHECK_THROWS_AS(write_file(folder / "no-such-folder/report.json", "text"), std::runtime_error);
  CHECK_THROWS_AS(write_file(folder / "taken", "text"), std::runtime_error);
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a path that cannot be written is known beforehand") {
  const ScratchFolder folder;
  CHECK_NOTHROW(check_writable(folder / "report.json"));
  CHECK_NOTHROW(check_writable("/dev/null"));
  CHECK_THROWS_AS(check_writable(""), std::invalid_argument);
  CHECK_THROWS_WITH(check_writable(folder / "none/report.json"), Catch::Contains("no folder"));
  CHECK_THROWS_WITH(check_writable(folder.path()), Catch::Contains("it is a folder"));
}

TEST_CASE("a link to a file that is not there yet stays a link") {
  const ScratchFolder folder;
  const std::string link = folder / "link.json";
  fs::create_symlink("target.json", link);
  write_file(link, "text");
  CHECK(fs::is_symlink(link));
  CHECK(fs::exists(folder / "target.json"));
}

}  // namespace gradwire
