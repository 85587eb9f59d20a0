#include "algorithms/sparsifier.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace gradwire {

namespace {

bool declared(const Options& options, const std::string& key) {
  return options.values().contains(key);
}

Work pass(std::size_t n, double flops_each, double accesses_each) {
  return pass_work(static_cast<Index>(n), flops_each, accesses_each);
}

// A list's entries at their places in matrices of the parameters' shapes, times `factor`.
Gradients scatter(const Model& model, const std::vector<std::size_t>& tensors,
                  const SparseList& list, Scalar factor) {
  Gradients gradients = zero_gradients(model);
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < list.indices.size(); ++i) {
    while (list.indices[i] >= tensors[tensor + 1]) ++tensor;
    gradients[tensor].data()[list.indices[i] - tensors[tensor]] = factor * list.values[i];
  }
  return gradients;
}

}  // namespace

Sparsifier::Sparsifier(const Options& options, Exchange exchange)
    : exchange_(exchange),
      density_(declared(options, "density") ? options.real("density", 1e-9, 1) : 0) {
  if (declared(options, "warmup-steps")) warmup_steps_ = options.integer("warmup-steps", 0);
  if (declared(options, "feedback")) feedback_ = options.choice("feedback") != "off";
  if (declared(options, "leaked")) return_leaked_ = options.choice("leaked") == "return";
  if (declared(options, "index")) index_ = parse_index_code(options.choice("index"));
  if (declared(options, "all-reduce")) all_reduce_ = find_all_reduce(options.choice("all-reduce"));
  if (exchange == Exchange::kUnion && index_ != IndexCode::kInt32 && index_ != IndexCode::kInt64)
    throw std::invalid_argument("index=" + options.choice("index") +
                                "; allowed with exchange=union: int32, int64");
}

std::size_t Sparsifier::target(const SparseContext& context, std::size_t d) const {
  double density = density_;
  if (warmup_steps_ > 0) {
    const std::int64_t stage = context.step / warmup_steps_;
    density = std::max(density, std::pow(0.25, 1 + static_cast<double>(stage)));
  }
  const double k = std::floor(density * static_cast<double>(d) * (1 + 1e-12));
  return std::max<std::size_t>(1, static_cast<std::size_t>(k));
}

void Sparsifier::accumulate(const SparseContext& /*context*/, std::span<const Scalar> gradient,
                            Scalar factor) {
  memory_.add(gradient, factor);
}

void Sparsifier::forget(const Coordinates& sent) { memory_.clear(sent); }

SparseSum Sparsifier::exchange(SparseContext& context, const Choice& choice) {
  const auto values = memory_.values();
  const Coordinates& mine = choice.mine.indices;
  SparseSum result;
  switch (exchange_) {
    case Exchange::kAllGather:
      result = all_gather_sum(context.comm, pick(values, mine), index_, values.size());
      forget(mine);
      break;
    case Exchange::kUnion:
      result = union_sum(context.comm, mine, values, index_, all_reduce_, choice.common);
      context.metrics["padding_waste"] = padding_waste(result.selected);
      forget(result.sum.indices);
      break;
    case Exchange::kShared:
      result = shared_sum(context.comm, mine, values, all_reduce_);
      forget(mine);
      break;
    case Exchange::kTree:
      TreeSum tree = tree_sum(context.comm, pick(values, mine), index_, values.size());
      result = std::move(tree.result);
      forget(intersection(mine, result.sum.indices));
      if (return_leaked_) memory_.add(tree.leaked);
      double leaked = 0;
      for (const double x : tree.leaked.values) leaked += x * x;
      context.metrics["leaked_norm"] = return_leaked_ ? 0 : std::sqrt(leaked);
      break;
  }
  return result;
}

SparseList Sparsifier::reduce(SparseContext& context, std::span<const Scalar> gradient,
                              Scalar factor) {
  const std::size_t d = gradient.size();
  accumulate(context, gradient, factor);
  const Choice choice = select(context, memory_.values());
  context.comm.charge(Phase::kCompression, pass(d, 2, 3) + choice.mine.work);
  SparseSum result = exchange(context, choice);
  if (!feedback_) memory_.clear();
  learn(context, result.selected);
  const auto size = static_cast<double>(result.sum.indices.size());
  context.metrics["selected"] = static_cast<double>(choice.mine.indices.size());
  context.metrics["union_size"] = size;
  context.metrics["density"] = size / static_cast<double>(d);
  if (density_ > 0)
    context.metrics["target_density"] =
        static_cast<double>(target(context, d)) / static_cast<double>(d);
  context.metrics["residual_norm"] = memory_.norm();
  return std::move(result.sum);
}

SparseAlgorithm::SparseAlgorithm(std::unique_ptr<Sparsifier> sparsifier, const Options& options)
    : sparsifier_(std::move(sparsifier)),
      rate_inside_(declared(options, "feedback") && options.choice("feedback") == "rate-inside") {}

void SparseAlgorithm::step(Worker& worker) {
  const Gradients gradients = local_gradients(worker, 1 / static_cast<double>(worker.batch_size));
  const std::vector<std::size_t> tensors = tensor_offsets(worker.model);
  std::vector<Scalar> flat;
  flat.reserve(tensors.back());
  for (const Matrix& gradient : gradients)
    flat.insert(flat.end(), gradient.data(), gradient.data() + gradient.size());

  const double factor = rate_inside_ ? worker.optimizer.learning_rate() : 1;
  SparseContext context{worker.comm, worker.seed, worker.step, tensors, worker.metrics};
  const SparseList sum = sparsifier_->reduce(context, flat, static_cast<Scalar>(factor));
  const auto share = static_cast<Scalar>(1 / (factor * static_cast<double>(worker.comm.size())));
  const Gradients mean = scatter(worker.model, tensors, sum, share);
  worker.comm.charge(Phase::kReduction, pass(flat.size(), 0, 1) + pass(sum.indices.size(), 1, 3));
  gradwire::apply(worker, mean);
}

std::unique_ptr<Sparsifier> make_sparsifier(const AlgorithmSpec& spec) {
  const auto algorithm = make_algorithm(spec);
  auto* sparse = dynamic_cast<SparseAlgorithm*>(algorithm.get());
  if (sparse == nullptr) throw std::invalid_argument("algorithm " + spec.name + ": no sparsifier");
  return sparse->take_sparsifier();
}

std::vector<std::size_t> tensor_offsets(const Model& model) {
  std::vector<std::size_t> offsets{0};
  for (const Parameter& p : model.parameters())
    offsets.push_back(offsets.back() + static_cast<std::size_t>(p.value.size()));
  return offsets;
}

OptionSpec density_option() {
  return {"density", "0.01", "share of the coordinates to send, above 0 up to 1", {}};
}

OptionSpec feedback_option() {
  return {"feedback",
          "on",
          "keep what is not sent for later; rate-inside: already times the learning rate",
          {"on", "off", "rate-inside"}};
}

OptionSpec exchange_option() {
  return {"exchange",
          "allgather",
          "allgather: ragged lists; union: counts, padded indices, all-reduce of the union",
          {"allgather", "union"}};
}

OptionSpec index_option() {
  return {"index", "int32", "how indices are written", index_code_names()};
}

OptionSpec plain_index_option() {
  return {"index", "int32", "how indices are written", {"int32", "int64"}};
}

OptionSpec all_reduce_option() {
  return {"all-reduce",
          "ring",
          "how values at common coordinates are summed",
          {"ring", "halving-doubling", "tree", "allgather", "star"}};
}

OptionSpec selection_cost_option() {
  return {"selection-cost",
          "scan",
          "cost model of top-k: scan, as computed here, or sort, as on a GPU",
          {"scan", "sort"}};
}

OptionSpec warmup_option() {
  return {"warmup-steps",
          "0",
          "steps at each of the densities 1/4, 1/16, ... until the target is reached; 0: none",
          {}};
}

Sparsifier::Exchange chosen_exchange(const Options& options) {
  return options.choice("exchange") == "union" ? Sparsifier::Exchange::kUnion
                                               : Sparsifier::Exchange::kAllGather;
}

}  // namespace gradwire
