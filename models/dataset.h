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
  bool unlimited =
      false;  ///< no examples: batches of any size without inputs, for cost-only models
  DataShape shape;
  Examples train;
  Examples test;
};

/// K-fold cross-validation: part `index` (from 1) of `count` equal parts of the training examples,
/// in an order keyed by the seed, is held out in place of the test part, which goes unused.
struct Fold {
  int index = 0;
  int count = 0;  ///< 0: no fold, the data set's own test part
};

/// Loads a data set by specification:
/// - `fashion-mnist`: the files of Debian's package dataset-fashion-mnist;
/// - `idx:FOLDER`: {train,t10k}-{images-idx3,labels-idx1}-ubyte (MNIST's names), plain or .gz;
/// - `cifar10:FOLDER`: data_batch_{1..5}.bin and test_batch.bin, plain or .gz;
/// - `ts:PREFIX`: multivariate time series PREFIX_TRAIN.ts and PREFIX_TEST.ts of the UEA archive;
/// - `text:FILE[,test=FILE][,length=512][,vocabulary=50000]`: lines `text TAB label`; without a
///   test file, fold 1/5 is the test part;
/// - `aclImdb:FOLDER[,length=512][,vocabulary=50000]`: {train,test}/{neg,pos}/*.txt;
/// - `synthetic`: class prototypes plus noise, 28x28, 10 classes, the same on every machine;
/// - `synthetic:FxC`: the same with F features and C classes;
/// - `synthetic-images[:CHANNELSxHEIGHTxWIDTHxCLASSES]`: likewise, 3x32x32x10 by default;
/// - `synthetic-sequences[:STEPSxCHANNELSxCLASSES]`: class trajectories plus autoregressive noise,
///   a quarter to all of the steps long, 93x13x10 by default;
/// - `synthetic-texts[:STEPSxVOCABULARYxCLASSES]`: Zipf's law and words that speak for a class, a
///   quarter to all of the steps long, 64x2000x2 by default; token 0 is padding, 1 never occurs.
/// IDX and synthetic pixels are in [0, 1].  CIFAR-10 and time series have mean 0 and variance 1 per
/// channel over the training part that is left after a fold; missing values are 0.  A text's
/// vocabulary and length come from that part, too: token 0 is padding, 1 an unknown word.
/// Throws std::invalid_argument naming the file, the place and what is wrong, or the package to
/// install.
Dataset load_dataset(const std::string& spec, std::uint64_t seed, const Fold& fold = {});

/// What can be loaded, for users.
struct DatasetRow {
  std::string name;
  std::string summary;
};
const std::vector<DatasetRow>& dataset_table();

/// Who trains on what.
enum class DataSplit : std::uint8_t { kRandom, kByClass };

/// The batch of a worker at a step.
/// kRandom: each epoch is one permutation of the training examples keyed by (seed, epoch), and the
/// step's global batch is cut into one run of rows per worker, in rank order, so that N workers of
/// batch B see what one worker of batch N*B sees.  An epoch's incomplete last global batch is
/// dropped.
/// kByClass (non-iid): the examples sorted by class, in an order keyed by the seed within each, are
/// cut into N equal runs; a worker sees its own run alone, in an order keyed by (seed, epoch,
/// rank), and thus few classes.  What N workers see then depends on N; up to N-1 examples and each
/// run's incomplete last batch are dropped.
/// Throws std::invalid_argument if the global batch exceeds the training examples.
class BatchSource {
 public:
  BatchSource(const Dataset& dataset, Index batch_size, int rank, int workers, std::uint64_t seed,
              DataSplit split = DataSplit::kRandom);
  Batch at(std::int64_t step);

 private:
  void start_epoch(std::int64_t epoch);

  const Dataset& dataset_;
  Index batch_size_;
  int rank_;
  int workers_;
  std::uint64_t seed_;
  std::int64_t steps_per_epoch_ = 1;
  std::vector<std::uint32_t> own_;  // by class: this worker's examples; else empty
  std::int64_t epoch_ = -1;
  std::vector<std::uint32_t> order_;
};

}  // namespace gradwire
