#include "algorithms/mixing.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

namespace gradwire {

namespace {

// The most square grid: the largest number of rows that divides n and is at most its root.
int grid_rows(int n) {
  int rows = 1;
  for (int r = 1; r * r <= n; ++r)
    if (n % r == 0) rows = r;
  return rows;
}

std::vector<int> torus_peers(int n, int rank) {
  const int rows = grid_rows(n);
  const int columns = n / rows;
  const int row = rank / columns;
  const int column = rank % columns;
  return {row * columns + (column + 1) % columns, row * columns + (column + columns - 1) % columns,
          (row + 1) % rows * columns + column, (row + rows - 1) % rows * columns + column};
}

std::vector<int> candidates(Graph graph, int n, std::int64_t step, int rank) {
  const auto exponents = static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
  std::vector<int> found;
  switch (graph) {
    case Graph::kRing:
      return {(rank + 1) % n, (rank + n - 1) % n};
    case Graph::kTorus:
      return torus_peers(n, rank);
    case Graph::kExponential:
      for (int e = 0; e < exponents; ++e) found.push_back((rank + (1 << e)) % n);
      return found;
    case Graph::kOnePeer:
      return {(rank + (1 << (step % std::max(exponents, 1)))) % n};
    case Graph::kComplete:
      found.resize(static_cast<std::size_t>(n));
      std::iota(found.begin(), found.end(), 0);
      return found;
    case Graph::kLine:
      if (rank > 0) found.push_back(rank - 1);
      if (rank + 1 < n) found.push_back(rank + 1);
      return found;
  }
  throw std::logic_error("unknown graph");
}

}  // namespace

const std::vector<std::string>& graph_names() {
  static const std::vector<std::string> names{"ring",     "torus",    "exponential",
                                              "one-peer", "complete", "line"};
  return names;
}

Graph parse_graph(const std::string& name) {
  const auto& names = graph_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw std::invalid_argument("graph " + name +
                                "; allowed: ring, torus, exponential, one-peer, complete, line");
  return static_cast<Graph>(found - names.begin());
}

std::vector<int> peers(Graph graph, int n, std::int64_t step, int rank) {
  const std::vector<int> found = candidates(graph, n, step, rank);
  std::set<int> others(found.begin(), found.end());
  others.erase(rank);
  return {others.begin(), others.end()};
}

Eigen::MatrixXd mixing_matrix(Graph graph, int n, std::int64_t step) {
  Eigen::MatrixXd w = Eigen::MatrixXd::Zero(n, n);
  for (int j = 0; j < n; ++j) {
    const std::vector<int> to = peers(graph, n, step, j);
    const double share = 1 / static_cast<double>(to.size() + 1);
    w(j, j) = share;
    for (const int i : to) w(i, j) = share;
  }
  return w;
}

std::vector<Scalar> mix(Communicator& comm, std::span<const Scalar> mine, Graph graph,
                        std::int64_t step) {
  const Eigen::MatrixXd w = mixing_matrix(graph, comm.size(), step);
  const int me = comm.rank();
  std::vector<std::vector<Scalar>> theirs(static_cast<std::size_t>(comm.size()));
  std::vector<Request> requests;
  for (int j = 0; j < comm.size(); ++j) {
    if (j == me || w(me, j) == 0) continue;
    auto& buffer = theirs[static_cast<std::size_t>(j)];
    buffer.resize(mine.size());
    requests.push_back(comm.irecv(j, writable_bytes_of(std::span(buffer))));
  }
  for (const int to : peers(graph, comm.size(), step, me))
    requests.push_back(comm.isend(to, bytes_of(mine)));
  for (const Request request : requests) comm.wait(request);

  std::vector<Scalar> mixed(mine.size());
  for (int j = 0; j < comm.size(); ++j) {
    if (w(me, j) == 0) continue;
    const auto x = j == me ? mine : std::span<const Scalar>(theirs[static_cast<std::size_t>(j)]);
    const auto weight = static_cast<Scalar>(w(me, j));
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] += weight * x[i];
    comm.charge(Phase::kReduction, pass_work(static_cast<Index>(mixed.size()), 2, 3));
  }
  return mixed;
}

std::vector<Scalar> flat_parameters(const Model& model) {
  std::vector<Scalar> flat;
  flat.reserve(static_cast<std::size_t>(model.parameter_count()));
  for (const Parameter& p : model.parameters())
    flat.insert(flat.end(), p.value.data(), p.value.data() + p.value.size());
  return flat;
}

void set_parameters(Model& model, std::span<const Scalar> flat) {
  if (static_cast<Index>(flat.size()) != model.parameter_count())
    throw std::logic_error("parameters do not fit the model");
  const Scalar* next = flat.data();
  for (Parameter& p : model.mutable_parameters()) {
    std::copy_n(next, p.value.size(), p.value.data());
    next += p.value.size();
  }
}

std::vector<int> random_cycle(int n, RandomStream stream) {
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[stream.below(i - 1)]);
  return order;
}

}  // namespace gradwire
