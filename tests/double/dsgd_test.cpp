// dSGD against golden mean gradients.
#include <catch2/catch.hpp>

#include "tests/double/golden_step.h"

using namespace gradwire;

TEST_CASE("dSGD applies the golden mean gradient") {
  const std::string algorithm =
      GENERATE(as<std::string>{}, "dsgd", "dsgd:exchange=halving-doubling", "dsgd:exchange=tree",
               "dsgd:exchange=star", "dsgd:form=authors");
  for (const auto& golden_case : golden().at("cases")) {
    CAPTURE(golden_case.at("name"), algorithm);
    const auto& expected = golden_case.at("dsgd");
    for (const StepRecord& worker : golden_step(golden_case, algorithm))
      CHECK(golden_difference(worker, expected.at("G_mean"), expected.at("gb_mean")) < 1e-12);
  }
}

TEST_CASE("The workers' losses have the golden mean") {
  for (const auto& golden_case : golden().at("cases")) {
    double sum = 0;
    const std::vector<StepRecord> workers = golden_step(golden_case, "dsgd");
    for (const StepRecord& worker : workers) sum += worker.loss_sum;
    const double rows =
        golden_case.at("batch_per_worker").get<double>() * static_cast<double>(workers.size());
    CHECK(sum / rows == Approx(golden_case.at("dsgd").at("loss_mean").get<double>()).margin(1e-12));
  }
}
