// A network that is only a layer table: the right shapes, bytes and costs, but synthetic
// activations and deltas and no loss.
//
// With values, a map's activation (R, in) is U X and its delta (R, out) is U S Y, where X, Y and U
// have q = min(32, R, in, out) directions of normal numbers, of length 1 in expectation, and S is
// diagonal with B/k for k = 1..q in a batch of B examples.  The gradient X^T (U^T U) S Y therefore
// has about q singular values that fall as 1/k.  X and Y are the map's, the same on all workers and
// at all steps; U is the worker's and the step's, so that gradients agree up to noise of about
// (q/R)^(1/2).  Parameters outside linear maps get normal gradients (an embedding in as many rows
// as tokens can touch).  Weights start at zero and nothing depends on them.
#pragma once

#include <memory>

#include "models/layer_table.h"
#include "models/model.h"

namespace gradwire {

/// `table:...` and `safetensors:...`.
bool is_cost_only(const ModelSpec& spec);

/// Throws std::invalid_argument where is_cost_only() does not hold.
LayerTable load_table(const ModelSpec& spec);

/// With spec.values off no matrix has defined values, and large ones take no memory.
std::unique_ptr<Model> make_cost_only_model(const ModelSpec& spec, std::uint64_t seed);

/// Any model, to be asked for its sizes; a cost-only one then takes no memory.
std::unique_ptr<Model> make_model_for_checks(ModelSpec spec, const DataShape& shape);

/// Batches of any size without inputs.
Dataset no_dataset();

}  // namespace gradwire
