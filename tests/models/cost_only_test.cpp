// Cost-only models: shapes, spectrum and work.
#include "models/cost_only.h"

#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

// Two maps (24 to 40 and 40 to 30, 50 rows an example) and an embedding before them.
struct ToyTable : TemporaryFolder {
  explicit ToyTable(const std::string& times = "") {
    write("t.json", R"([{"name": "emb.weight", "shape": [500, 24]},
                        {"name": "a.weight", "shape": [40, 24])" +
                        times + R"(},
                        {"name": "a.bias", "shape": [40]},
                        {"name": "b.weight", "shape": [30, 40])" +
                        times + "}]");
  }
  std::unique_ptr<Model> model(std::uint64_t seed = 1, bool values = true) const {
    return make_cost_only_model(
        {.name = "table:" + path("t.json").string() + ",rows=50", .values = values}, seed);
  }
};

struct Pass {
  std::vector<int> order;           // maps
  std::map<int, Matrix> gradients;  // by parameter
  Work work;                        // deltas, as the sink hears of it
};

Pass run(Model& model, Index batch) {
  Pass pass;
  const Matrix scores = model.forward({.inputs = Matrix(batch, 0), .labels = {}});
  CHECK(scores.rows() == batch);
  model.backward(scores, {.linear =
                              [&](const LayerTrace& t, const Work& work) {
                                pass.order.push_back(t.map);
                                const auto& map =
                                    model.linear_maps()[static_cast<std::size_t>(t.map)];
                                CHECK(t.activation.rows() == 50 * batch);
                                pass.gradients[map.weight] = t.activation.transpose() * t.delta;
                                pass.work += work;
                              },
                          .direct = [&](int p, const Matrix& gradient,
                                        const Work&) { pass.gradients[p] = gradient; }});
  return pass;
}

TEST_CASE("A cost-only model gives every map's trace, last first, and no loss") {
  const ToyTable table;
  const auto model = table.model();
  CHECK_FALSE(model->has_loss());
  CHECK(model->parameter_count() == 500 * 24 + 40 * 24 + 40 + 30 * 40);
  const Pass pass = run(*model, 2);
  CHECK(pass.order == std::vector<int>{1, 0});
  CHECK(pass.gradients.at(1).rows() == 24);
  CHECK(pass.gradients.at(1).cols() == 40);
  CHECK(pass.gradients.at(3).cols() == 30);
  const Matrix& embedding = pass.gradients.at(0);  // 100 of 500 rows drawn with repetition
  const auto touched = (embedding.array() != 0).rowwise().any().count();
  CHECK(touched > 70);
  CHECK(touched <= 100);
}

TEST_CASE("A synthetic gradient's singular values fall as 1/k up to the 32nd") {
  const ToyTable table;
  const Pass pass = run(*table.model(), 100);
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(pass.gradients.at(3).cast<double>() / 100);
  const auto& sigma = svd.singularValues();
  CHECK(sigma[0] == Approx(1).epsilon(0.3));
  CHECK(sigma[0] / sigma[3] == Approx(4).epsilon(0.4));
  CHECK(sigma[0] / sigma[15] == Approx(16).epsilon(0.6));
  CHECK(sigma.head(8).squaredNorm() > 0.9 * sigma.squaredNorm());
}

TEST_CASE("Workers' synthetic gradients agree but for noise, and steps differ") {
  const ToyTable table;
  const auto one = table.model(1);
  const Matrix first = run(*one, 20).gradients.at(1);
  const Matrix other_worker = run(*table.model(1 + (std::uint64_t{1} << 32U)), 20).gradients.at(1);
  const Matrix next_step = run(*one, 20).gradients.at(1);
  CHECK(run(*table.model(1), 20).gradients.at(1) == first);
  for (const Matrix& other : {other_worker, next_step}) {
    const double noise = std::sqrt(2 * 24 / 1000.0);  // of two gradients, 24 directions, 1000 rows
    CHECK((other - first).norm() < 2 * noise * first.norm());
    CHECK((other - first).norm() > 0.5 * noise * first.norm());
  }
}

TEST_CASE("A cost-only backward pass costs what its products do") {
  const ToyTable table;
  const auto model = table.model();
  const double a = 2.0 * 50 * 24 * 40;
  const double b = 2.0 * 50 * 40 * 30;
  CHECK(model->forward_work(3).flops == Approx(3 * (a + b)));
  CHECK(model->backward_work(3).flops == Approx(3 * (a + 2 * b + 50 * 40)));  // no first delta
  CHECK(run(*model, 3).work.flops == Approx(3 * b));
  CHECK(model->trace_size(3) == 3 * 50 * (24 + 40 + 40 + 30));
}

TEST_CASE("Given times replace the flops of a plain pass") {
  const ToyTable table(R"(, "fwd_us": 5, "bwd_us": 8)");
  const auto model = table.model();
  const Work forward = model->forward_work(3);
  const Work backward = model->backward_work(3);
  CHECK(forward.seconds == Approx(10e-6));
  CHECK(forward.flops == 0);
  CHECK(backward.seconds == Approx(16e-6));
  CHECK(backward.flops == Approx(0).margin(1e-6));
}

TEST_CASE("A network of 6.7 billion parameters takes no memory without values") {
  const auto model = make_cost_only_model({.name = "table:llama-7b", .values = false}, 1);
  CHECK(model->parameter_count() == 6738415616);
  CHECK(model->trace_size(1) > 1e9);
}

TEST_CASE("A real network needs its values") {
  CHECK_THROWS_WITH(
      make_model({.name = "mlp:4-2", .values = false}, {.features = 4, .classes = 2}, 1),
      Catch::Contains("math: none needs a cost-only model"));
}

}  // namespace
}  // namespace gradwire
