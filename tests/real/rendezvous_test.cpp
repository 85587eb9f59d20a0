#include "real/rendezvous.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "tests/scratch.h"

using namespace gradwire;
namespace fs = std::filesystem;

TEST_CASE("Everyone gets everyone's text, also of no length, and the folder goes with the last") {
  const ScratchFolder folder;
  const std::string meeting = folder / "a/b";
  const std::vector<std::string> texts{"zero", "", std::string("t\0wo", 5)};
  std::vector<std::vector<std::string>> got(3);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        const auto index = static_cast<std::size_t>(rank);
        Rendezvous rendezvous(meeting, rank, 10);
        got[index] = rendezvous.exchange(texts[index], 3);
      });
  }
  for (const auto& all : got) CHECK(all == texts);
  CHECK_FALSE(fs::exists(meeting));
}

TEST_CASE("An entry waits for its reader, and its owner removes it") {
  const ScratchFolder folder;
  const std::string meeting = folder / "meeting";
  Rendezvous reader(meeting, 0, 10);
  reader.put("address-0", "there");
  {
    Rendezvous writer(meeting, 1, 10);
    writer.put("address-1", "here");
    CHECK(reader.get("address-1") == "here");
  }
  CHECK(fs::exists(meeting + "/address-0"));
  CHECK_FALSE(fs::exists(meeting + "/address-1"));
}

TEST_CASE("Workers that do not come in time are named") {
  const ScratchFolder folder;
  Rendezvous rendezvous(folder / "meeting", 1, 0.02);
  CHECK_THROWS_WITH(rendezvous.exchange("", 4),
                    Catch::StartsWith("worker 0, worker 2, worker 3 did not come within 0.02 s"));
}

TEST_CASE("An entry of another run is refused and left alone") {
  const ScratchFolder folder;
  std::ofstream(folder / "hello-2") << "old";
  {
    Rendezvous rendezvous(folder.path().string(), 2, 1);
    CHECK_THROWS_WITH(rendezvous.put("hello-2", "new"), Catch::Contains("entry of worker 2"));
  }
  CHECK(fs::exists(folder / "hello-2"));
}

TEST_CASE("A folder that cannot be made is named") {
  CHECK_THROWS_WITH(Rendezvous("/proc/gradwire", 0, 1), Catch::Contains("/proc/gradwire"));
}
