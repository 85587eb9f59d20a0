#include "algorithms/dry_run.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "algorithms/collectives.h"
#include "algorithms/in_process.h"

namespace gradwire {
namespace {

bool same(const LaneRecording& a, const LaneRecording& b) {
  return std::equal(a.events.begin(), a.events.end(), b.events.begin(), b.events.end()) &&
         std::equal(a.charges.begin(), a.charges.end(), b.charges.begin(), b.charges.end(),
                    [](const Charge& x, const Charge& y) {
                      return x.work.flops == y.work.flops &&
                             x.work.memory_bytes == y.work.memory_bytes;
                    });
}

TEST_CASE("a dry run of a collective makes the calls of a run with data") {
  for (const CollectiveRow& row : collective_table())
    for (const int workers : {1, 2, 5, 8})
      for (const std::size_t bytes : {0, 3, 1000, 4096}) {
        CAPTURE(row.name, workers, bytes);
        const auto worker = [&](Communicator& comm) {
          row.run(comm, bytes);
          comm.end_step();
        };
        std::vector<WorkerRecording> real;
        run_in_process({.workers = workers, .recordings = &real}, worker);
        for (int rank = 0; rank < workers; ++rank)
          CHECK(same(record_dry(rank, workers, worker).lanes[0],
                     real[static_cast<std::size_t>(rank)].lanes[0]));
      }
}

TEST_CASE("a dry all-reduce with a 16-bit wire makes the calls of one with data") {
  for (const char* name : {"ring", "halving-doubling", "tree", "star", "allgather"}) {
    CAPTURE(name);
    std::vector<WorkerRecording> real;
    run_in_process({.workers = 6, .recordings = &real}, [&](Communicator& comm) {
      std::vector<Scalar> values(100);
      find_all_reduce(name)(comm, values, Wire::kBf16);
    });
    for (int rank = 0; rank < 6; ++rank)
      CHECK(same(record_dry(rank, 6,
                            [&](Communicator& comm) {
                              find_all_reduce(name)(comm, absent<Scalar>(100), Wire::kBf16);
                            })
                     .lanes[0],
                 real[static_cast<std::size_t>(rank)].lanes[0]));
  }
}

TEST_CASE("a dry run of terabytes takes no memory") {
  const WorkerRecording recording = record_dry(3, 64, [](Communicator& comm) {
    find_collective("all-reduce:ring").run(comm, std::size_t{1} << 42U);
  });
  CHECK(recording.lanes[0].events[1].value == std::size_t{1} << 36U);
}

}  // namespace
}  // namespace gradwire
