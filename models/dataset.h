// Data sets in memory, their loaders and their deterministic synthetic stand-ins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/matrix.h"

namespace gradwire {

struct Batch {
  Matrix inputs;  // (rows, features)
  std::vector<int> labels;
};

/// What a row of inputs holds.  Images: channels planes of height x width.  Sequences: steps times
/// channels values, step by step, zero from the end of a shorter one on.  Texts: steps token
/// numbers in [0, vocabulary), 0 from the end of a shorter one on.
struct DataShape {
  Index features = 0;  ///< columns of inputs
  int classes = 0;
  Index steps = 1;
  Index channels = 1;
  Index height = 1;
  Index width = 1;
  Index vocabulary = 0;  ///< 0: not a text
};

struct Examples {
  Matrix inputs;  // (examples, features)
  std::vector<int> labels;
};

struct Dataset {
  std::string name;
  bool synthetic = false;
  DataShape shape;
  Examples train;
  Examples test;
};

/// Loads a data set by specification:
/// - `fashion-mnist`: the files of Debian's package dataset-fashion-mnist;
/// - `idx:FOLDER`: {train,t10k}-{images-idx3,labels-idx1}-ubyte (MNIST's names), plain or .gz;
/// - `synthetic`: class prototypes plus noise, 28x28, 10 classes, the same on every machine;
/// - `synthetic:FxC`: the same with F features and C classes;
/// - `synthetic-images[:CHANNELSxHEIGHTxWIDTHxCLASSES]`: likewise, 3x32x32x10 by default;
/// - `synthetic-sequences[:STEPSxCHANNELSxCLASSES]`: class trajectories plus autoregressive noise,
///   a quarter to all of the steps long, 93x13x10 by default;
/// - `synthetic-texts[:STEPSxVOCABULARYxCLASSES]`: Zipf's law and words that speak for a class, a
///   quarter to all of the steps long, 64x2000x2 by default; token 0 is padding, 1 never occurs.
/// Pixels are scaled to [0, 1].  Throws std::invalid_argument naming the file, the place and what
/// is wrong, or the package to install.
Dataset load_dataset(const std::string& spec, std::uint64_t seed);

/// What can be loaded, for users.
struct DatasetRow {
  std::string name;
  std::string summary;
};
const std::vector<DatasetRow>& dataset_table();

/// The batch of a worker at a step: each epoch is one permutation of the training examples keyed by
/// (seed, epoch), and the step's global batch is cut into one run of rows per worker, in rank
/// order, so that N workers of batch B see what one worker of batch N*B sees.  An epoch's
/// incomplete last global batch is dropped.  Throws std::invalid_argument if the global batch
/// exceeds the training examples.
class BatchSource {
 public:
  BatchSource(const Dataset& dataset, Index batch_size, int rank, int workers, std::uint64_t seed);
  Batch at(std::int64_t step);

 private:
  const Dataset& dataset_;
  Index batch_size_;
  int rank_;
  int workers_;
  std::uint64_t seed_;
  std::int64_t steps_per_epoch_;
  std::int64_t epoch_ = -1;
  std::vector<std::uint32_t> order_;
};

}  // namespace gradwire
