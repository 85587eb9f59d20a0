// A network as a list of tensors, for models that nobody rewrites in C++: enough to know what each
// algorithm sends and computes.  Read from layer tables (models/tables/, or a user's JSON) and from
// safetensors headers.
#pragma once

#include <string>
#include <vector>

#include "models/matrix.h"

namespace gradwire {

/// A tensor as a file describes it; what the file does not say is 0 or empty.
struct TableTensor {
  std::string name;
  std::vector<Index> shape;  ///< PyTorch's: (out, in, ...) for a weight
  std::string kind = {};     ///< linear, conv, embedding, bias, norm or param
  std::string tied_to = {};  ///< another tensor that this one shares its numbers with
  double forward_flops = 0;  ///< per example
  Index rows = 0;            ///< per example: of an embedding, those that are used
  double forward_s = 0;      ///< per batch, as measured by whoever wrote the table
  double backward_s = 0;     ///< likewise, weight gradient included
};

struct TableMap {
  std::string name;
  int weight = -1;  ///< index into parameters
  int bias = -1;    ///< likewise; -1: none
  Index in = 0;
  Index out = 0;
  Index rows = 1;  ///< per example: tokens, or pixels of a convolution's output
  double forward_s = 0;
  double backward_s = 0;
};

/// One that is no linear map's weight has its gradient by itself.
struct TableParameter {
  std::string name;
  Index rows = 1;  ///< (in, out) for a map's weight, (1, n) for a vector
  Index cols = 0;
  Index touched_rows = 0;  ///< of an embedding, per example: others have no gradient; 0: all have
};

struct LayerTable {
  std::string source;                      ///< where the table says that it comes from
  std::vector<TableParameter> parameters;  ///< in the file's order
  std::vector<TableMap> maps;              ///< in the order of the forward pass
  double other_forward_flops = 0;  ///< per example, outside the maps' own products: attention, ties

  double parameter_count() const;
  bool times_given() const { return !maps.empty() && maps.front().forward_s > 0; }
};

struct TableOptions {
  Index rows = 0;    ///< per example, of maps whose rows the file does not tell; 0: not given
  Index tokens = 0;  ///< per example: rows of an embedding that are used; 0: `rows`
  double attention_forward_flops = 0;  ///< per example
};

/// Which tensors are linear maps, of which sizes.  A tensor of two or more dimensions is one unless
/// it is an embedding (by kind, or by a name with "emb", "wte" or "wpe"), has a single row or is
/// (1, n, m), as positions are; its bias is the tensor of the same name with .bias for .weight,
/// whose length also tells (in, out) from (out, in).  A tied tensor adds no parameters, only flops;
/// running means and variances are no parameters.  Throws std::invalid_argument naming `file` and
/// the tensor: duplicate names, sizes not from 1 to 2^40, nothing at all, times for some maps only,
/// a convolution or an embedding whose network tells no rows.
LayerTable make_table(const std::string& file, const std::vector<TableTensor>& tensors,
                      const TableOptions& options);

/// `NAME[,rows=R]` of models/tables/, or `FILE[,rows=R]`: an object with "tensors" or just the list
/// of {"name", "shape"} and optionally "kind", "rows" or "fwd_flops" (per example), "tied_to",
/// "fwd_us" and "bwd_us" (per batch); an object may have "source", "total_params" (checked) and
/// "attention_fwd_flops_per_sample".  The README has the lines that write one from PyTorch.
/// Throws std::invalid_argument naming the file and what is wrong.
LayerTable load_layer_table(const std::string& arguments);

/// `FILE[,rows=R]`: a .safetensors file, or its first bytes as far as the header goes, or a sharded
/// model's .index.json beside its shards.  Tensors that are not floating point are left out.
/// Throws std::invalid_argument naming the file and what is wrong.
LayerTable load_safetensors(const std::string& arguments);

struct TableRow {
  std::string name;
  std::string summary;
};
/// Of models/tables/.
std::vector<TableRow> shipped_tables();

}  // namespace gradwire
