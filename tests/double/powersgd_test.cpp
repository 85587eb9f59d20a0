// PowerSGD's kernels against golden runs of two steps (themselves checked against PyTorch's
// powerSGD_hook) in both orientations.
#include "algorithms/powersgd.h"

#include <catch2/catch.hpp>

#include "algorithms/in_process.h"
#include "tests/golden.h"

using namespace gradwire;

namespace {

// Worker's mean gradient of a layer (from 1) at a step, as that orientation views it.
Matrix golden_gradient(const nlohmann::json& golden_case, int step, int worker,
                       const nlohmann::json& layer, bool out_in) {
  const Matrix g = golden_matrix(golden_case.at("workers_fwd_bwd")
                                     .at(static_cast<std::size_t>(step))
                                     .at(static_cast<std::size_t>(worker))
                                     .at("G")
                                     .at(layer.get<std::size_t>() - 1));
  return out_in ? Matrix(g.transpose()) : g;
}

struct Outcome {
  double gradient = 0;  // largest difference from the golden approximation
  double error = 0;     // and from the golden residuals
};

Outcome compare(const nlohmann::json& golden_case, const nlohmann::json& run) {
  const int workers = golden_case.at("workers").get<int>();
  const bool out_in = run.at("orientation") == "out_in";
  const bool feedback = run.at("error_feedback").get<bool>();
  std::vector<Outcome> outcomes(static_cast<std::size_t>(workers));
  run_in_process({.workers = workers}, [&](Communicator& comm) {
    Outcome& outcome = outcomes[static_cast<std::size_t>(comm.rank())];
    PowerSgdState state{golden_matrix(run.at("Q0"))};
    if (feedback) state.error.emplace();
    for (int t = 0; t < 2; ++t) {
      Matrix gradient = golden_gradient(golden_case, t, comm.rank(), run.at("layer"), out_in);
      if (!run.at("warm_start").get<bool>()) state.q = golden_matrix(run.at("Q0"));
      power_sgd(comm, std::vector{&gradient}, std::vector{&state}, ring_all_reduce, 0);
      const auto& expected = run.at("steps").at(static_cast<std::size_t>(t));
      outcome.gradient =
          std::max(outcome.gradient, max_difference(gradient, golden_matrix(expected.at("G_hat"))));
      if (feedback)
        outcome.error = std::max(
            outcome.error,
            max_difference(
                Eigen::Map<const Matrix>(state.error->values().data(), gradient.rows(),
                                         gradient.cols()),
                golden_matrix(
                    expected.at("error_after").at(static_cast<std::size_t>(comm.rank())))));
    }
  });
  Outcome worst;
  for (const Outcome& o : outcomes) {
    worst.gradient = std::max(worst.gradient, o.gradient);
    worst.error = std::max(worst.error, o.error);
  }
  return worst;
}

}  // namespace

TEST_CASE("PowerSGD gives the golden approximations and residuals over two steps") {
  for (const auto& golden_case : golden().at("cases")) {
    for (const auto& run : golden_case.at("powersgd").at("runs")) {
      CAPTURE(golden_case.at("name"), run.at("layer"), run.at("orientation"),
              run.at("error_feedback"), run.at("warm_start"));
      const Outcome outcome = compare(golden_case, run);
      CHECK(outcome.gradient < 1e-9);
      CHECK(outcome.error < 1e-9);
    }
  }
}

TEST_CASE("The authors' PowerSGD gives the golden approximation") {
  for (const auto& golden_case : golden().at("cases")) {
    const int workers = golden_case.at("workers").get<int>();
    for (const auto& layer : golden_case.at("powersgd_authors_baseline").at("layers")) {
      CAPTURE(golden_case.at("name"), layer.at("layer"));
      const auto& runs = golden_case.at("powersgd").at("runs");
      const auto run = std::find_if(runs.begin(), runs.end(), [&](const auto& r) {
        return r.at("layer") == layer.at("layer") && r.at("orientation") == "out_in";
      });
      REQUIRE(run != runs.end());
      Matrix first;
      run_in_process({.workers = workers}, [&](Communicator& comm) {
        Matrix gradient = golden_gradient(golden_case, 0, comm.rank(), layer.at("layer"), true);
        PowerSgdState state{golden_matrix(run->at("Q0")), {}};
        authors_power_sgd(comm, std::vector{&gradient}, std::vector{&state}, 0);
        if (comm.rank() == 0) first = gradient;
      });
      CHECK(max_difference(first, golden_matrix(layer.at("G_hat_out_in"))) < 1e-9);
    }
  }
}

TEST_CASE("The golden gate says which weights PowerSGD compresses") {
  for (const auto& golden_case : golden().at("cases")) {
    for (const auto& layer : golden_case.at("payload_elements")) {
      const auto i = layer.at("layer").get<std::size_t>();
      CHECK(worth_compressing(golden_case.at("sizes").at(i - 1).get<Index>(),
                              golden_case.at("sizes").at(i).get<Index>(), 2,
                              2) == layer.at("powersgd_should_compress_mcr2").get<bool>());
    }
  }
}
