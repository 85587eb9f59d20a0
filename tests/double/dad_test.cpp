// dAD against golden gradients of the stacked batch.
#include <catch2/catch.hpp>

#include "tests/double/golden_step.h"

using namespace gradwire;

TEST_CASE("dAD applies the golden gradient of the stacked rows") {
  const std::string exchange = GENERATE(as<std::string>{}, "allgather", "star", "star-reduced");
  for (const auto& golden_case : golden().at("cases")) {
    CAPTURE(golden_case.at("name"), exchange);
    for (const StepRecord& worker : golden_step(golden_case, "dad:exchange=" + exchange))
      CHECK(golden_difference(worker, golden_case.at("dad").at("G"),
                              golden_case.at("dsgd").at("gb_mean")) < 1e-12);
  }
}
