// Sparse exchanges at their edges as real processes: lists of unequal, of no and of full length.
#include <catch2/catch.hpp>

#include "real/launch.h"
#include "tests/algorithms/training_runs.h"

using namespace gradwire;

TEST_CASE("Empty, ragged and full selections give the rehearsal's numbers over TCP") {
  for (const std::string spec :
       {"threshold:threshold=1e30", "threshold:threshold=1e30,exchange=union",
        "threshold:threshold=0.05,index=delta", "threshold:threshold=0.05,exchange=union",
        "gaussian-k:density=0.05,index=smallest", "top-k:density=1,scope=tensor,index=bitmap",
        "gtop-k:density=1e-9", "micro:density=1e-9", "deft:density=0.9",
        "crossover:segments=3,group=2"}) {
    CAPTURE(spec);
    Scenario scenario = small_scenario(spec, 3, "mlp:40-30-5");
    scenario.gradient_error = false;
    Result expected;
    describe(rehearse(scenario, small_dataset(scenario)), expected);
    const Result real = run_real(scenario, small_dataset(scenario), {}).value();
    CHECK(real.parameter_hash == expected.parameter_hash);
    CHECK(real.loss == expected.loss);
    CHECK(real.replicas_equal == expected.replicas_equal);
  }
}

TEST_CASE("All-zero gradients give the rehearsal's numbers over TCP") {
  for (const std::string spec : {"top-k", "gtop-k", "dgc", "threshold:threshold=0,exchange=union",
                                 "gaussian-k", "lags", "micro", "exdyna", "deft", "powersgd"}) {
    CAPTURE(spec);
    Scenario scenario = small_scenario(spec, 3, "mlp:40-30-5");
    scenario.gradient_error = false;
    const Dataset dataset = single_class(small_dataset(scenario));
    scenario.model.name = "mlp:40-30-1";
    Result expected;
    describe(rehearse(scenario, dataset), expected);
    const Result real = run_real(scenario, dataset, {}).value();
    CHECK(expected.loss == std::vector<double>(3, 0));
    CHECK(real.loss == expected.loss);
    CHECK(real.parameter_hash == expected.parameter_hash);
    CHECK(real.replicas_equal);
  }
}
