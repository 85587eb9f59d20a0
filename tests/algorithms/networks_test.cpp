// Every algorithm on networks that are no MLPs: recurrent maps, attention, parameters outside
// linear maps.
#include <catch2/catch.hpp>

#include "models/random.h"
#include "tests/algorithms/training_runs.h"

using namespace gradwire;

namespace {

struct Network {
  std::string model;
  std::string dataset;
};

const std::vector<Network>& networks() {
  static const std::vector<Network> all{
      {"gru:hidden=6,head=7", "synthetic-sequences:5x3x3"},
      {"transformer:dim=8,heads=2,depth=2", "synthetic-texts:6x50x2"},
      {"vit:dim=8,heads=2,depth=2,patch=3,qkv=fused", "synthetic-images:2x6x6x3"}};
  return all;
}

Scenario scenario_of(const Network& network, const std::string& algorithm, int workers) {
  Scenario scenario = small_scenario(algorithm, workers);
  scenario.model.name = network.model;
  scenario.dataset = network.dataset;
  scenario.optimizer.learning_rate = 0.05;
  return scenario;
}

TrainingRun run(const Network& network, const std::string& algorithm, int workers) {
  return run_training(scenario_of(network, algorithm, workers));
}

// What worker 0 of 2 sends in a step of `batch_size` examples: its activations, factors or
// gradients, once.
struct Payload {
  double bytes_per_example = 0;
  double bytes = 0;
};

Payload payload(const std::string& model, const DataShape& shape, const std::string& algorithm,
                Index batch_size = 2) {
  const Index examples = 2 * batch_size;
  Dataset data{.name = "points",
               .synthetic = true,
               .shape = shape,
               .train = {Matrix(examples, shape.features), {}},
               .test = {}};
  RandomStream(1, Purpose::kSyntheticTensor).fill_normal(data.train.inputs);
  for (Index i = 0; i < examples; ++i) data.train.labels.push_back(static_cast<int>(i));
  std::int64_t bytes = 0;
  run_in_process({.workers = 2}, [&](Communicator& comm) {
    const auto instance = make_algorithm(parse_algorithm_spec(algorithm));
    const auto network = make_model({.name = model, .bias = false}, shape, 1);
    const auto optimizer = make_optimizer({.name = "sgd", .learning_rate = 0.1});
    BatchSource batches(data, batch_size, comm.rank(), 2, 1);
    Worker worker{.comm = comm,
                  .model = *network,
                  .optimizer = *optimizer,
                  .batches = batches,
                  .seed = 1,
                  .batch_size = batch_size,
                  .global_batch = examples};
    instance->step(worker);
    if (comm.rank() == 0) bytes = comm.account().traffic.bytes_sent;
  });
  return {static_cast<double>(bytes) / static_cast<double>(batch_size), static_cast<double>(bytes)};
}

double direct_parameters(const std::string& model, const DataShape& shape) {
  const auto network = make_model({.name = model, .bias = false}, shape, 1);
  auto count = static_cast<double>(network->parameter_count());
  for (const LinearMap& map : network->linear_maps())
    count -= static_cast<double>(map.in * map.out);
  return count;
}

}  // namespace

TEST_CASE("Every algorithm trains every network on equal replicas, exactly if it says so") {
  const int workers = GENERATE(2, 3);
  for (const Network& network : networks())
    for (const AlgorithmRow& row : algorithm_registry()) {
      if (row.name == "edad") continue;
      CAPTURE(network.model, row.name, workers);
      const TrainingRun training = run(network, row.name, workers);
      for (const auto& steps : training.steps) {
        REQUIRE(steps.size() == 3);
        CHECK(std::isfinite(steps.back().loss_sum));
      }
      if (row.consensus) CHECK(replicas_equal(training));
      if (row.exact) CHECK(gradient_error(training) < 1e-5);
    }
}

TEST_CASE("dAD trains every network as dSGD does") {
  const int workers = GENERATE(2, 3);
  const std::string exchange = GENERATE(as<std::string>{}, "allgather", "star", "star-reduced");
  for (const Network& network : networks()) {
    CAPTURE(network.model, workers, exchange);
    CHECK(relative_difference(run(network, "dad:exchange=" + exchange, workers).parameters(),
                              run(network, "dsgd", workers).parameters()) < 1e-6);
  }
}

TEST_CASE("edAD refuses networks that are no chains of row-wise layers") {
  for (const Network& network : networks()) {
    CAPTURE(network.model);
    CHECK_THROWS_WITH(run(network, "edad", 2), Catch::Contains("chain of row-wise layers"));
  }
}

TEST_CASE("Parameters outside linear maps drift apart where the authors leave them alone") {
  const std::string algorithm = GENERATE(as<std::string>{}, "dad", "rank-dad", "top-columns");
  const Network& network = networks()[1];
  CAPTURE(algorithm);
  const TrainingRun training = run(network, algorithm + ":direct=local", 2);
  const auto model = make_model({.name = network.model, .activation = "tanh"},
                                small_dataset(scenario_of(network, "dsgd", 2)).shape, 1);
  std::vector<bool> in_map(model->parameters().size(), false);
  for (const LinearMap& map : model->linear_maps())
    for (const int p : {map.weight, map.bias}) in_map[static_cast<std::size_t>(p)] = true;
  // One step: later gradients of the maps follow from parameters that differ, but are shared.
  for (std::size_t p = 0; p < in_map.size(); ++p) {
    CAPTURE(model->parameters()[p].name);
    CHECK((training.steps[0][0].parameters[p] == training.steps[1][0].parameters[p]) == in_map[p]);
  }
  for (std::size_t w = 0; w < 2; ++w) {
    const StepRecord& step = training.steps[w][0];
    CHECK(relative_difference({step.applied[0]}, {step.local[0] / Scalar{4}}) < 1e-6);
  }
}

TEST_CASE("Payloads of the authors' networks are those of their formulas, at batch 64") {
  // Weights only, four bytes a number; RANK_DAD's table.  dAD grows with the batch, the others do
  // not (their rank is below two examples' rows, or one number per weight).
  struct Row {
    std::string model;
    DataShape shape;
    double weights, dad_bytes, maps, widths;  // widths: inputs and outputs of all linear maps
  };
  const DataShape mnist{.features = 784, .classes = 10, .height = 28, .width = 28};
  const DataShape digits{.features = 93 * 13, .classes = 10, .steps = 93, .channels = 13};
  const DataShape cifar{
      .features = 3 * 224 * 224, .classes = 10, .channels = 3, .height = 224, .width = 224};
  const auto [model, shape, weights, dad_bytes, maps, widths] = GENERATE_COPY(values<Row>({
      {"mnistnet", mnist, 4360704, 4.0 * 64 * 8474, 5, 8474},
      {"gru", digits, 3195840, 4.0 * (64 * 93 * (13 + 192 + 64 + 192) + 64 * 7498), 5, 461 + 7498},
      {"vit:patch=32", cifar, 2753792,
       4.0 * 64 * (49 * (3072 + 128) + 12 * 50 * (4 * 256 + 2 * 640) + 138), 74,
       3200 + 12 * (4 * 256 + 2 * 640) + 138},
  }));
  CAPTURE(model);
  const double others = 4 * direct_parameters(model, shape);
  CHECK(payload(model, shape, "dsgd:form=authors").bytes == 4 * weights + others);
  CHECK(64 * payload(model, shape, "dad:direct=local").bytes_per_example == dad_bytes);
  CHECK(payload(model, shape, "dad").bytes ==
        payload(model, shape, "dad:direct=local").bytes + others);
  // Factors of rank 3, before each map's the largest rank of all workers (four bytes).
  const double rank3 = payload(model, shape, "rank-dad:rank=3,theta=0,direct=local", 4).bytes;
  CHECK(rank3 == 4 * 3 * widths + 4 * maps);
  if (model == "vit:patch=32") {
    CHECK(std::round(dad_bytes / 1e6) == 394);
    CHECK(std::round(dad_bytes / (4 * weights)) == 36);
  }
}

TEST_CASE("A shared activation of queries, keys and values is sent once") {
  const DataShape images{.features = 72, .classes = 4, .channels = 2, .height = 6, .width = 6};
  const auto sent = [&](const char* qkv) {
    return payload(std::string("vit:dim=8,heads=2,depth=3,patch=3,qkv=") + qkv, images,
                   "dad:direct=local")
        .bytes;
  };
  CHECK(sent("split") - sent("fused") == 3 * 2 * (2 * 5) * 8 * sizeof(Scalar));
}
