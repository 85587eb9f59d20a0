// One step of an algorithm on a golden case's weights and first batch.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "tests/algorithms/training_runs.h"
#include "tests/golden.h"

namespace gradwire {

inline std::string golden_model(const nlohmann::json& golden_case) {
  std::string name = "mlp";
  char separator = ':';
  for (const auto& width : golden_case.at("sizes")) {
    name += separator + std::to_string(width.get<int>());
    separator = '-';
  }
  return name;
}

/// The rows of all workers' first batches: exactly one global batch, so that their order and their
/// place do not matter to the mean.
inline Dataset golden_dataset(const nlohmann::json& golden_case) {
  const auto& x = golden_case.at("inputs").at("X").at(0);
  const Index batch = golden_case.at("batch_per_worker").get<Index>();
  const Index features = golden_case.at("sizes").front().get<Index>();
  Dataset dataset{
      .name = "golden",
      .synthetic = true,
      .shape = {.features = features, .classes = golden_case.at("sizes").back().get<int>()},
      .train = {Matrix(batch * static_cast<Index>(x.size()), features), {}},
      .test = {}};
  for (std::size_t w = 0; w < x.size(); ++w) {
    dataset.train.inputs.middleRows(static_cast<Index>(w) * batch, batch) = golden_matrix(x[w]);
    for (const auto& label : golden_case.at("inputs").at("y").at(0).at(w))
      dataset.train.labels.push_back(label.get<int>());
  }
  return dataset;
}

/// Every worker after the step.
inline std::vector<StepRecord> golden_step(const nlohmann::json& golden_case,
                                           const std::string& algorithm) {
  const Dataset dataset = golden_dataset(golden_case);
  return run_steps(algorithm, golden_case.at("workers").get<int>(), dataset,
                   golden_case.at("batch_per_worker").get<Index>(), [&] {
                     auto model =
                         make_model({.name = golden_model(golden_case),
                                     .activation = golden_case.at("activation").get<std::string>()},
                                    dataset.shape, 1);
                     for (std::size_t i = 0; i < model->linear_maps().size(); ++i) {
                       const LinearMap& map = model->linear_maps()[i];
                       auto& parameters = model->mutable_parameters();
                       parameters[static_cast<std::size_t>(map.weight)].value =
                           golden_matrix(golden_case.at("inputs").at("W").at(i));
                       parameters[static_cast<std::size_t>(map.bias)].value =
                           golden_matrix(golden_case.at("inputs").at("b").at(i));
                     }
                     return model;
                   });
}

/// Largest absolute difference between what an MLP's worker applied and golden gradients.
inline double golden_difference(const StepRecord& step, const nlohmann::json& weights,
                                const nlohmann::json& biases) {
  double difference = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    difference =
        std::max({difference, max_difference(step.applied.at(2 * i), golden_matrix(weights[i])),
                  max_difference(step.applied.at(2 * i + 1), golden_matrix(biases.at(i)))});
  }
  return difference;
}

}  // namespace gradwire
