#include "algorithms/mixing.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <set>

#include "algorithms/in_process.h"

using namespace gradwire;

namespace {
constexpr Graph kRegular[] = {Graph::kRing, Graph::kTorus, Graph::kExponential, Graph::kOnePeer,
                              Graph::kComplete};
constexpr int kWorkers[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};

double distance(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return (a - b).cwiseAbs().maxCoeff();
}
}  // namespace

TEST_CASE("Columns of every mixing matrix sum to 1, rows of regular graphs too", "[mixing]") {
  for (const int n : kWorkers)
    for (std::int64_t step = 0; step < 5; ++step) {
      for (const Graph graph : kRegular) {
        const auto w = mixing_matrix(graph, n, step);
        CHECK(distance(w.colwise().sum(), Eigen::RowVectorXd::Ones(n)) < 1e-12);
        CHECK(distance(w.rowwise().sum(), Eigen::VectorXd::Ones(n)) < 1e-12);
        CHECK(w.minCoeff() >= 0);
      }
      const auto line = mixing_matrix(Graph::kLine, n, step);
      CHECK(distance(line.colwise().sum(), Eigen::RowVectorXd::Ones(n)) < 1e-12);
      if (n > 2) CHECK(distance(line.rowwise().sum(), Eigen::VectorXd::Ones(n)) > 0.1);
    }
}

TEST_CASE("Graphs have the peers that their names promise", "[mixing]") {
  CHECK(peers(Graph::kRing, 5, 0, 0) == std::vector<int>{1, 4});
  CHECK(peers(Graph::kRing, 2, 0, 0) == std::vector<int>{1});
  CHECK(peers(Graph::kTorus, 9, 0, 4) == std::vector<int>{1, 3, 5, 7});
  CHECK(peers(Graph::kTorus, 8, 0, 0) == std::vector<int>{1, 3, 4});  // 2 x 4
  CHECK(peers(Graph::kExponential, 8, 0, 6) == std::vector<int>{0, 2, 7});
  CHECK(peers(Graph::kExponential, 6, 0, 0) == std::vector<int>{1, 2, 4});
  CHECK(peers(Graph::kOnePeer, 8, 4, 0) == std::vector<int>{2});  // 4 mod 3 = 1
  CHECK(peers(Graph::kComplete, 3, 0, 1) == std::vector<int>{0, 2});
  CHECK(peers(Graph::kLine, 3, 0, 0) == std::vector<int>{1});
  for (const Graph graph : kRegular) CHECK(peers(graph, 1, 3, 0).empty());
  CHECK_THROWS_AS(parse_graph("star"), std::invalid_argument);
}

TEST_CASE("log2 N one-peer steps average exactly if and only if N is a power of two", "[mixing]") {
  for (const int n : {2, 3, 4, 6, 8, 12, 16}) {
    Eigen::MatrixXd product = Eigen::MatrixXd::Identity(n, n);
    const int steps = std::bit_width(static_cast<unsigned>(n - 1));
    for (int t = 0; t < steps; ++t) product = mixing_matrix(Graph::kOnePeer, n, t) * product;
    const double error = distance(product, Eigen::MatrixXd::Constant(n, n, 1.0 / n));
    if (std::has_single_bit(static_cast<unsigned>(n)))
      CHECK(error < 1e-15);
    else
      CHECK(error > 0.01);
  }
}

TEST_CASE("Mixing sends the model to the peers and computes W x", "[mixing]") {
  constexpr std::size_t kSize = 3;
  for (const Graph graph : {Graph::kRing, Graph::kTorus, Graph::kExponential, Graph::kOnePeer,
                            Graph::kComplete, Graph::kLine})
    for (const int n : {1, 2, 3, 5, 8}) {
      Eigen::MatrixXd x(n, kSize);
      for (int i = 0; i < n; ++i) x.row(i) << i, 10 - i * i, 1;
      Eigen::MatrixXd mixed(n, kSize);
      run_in_process({.workers = n, .concurrency = 1}, [&](Communicator& comm) {
        const int me = comm.rank();
        std::vector<Scalar> mine(kSize);
        for (std::size_t i = 0; i < kSize; ++i)
          mine[i] = static_cast<Scalar>(x(me, static_cast<Index>(i)));
        const auto result = mix(comm, mine, graph, 1);
        for (std::size_t i = 0; i < kSize; ++i)
          mixed(me, static_cast<Index>(i)) = static_cast<double>(result[i]);
        const auto out = static_cast<std::int64_t>(peers(graph, n, 1, me).size());
        CHECK(comm.account().traffic.messages_sent == out);
        CHECK(comm.account().traffic.bytes_sent ==
              out * static_cast<std::int64_t>(kSize * sizeof(Scalar)));
      });
      CHECK(distance(mixed, mixing_matrix(graph, n, 1) * x) < 1e-4);
      // Column sums of 1 preserve the sum.
      CHECK(distance(mixed.colwise().sum(), x.colwise().sum()) < 1e-3);
    }
}

TEST_CASE("Random cycles visit everyone, leave nobody in place and change with the stream",
          "[mixing]") {
  std::set<std::vector<int>> seen;
  for (std::uint64_t t = 0; t < 200; ++t) {
    const auto cycle = random_cycle(4, RandomStream(1, Purpose::kPeers, t));
    int at = 0;
    int length = 0;
    do {
      at = cycle[static_cast<std::size_t>(at)];
      ++length;
    } while (at != 0 && length < 10);
    CHECK(length == 4);
    seen.insert(cycle);
  }
  CHECK(seen.size() == 6);  // (4 - 1)! cycles
  CHECK(random_cycle(1, RandomStream(1, Purpose::kPeers)) == std::vector<int>{0});
}
