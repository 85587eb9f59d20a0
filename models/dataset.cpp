// Which loader a specification means, and how batches are cut.
#include "models/dataset.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "models/dataset_formats.h"
#include "models/random.h"

namespace gradwire {

const std::vector<DatasetRow>& dataset_table() {
  static const std::vector<DatasetRow> table = {
      {"fashion-mnist", "60000 images of 28x28, 10 classes (package dataset-fashion-mnist)"},
      {"idx:FOLDER", "MNIST's four files, plain or .gz, in a folder of yours"},
      {"cifar10:FOLDER", "CIFAR-10's six binary files in a folder of yours"},
      {"ts:PREFIX", "UEA time series PREFIX_TRAIN.ts and PREFIX_TEST.ts, of any length"},
      {"text:FILE", "lines of text, tab, label; then ,test=FILE ,length=512 ,vocabulary=50000"},
      {"aclImdb:FOLDER", "IMDB reviews, {train,test}/{neg,pos}/*.txt; length, vocabulary alike"},
      {"synthetic", "class prototypes and noise, 28x28, 10 classes; the same everywhere"},
      {"synthetic:FxC", "the same with F features and C classes"},
      {"synthetic-images", "the same in 3 colours of 32x32; or :CHANNELSxHEIGHTxWIDTHxCLASSES"},
      {"synthetic-sequences",
       "13 channels of up to 93 steps, 10 classes, as spoken digits; or :STEPSxCHANNELSxCLASSES"},
      {"synthetic-texts", "up to 64 words of 2000, 2 classes; or :STEPSxVOCABULARYxCLASSES"}};
  return table;
}

namespace {

Dataset load(const std::string& spec, std::uint64_t seed, const Fold& fold) {
  const std::string name = spec.substr(0, spec.find(':'));
  const std::string path = spec.substr(std::min(spec.size(), name.size() + 1));
  if (spec == "fashion-mnist") return load_fashion_mnist();
  if (spec.starts_with("idx:")) return load_idx(spec, path);
  if (spec.starts_with("cifar10:")) return load_cifar10(spec, path);
  if (spec.starts_with("ts:")) return load_time_series(spec, path);
  if (spec.starts_with("text:")) return load_text(spec, path, fold, seed);
  if (spec.starts_with("aclImdb:")) return load_text_folder(spec, path, fold, seed);
  std::string allowed;
  for (const DatasetRow& row : dataset_table()) {
    if (row.name == name && name.starts_with("synthetic")) return make_synthetic(spec, seed);
    allowed += (allowed.empty() ? "" : ", ") + row.name;
  }
  throw std::invalid_argument("dataset: \"" + spec + "\" is not known; allowed: " + allowed);
}

}  // namespace

Dataset load_dataset(const std::string& spec, std::uint64_t seed, const Fold& fold) {
  Dataset data = load(spec, seed, fold);
  if (data.shape.vocabulary == 0 || data.synthetic) hold_out(data, fold, seed);
  if (spec.starts_with("cifar10:") || spec.starts_with("ts:")) standardize(data);
  return data;
}

namespace {

// Worker `rank`'s run of the examples sorted by class.
std::vector<std::uint32_t> run_of_classes(const std::vector<int>& labels, int rank, int workers,
                                          std::uint64_t seed) {
  constexpr std::uint64_t kNoEpoch = ~std::uint64_t{0};
  auto order = random_permutation(static_cast<std::uint32_t>(labels.size()),
                                  RandomStream(seed, Purpose::kShuffle, kNoEpoch));
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return labels[a] < labels[b]; });
  const auto size = static_cast<std::ptrdiff_t>(labels.size()) / workers;
  return {order.begin() + rank * size, order.begin() + (rank + 1) * size};
}

}  // namespace

BatchSource::BatchSource(const Dataset& dataset, Index batch_size, int rank, int workers,
                         std::uint64_t seed, DataSplit split)
    : dataset_(dataset), batch_size_(batch_size), rank_(rank), workers_(workers), seed_(seed) {
  if (workers < 1 || rank < 0 || rank >= workers)
    throw std::logic_error("rank " + std::to_string(rank) + " of " + std::to_string(workers) +
                           " workers");
  if (dataset.unlimited && batch_size >= 1) return;
  const Index examples = dataset.train.inputs.rows();
  if (batch_size < 1 || batch_size > examples / workers)
    throw std::invalid_argument("batch-size: " + std::to_string(batch_size) + " is not allowed; " +
                                std::to_string(workers) + " workers share the " +
                                std::to_string(examples) + " training examples of " + dataset.name +
                                ", so at most " + std::to_string(examples / workers));
  steps_per_epoch_ = examples / (batch_size * workers);
  if (split == DataSplit::kRandom) return;
  own_ = run_of_classes(dataset.train.labels, rank, workers, seed);
  steps_per_epoch_ = static_cast<Index>(own_.size()) / batch_size;
}

void BatchSource::start_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  const auto key = static_cast<std::uint64_t>(epoch);
  const auto examples = own_.empty() ? dataset_.train.labels.size() : own_.size();
  const auto rank = own_.empty() ? 0 : static_cast<std::uint64_t>(rank_) + 1;
  order_ = random_permutation(static_cast<std::uint32_t>(examples),
                              RandomStream(seed_, Purpose::kShuffle, key, rank));
  if (!own_.empty())
    for (std::uint32_t& example : order_) example = own_[example];
}

Batch BatchSource::at(std::int64_t step) {
  if (dataset_.unlimited)
    return {.inputs = Matrix(batch_size_, 0),
            .labels = std::vector<int>(static_cast<std::size_t>(batch_size_), 0)};
  start_epoch(step / steps_per_epoch_);
  const Index in_epoch = step % steps_per_epoch_;
  const Index first = (own_.empty() ? in_epoch * workers_ + rank_ : in_epoch) * batch_size_;
  Batch batch{.inputs = Matrix(batch_size_, dataset_.shape.features), .labels = {}};
  for (Index i = 0; i < batch_size_; ++i) {
    const auto example = order_[static_cast<std::size_t>(first + i)];
    batch.inputs.row(i) = dataset_.train.inputs.row(static_cast<Index>(example));
    batch.labels.push_back(dataset_.train.labels[example]);
  }
  return batch;
}

}  // namespace gradwire
