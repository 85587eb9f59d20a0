// What the algorithms share between a backward pass and the optimiser: the pass's traces, the
// gradients that follow from them, sums of what goes uncompressed, and blocks of numbers that
// everyone gets from everyone.  Whatever costs time is charged here.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/collectives.h"

namespace gradwire {

/// factor times m; of m's shape alone where the communicator carries no values.
Matrix copy(const Communicator& comm, const Matrix& m, double factor = 1);

/// factor activation^T delta (in, out).
Matrix weight_gradient(Communicator& comm, Phase phase, const Matrix& activation,
                       const Matrix& delta, double factor = 1);

/// factor times the column sums (1, out), rows added in order: the bias gradient of a delta.
Matrix column_sums(Communicator& comm, Phase phase, const Matrix& delta, double factor = 1);

/// Both for a linear map, as Phase::kBackward: gradients[map.weight] and, if any, [map.bias].
void form_gradients(Communicator& comm, const LinearMap& map, const Matrix& activation,
                    const Matrix& delta, double factor, Gradients& gradients);

/// The map that a trace belongs to.
const LinearMap& map_of(const Model& model, const LayerTrace& trace);

/// Takes the step's batch forward and back and forms this worker's gradients, times `factor`;
/// `ready` hears of each parameter as soon as its gradient exists: last layer first, bias before
/// weight.  The Matrix objects stay where they are.
Gradients local_gradients(Worker& worker, double factor,
                          const std::function<void(int parameter, Matrix& gradient)>& ready = {});

/// A whole backward pass, of the sum of this worker's losses.
struct BackwardPass {
  std::vector<LayerTrace> traces;  ///< last layer first; valid until the model's next forward()
  Gradients gradients;  ///< one per parameter; empty but for the parameters outside linear maps
};
BackwardPass collect_backward(Worker& worker);

/// Forms the bias gradients of all traces that have one: pass.gradients[map.bias].
void form_bias_gradients(Worker& worker, BackwardPass& pass);

/// Pointers to all of them, in order.
std::vector<Matrix*> pointers(std::vector<Matrix>& matrices);

/// The gradients of all biases, of all parameters outside linear maps; in parameter order.
std::vector<Matrix*> bias_gradients(const Model& model, Gradients& gradients);
std::vector<Matrix*> direct_gradients(const Model& model, Gradients& gradients);

/// Multiplies in place; charged as Phase::kReduction.
void scale(Communicator& comm, std::span<Matrix* const> parts, double factor);
void scale(Communicator& comm, Gradients& gradients, double factor);

/// Sums the parts over the workers, in place, by one all-reduce of all of them back to back.
/// Sends nothing where the parts have no elements.  Several parts are moved: their data() changes.
void all_reduce_packed(Communicator& comm, std::span<Matrix* const> parts, AllReduce all_reduce,
                       Wire wire = Wire::kFp32);

/// Turns this worker's gradients (sum of losses) of the parameters outside linear maps into the
/// global batch's mean, by one all-reduce; into its own batch's mean where all_reduce is null.
void mean_direct_gradients(Worker& worker, AllReduce all_reduce, Gradients& gradients);

/// The option `direct` of algorithms whose authors leave those parameters unsynchronised: mean, or
/// local.
OptionSpec direct_option();

/// Communication that a step starts while back-propagation goes on: on the second lane at once, or,
/// switched off, on the main lane in finish().  All workers start the same jobs in the same order.
class Overlap {
 public:
  Overlap(Communicator& comm, bool on) : comm_(comm), on_(on) {}
  void start(std::function<void(Communicator&)> job);
  void finish();  ///< returns when every job is done

 private:
  Communicator& comm_;
  bool on_;
  std::vector<std::function<void(Communicator&)>> waiting_;
};

/// How everyone's block gets to everyone: ring all-gather, or through worker 0 (one direct message
/// up each, then all blocks in one direct message down each).
enum class BlockExchange { kAllGather, kStar, kGloo };

/// Everyone's block, in rank order; `sizes[w]` bytes come from worker w, known to all.
std::vector<std::byte> exchange_blocks(Communicator& comm, BlockExchange exchange,
                                       std::span<const std::byte> mine,
                                       std::span<const std::size_t> sizes);

/// Appends the matrix, row by row, to a block.
void append(std::vector<std::byte>& block, const Matrix& m);

/// Fills rows [first, first + rows) of `into` from the front of `bytes`, which then begins after.
void take_rows(std::span<const std::byte>& bytes, Matrix& into, Index first, Index rows);

}  // namespace gradwire
