// Gossip: who averages models with whom, as mixing matrices W (W_ij: what worker i takes of worker
// j's model), and the exchange.  Worker j gives 1 / (1 + out_j) to each of its out_j peers and
// keeps as much: columns always sum to 1 (push-sum, Kempe et al. 2003); rows, too, where all
// workers have as many peers, which is all graphs but `line`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "models/random.h"

namespace gradwire {

/// ring         both neighbours
/// torus        four neighbours in the most square grid of rows x columns = N
/// exponential  N-th neighbours 1, 2, 4, ... to the right (Assran et al. 2019)
/// one-peer     one of these, in turn: log2 N steps average exactly for N a power of two
/// complete     everyone
/// line         a ring that is not closed: rows do not sum to 1
enum class Graph { kRing, kTorus, kExponential, kOnePeer, kComplete, kLine };

/// Throws std::invalid_argument naming the graphs above.
Graph parse_graph(const std::string& name);
const std::vector<std::string>& graph_names();

/// Ranks to which `rank` of n sends at a step; ascending, without itself.
std::vector<int> peers(Graph graph, int n, std::int64_t step, int rank);

/// W of a step, (n, n).
Eigen::MatrixXd mixing_matrix(Graph graph, int n, std::int64_t step);

/// Sends `mine` to all peers and returns sum_j W_ij x_j, added in rank order; out_i messages and
/// out_i times the buffer's bytes.  Charged as Phase::kReduction.
std::vector<Scalar> mix(Communicator& comm, std::span<const Scalar> mine, Graph graph,
                        std::int64_t step);

/// The model's parameters in a row, and back.
std::vector<Scalar> flat_parameters(const Model& model);
void set_parameters(Model& model, std::span<const Scalar> flat);

/// A random permutation of 0..n-1 of one cycle (Sattolo 1986): no element stays, if n > 1.
std::vector<int> random_cycle(int n, RandomStream stream);

}  // namespace gradwire
