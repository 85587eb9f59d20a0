#include "algorithms/sparse_exchange.h"

#include <catch2/catch.hpp>
#include <map>

#include "algorithms/in_process.h"

using namespace gradwire;

namespace {

constexpr std::size_t kSize = 500;

std::vector<Scalar> integers(int rank) {
  RandomStream stream(static_cast<std::uint64_t>(rank), Purpose::kSyntheticTensor);
  std::vector<Scalar> values(kSize);
  for (Scalar& x : values) x = static_cast<Scalar>(stream.below(2001)) - 1000;
  return values;
}

struct Outcome {
  std::vector<SparseList> sums;  // by rank
  std::vector<Account> accounts;
};

// Runs one exchange on N workers, one at a time, so that they may CHECK.
template <class Exchange>
Outcome run(int workers, const Exchange& exchange) {
  Outcome outcome{std::vector<SparseList>(static_cast<std::size_t>(workers)),
                  std::vector<Account>(static_cast<std::size_t>(workers))};
  run_in_process({.workers = workers, .concurrency = 1}, [&](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    outcome.sums[me] = exchange(comm);
    outcome.accounts[me] = comm.account();
  });
  return outcome;
}

// Worker w selects the w + `extra` largest: ragged sizes.
Coordinates ragged(int rank, std::size_t extra) {
  return top_k(integers(rank), static_cast<std::size_t>(rank) * 3 + extra).indices;
}

// The definition: per coordinate of the union, add the given workers' values.
std::map<std::uint32_t, Scalar> sum_of_lists(const std::vector<SparseList>& lists) {
  std::map<std::uint32_t, Scalar> sum;
  for (const SparseList& list : lists)
    for (std::size_t i = 0; i < list.indices.size(); ++i) sum[list.indices[i]] += list.values[i];
  return sum;
}

void check_equals(const SparseList& list, const std::map<std::uint32_t, Scalar>& expected) {
  REQUIRE(list.indices.size() == expected.size());
  std::size_t i = 0;
  for (const auto& [index, value] : expected) {
    CHECK(list.indices[i] == index);
    CHECK(list.values[i++] == value);
  }
}

constexpr int kWorkers[] = {1, 2, 3, 5, 8};

}  // namespace

TEST_CASE("Gathered lists add up on every worker, whatever their sizes", "[sparse_exchange]") {
  for (const int n : kWorkers)
    for (const IndexCode code : {IndexCode::kInt32, IndexCode::kInt64, IndexCode::kSmallest}) {
      const auto outcome = run(n, [&](Communicator& comm) {
        const auto mine = pick(integers(comm.rank()), ragged(comm.rank(), 0));  // worker 0: nothing
        const auto result = all_gather_sum(comm, mine, code, kSize);
        for (int w = 0; w < comm.size(); ++w)
          CHECK(result.selected[static_cast<std::size_t>(w)] == static_cast<std::size_t>(3 * w));
        return result.sum;
      });
      std::vector<SparseList> lists;
      for (int w = 0; w < n; ++w) lists.push_back(pick(integers(w), ragged(w, 0)));
      for (const auto& sum : outcome.sums) check_equals(sum, sum_of_lists(lists));
    }
}

TEST_CASE("An all-gather of lists sends 8 (N-1) bytes and all lists but the neighbour's",
          "[sparse_exchange]") {
  for (const int n : kWorkers) {
    const auto outcome = run(n, [&](Communicator& comm) {
      const auto mine = pick(integers(comm.rank()), ragged(comm.rank(), 2));
      return all_gather_sum(comm, mine, IndexCode::kInt32, kSize).sum;
    });
    std::int64_t total = 0;
    const auto bytes = [](int w) {
      return static_cast<std::int64_t>((3 * static_cast<std::size_t>(w) + 2) *
                                       (4 + sizeof(Scalar)));
    };
    for (int w = 0; w < n; ++w) total += bytes(w);
    for (int w = 0; w < n; ++w) {
      const Traffic& traffic = outcome.accounts[static_cast<std::size_t>(w)].traffic;
      CHECK(traffic.messages_sent == 2 * (n - 1));
      CHECK(traffic.bytes_sent == (n == 1 ? 0 : 8 * (n - 1) + total - bytes((w + 1) % n)));
    }
  }
}

TEST_CASE("A union sum adds everyone's own values at the union", "[sparse_exchange]") {
  const Coordinates common{1, 2, 3};
  for (const int n : kWorkers) {
    CoordinateSet set(kSize);
    for (const auto i : common) set.insert(i);
    std::size_t longest = 0;
    for (int w = 0; w < n; ++w)
      for (const auto i : ragged(w, 0))
        set.insert(i), longest = std::max(longest, ragged(w, 0).size());
    const Coordinates both = set.sorted();
    std::vector<SparseList> lists;
    for (int w = 0; w < n; ++w) lists.push_back(pick(integers(w), both));

    const auto outcome = run(n, [&](Communicator& comm) {
      return union_sum(comm, ragged(comm.rank(), 0), integers(comm.rank()), IndexCode::kInt64,
                       ring_all_reduce, common)
          .sum;
    });
    for (const auto& sum : outcome.sums) check_equals(sum, sum_of_lists(lists));
    std::int64_t sent = 0;
    for (const auto& account : outcome.accounts) sent += account.traffic.bytes_sent;
    const auto per_worker = static_cast<std::int64_t>(8 + 8 * longest);
    CHECK(sent == n * (n - 1) * per_worker +
                      2 * (n - 1) * static_cast<std::int64_t>(both.size() * sizeof(Scalar)));
  }
}

TEST_CASE("A sum at shared coordinates sends no index", "[sparse_exchange]") {
  const Coordinates shared{0, 7, 499};
  for (const int n : kWorkers) {
    std::vector<SparseList> lists;
    for (int w = 0; w < n; ++w) lists.push_back(pick(integers(w), shared));
    const auto outcome = run(n, [&](Communicator& comm) {
      return shared_sum(comm, shared, integers(comm.rank()), ring_all_reduce).sum;
    });
    std::int64_t sent = 0;
    for (const auto& account : outcome.accounts) sent += account.traffic.bytes_sent;
    CHECK(sent ==
          static_cast<std::int64_t>(2 * (static_cast<std::size_t>(n) - 1) * 3 * sizeof(Scalar)));
    for (const auto& sum : outcome.sums) check_equals(sum, sum_of_lists(lists));
  }
}

TEST_CASE("Nobody selecting anything is legal in every exchange", "[sparse_exchange]") {
  for (const int n : kWorkers) {
    const auto check_empty = [](const Outcome& outcome) {
      for (const auto& sum : outcome.sums) CHECK(sum.indices.empty());
    };
    const std::vector<Scalar> zeros(kSize);
    for (const IndexCode code : {IndexCode::kInt32, IndexCode::kBitmap, IndexCode::kSmallest})
      check_empty(
          run(n, [&](Communicator& comm) { return all_gather_sum(comm, {}, code, kSize).sum; }));
    check_empty(run(n, [&](Communicator& comm) {
      return union_sum(comm, {}, zeros, IndexCode::kInt32, ring_all_reduce).sum;
    }));
    check_empty(run(
        n, [&](Communicator& comm) { return shared_sum(comm, {}, zeros, ring_all_reduce).sum; }));
    check_empty(run(n, [&](Communicator& comm) {
      return tree_sum(comm, {}, IndexCode::kInt32, kSize).result.sum;
    }));
  }
  CHECK(padding_waste({0, 0}) == 0);
  CHECK(padding_waste({4, 2, 0}) == 1);  // 3 * 4 sent for 6
}

TEST_CASE("A tree sum of shared coordinates is their exact sum and leaks nothing",
          "[sparse_exchange]") {
  const Coordinates shared{3, 4, 100};
  for (const int n : kWorkers) {
    std::vector<SparseList> lists;
    for (int w = 0; w < n; ++w) lists.push_back(pick(integers(w), shared));
    const auto outcome = run(n, [&](Communicator& comm) {
      const auto tree =
          tree_sum(comm, pick(integers(comm.rank()), shared), IndexCode::kInt32, kSize);
      CHECK(tree.leaked.indices.empty());
      return tree.result.sum;
    });
    for (const auto& sum : outcome.sums) check_equals(sum, sum_of_lists(lists));
  }
}

TEST_CASE("A tree sum of two workers is the top k of their sum", "[sparse_exchange]") {
  const auto list = [](int w) { return pick(integers(w), top_k(integers(w), 20).indices); };
  const SparseList both = merge(list(0), list(1));
  std::map<std::uint32_t, Scalar> best;
  for (const auto i : top_k(both.values, 20).indices) best[both.indices[i]] = both.values[i];
  const auto outcome = run(2, [&](Communicator& comm) {
    return tree_sum(comm, list(comm.rank()), IndexCode::kInt32, kSize).result.sum;
  });
  for (const auto& sum : outcome.sums) check_equals(sum, best);
}

TEST_CASE("Sent, trimmed and leaked sums of a tree are all that went in", "[sparse_exchange]") {
  constexpr std::size_t kPairs = 25;
  for (const int n : kWorkers) {
    std::vector<SparseList> accounted;
    const auto outcome = run(n, [&](Communicator& comm) {
      const auto mine = pick(integers(comm.rank()), top_k(integers(comm.rank()), kPairs).indices);
      const auto tree = tree_sum(comm, mine, IndexCode::kInt64, kSize);
      CHECK(tree.result.sum.indices.size() == kPairs);
      const auto back = difference(mine.indices, tree.result.sum.indices);
      accounted.push_back(pick(integers(comm.rank()), back));  // returns to its owner's memory
      accounted.push_back(tree.leaked);
      return tree.result.sum;
    });
    for (const auto& sum : outcome.sums) {
      CHECK(sum.indices == outcome.sums.front().indices);
      CHECK(sum.values == outcome.sums.front().values);
    }
    accounted.push_back(outcome.sums.front());
    std::vector<SparseList> lists;
    for (int w = 0; w < n; ++w)
      lists.push_back(pick(integers(w), top_k(integers(w), kPairs).indices));
    CHECK(sum_of_lists(accounted) == sum_of_lists(lists));

    std::int64_t sent = 0;
    std::int64_t messages = 0;
    for (const auto& account : outcome.accounts) {
      sent += account.traffic.bytes_sent;
      messages += account.traffic.messages_sent;
    }
    CHECK(messages == 2 * (n - 1));
    CHECK(sent == messages * static_cast<std::int64_t>(kPairs * (8 + sizeof(Scalar))));
  }
}

TEST_CASE("Lists of one size refuse codes of varying size", "[sparse_exchange]") {
  CHECK_THROWS_AS(run(1,
                      [](Communicator& comm) {
                        return tree_sum(comm, {}, IndexCode::kDelta, kSize).result.sum;
                      }),
                  std::invalid_argument);
}
