// Which loader a specification means, and how batches are cut.
#include "models/dataset.h"

#include <stdexcept>
#include <utility>

#include "models/dataset_formats.h"
#include "models/random.h"

namespace gradwire {

const std::vector<DatasetRow>& dataset_table() {
  static const std::vector<DatasetRow> table = {
      {"fashion-mnist", "60000 images of 28x28, 10 classes (package dataset-fashion-mnist)"},
      {"idx:FOLDER", "MNIST's four files, plain or .gz, in a folder of yours"},
      {"synthetic", "class prototypes and noise, 28x28, 10 classes; the same everywhere"},
      {"synthetic:FxC", "the same with F features and C classes"},
      {"synthetic-images", "the same in 3 colours of 32x32; or :CHANNELSxHEIGHTxWIDTHxCLASSES"},
      {"synthetic-sequences",
       "13 channels of up to 93 steps, 10 classes, as spoken digits; or :STEPSxCHANNELSxCLASSES"},
      {"synthetic-texts", "up to 64 words of 2000, 2 classes; or :STEPSxVOCABULARYxCLASSES"}};
  return table;
}

Dataset load_dataset(const std::string& spec, std::uint64_t seed) {
  if (spec == "fashion-mnist") return load_fashion_mnist();
  if (spec.starts_with("idx:")) return load_idx(spec, spec.substr(4));
  const std::string name = spec.substr(0, spec.find(':'));
  std::string allowed;
  for (const DatasetRow& row : dataset_table()) {
    if (row.name == name && name.starts_with("synthetic")) return make_synthetic(spec, seed);
    allowed += (allowed.empty() ? "" : ", ") + row.name;
  }
  throw std::invalid_argument("dataset: \"" + spec + "\" is not known; allowed: " + allowed);
}

BatchSource::BatchSource(const Dataset& dataset, Index batch_size, int rank, int workers,
                         std::uint64_t seed)
    : dataset_(dataset), batch_size_(batch_size), rank_(rank), workers_(workers), seed_(seed) {
  if (workers < 1 || rank < 0 || rank >= workers)
    throw std::logic_error("rank " + std::to_string(rank) + " of " + std::to_string(workers) +
                           " workers");
  const Index examples = dataset.train.inputs.rows();
  if (batch_size < 1 || batch_size > examples / workers)
    throw std::invalid_argument(
        "batch-size: " + std::to_string(batch_size) + " on each of " + std::to_string(workers) +
        " workers is not allowed; they need at least 1 each and share the " +
        std::to_string(examples) + " training examples of " + dataset.name);
  steps_per_epoch_ = examples / (batch_size * workers);
}

Batch BatchSource::at(std::int64_t step) {
  const std::int64_t epoch = step / steps_per_epoch_;
  if (epoch != epoch_) {
    order_ = random_permutation(
        static_cast<std::uint32_t>(dataset_.train.inputs.rows()),
        RandomStream(seed_, Purpose::kShuffle, static_cast<std::uint64_t>(epoch)));
    epoch_ = epoch;
  }
  const Index first = (step % steps_per_epoch_ * workers_ + rank_) * batch_size_;
  Batch batch{.inputs = Matrix(batch_size_, dataset_.shape.features), .labels = {}};
  for (Index i = 0; i < batch_size_; ++i) {
    const auto example = order_[static_cast<std::size_t>(first + i)];
    batch.inputs.row(i) = dataset_.train.inputs.row(static_cast<Index>(example));
    batch.labels.push_back(dataset_.train.labels[example]);
  }
  return batch;
}

}  // namespace gradwire
