// edAD against golden gradients and recomputed deltas.
#include <catch2/catch.hpp>

#include "tests/double/golden_step.h"

using namespace gradwire;

TEST_CASE("edAD applies the golden gradient from recomputed deltas") {
  for (const auto& golden_case : golden().at("cases")) {
    CAPTURE(golden_case.at("name"));
    for (const StepRecord& worker : golden_step(golden_case, "edad"))
      CHECK(golden_difference(worker, golden_case.at("edad").at("G"),
                              golden_case.at("dsgd").at("gb_mean")) < 1e-12);
  }
}
