// Crossover-SGD (Yeo et al. 2020): gossip by segments.  The model is cut into S segments; at every
// step each segment has a random cyclic permutation of the workers, drawn from the shared seed, and
// worker i averages its segment with that of its predecessor in the cycle: x_i <- (x_i + x_j) / 2.
// Everyone sends and receives exactly one model per step, spread over up to S peers.  The paper's
// abstract gives the principle; the permutations are our reconstruction.
//
// group = G > 1: ranks g G .. g G + G - 1 form a group (of hosts that are near); members send their
// gradients to the group's first worker, which steps with their mean, gossips with the other first
// workers and sends the model back.
//
// Messages per worker and step: S, bytes d w.  With groups: first workers S + G - 1 and G d w,
// members 1 and d w.  State: none.  Flops: 2 d.  Metrics: consensus_distance, as in gossip.cpp.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "algorithms/gradient_parts.h"
#include "algorithms/mixing.h"
#include "algorithms/partition.h"

namespace gradwire {

namespace {

std::vector<Scalar> flatten(const Gradients& gradients) {
  std::vector<Scalar> flat;
  for (const Matrix& g : gradients) flat.insert(flat.end(), g.data(), g.data() + g.size());
  return flat;
}

class Crossover final : public Algorithm {
 public:
  explicit Crossover(const Options& options)
      : segments_(static_cast<int>(options.integer("segments", 1, 1'000'000))),
        group_(static_cast<int>(options.integer("group", 1, 1'000'000))) {}

  void step(Worker& worker) override {
    Gradients gradients = local_gradients(worker, 1 / static_cast<double>(worker.batch_size));
    Communicator& comm = worker.comm;
    const int first = comm.rank() / group_ * group_;
    const int size = std::min(group_, comm.size() - first);
    if (comm.rank() != first) {
      comm.send(first, bytes_of(std::span<const Scalar>(flatten(gradients))));
      std::vector<Scalar> model = flat_parameters(worker.model);
      comm.recv(first, writable_bytes_of(std::span(model)));
      set_parameters(worker.model, model);
      return;
    }
    for (int member = first + 1; member < first + size; ++member) add_from(comm, member, gradients);
    if (size > 1) gradwire::scale(comm, gradients, 1.0 / size);
    gradwire::apply(worker, gradients);
    std::vector<Scalar> model = flat_parameters(worker.model);
    cross(worker, model);
    for (int member = first + 1; member < first + size; ++member)
      comm.send(member, bytes_of(std::span<const Scalar>(model)));
    set_parameters(worker.model, model);
  }

 private:
  static void add_from(Communicator& comm, int member, Gradients& gradients) {
    std::vector<Scalar> theirs(flatten(gradients).size());
    comm.recv(member, writable_bytes_of(std::span(theirs)));
    const Scalar* next = theirs.data();
    for (Matrix& g : gradients)
      for (Index i = 0; i < g.size(); ++i) g.data()[i] += *next++;
    comm.charge(Phase::kReduction, pass_work(static_cast<Index>(theirs.size()), 1, 3));
  }

  // Averages every segment with the cycle's predecessor, among the groups' first workers.
  void cross(Worker& worker, std::vector<Scalar>& model) const {
    Communicator& comm = worker.comm;
    const int groups = (comm.size() + group_ - 1) / group_;
    if (groups == 1) return;
    const int me = comm.rank() / group_;
    if (static_cast<std::size_t>(segments_) > model.size())
      throw std::invalid_argument("algorithm crossover: segments=" + std::to_string(segments_) +
                                  "; allowed: at most one for each of the model's " +
                                  std::to_string(model.size()) + " parameters");
    const auto bounds = even_bounds(model.size(), segments_);
    const std::vector<Scalar> mine = model;
    std::vector<Scalar> theirs(model.size());
    std::vector<Request> requests;
    for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
      const auto cycle = random_cycle(
          groups, {worker.seed, Purpose::kPeers, static_cast<std::uint64_t>(worker.step), s});
      const int from = cycle[static_cast<std::size_t>(me)];
      const auto to = static_cast<int>(std::find(cycle.begin(), cycle.end(), me) - cycle.begin());
      const auto part = [&](auto values) {
        return values.subspan(bounds[s], bounds[s + 1] - bounds[s]);
      };
      requests.push_back(
          comm.irecv(from * group_, writable_bytes_of(part(std::span<Scalar>(theirs)))));
      requests.push_back(comm.isend(to * group_, bytes_of(part(std::span<const Scalar>(mine)))));
    }
    for (const Request request : requests) comm.wait(request);
    for (std::size_t i = 0; i < model.size(); ++i) model[i] = (mine[i] + theirs[i]) / 2;
    comm.charge(Phase::kReduction, pass_work(static_cast<Index>(model.size()), 2, 3));
  }

  int segments_;
  int group_;
};

}  // namespace

AlgorithmRow crossover_row() {
  return {.name = "crossover",
          .summary = "segments of the model are averaged with random peers each (Crossover-SGD)",
          .options = {{"segments", "4", "segments of the model, at least 1", {}},
                      {"group", "1", "workers that share one model, at least 1", {}}},
          .consensus = false,
          .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
            return std::make_unique<Crossover>(options);
          }};
}

}  // namespace gradwire
