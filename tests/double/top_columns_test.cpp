// The top-columns baseline against golden gradients.
#include <catch2/catch.hpp>

#include "tests/double/golden_traces.h"

using namespace gradwire;

TEST_CASE("Top-columns applies the golden gradients in the authors' scale and rescaled") {
  for (const auto& golden_case : golden().at("cases")) {
    const auto& expected = golden_case.at("top_k");
    const std::string k = "k=" + std::to_string(expected.at("k").get<int>());
    const double batch_over_k =
        golden_case.at("batch_per_worker").get<double>() / expected.at("k").get<double>();
    const auto authors = step_on_golden_traces(golden_case, "top-columns:" + k);
    const auto rescaled =
        step_on_golden_traces(golden_case, "top-columns:rescale=batch-over-k," + k);
    for (std::size_t w = 0; w < authors.size(); ++w)
      for (std::size_t i = 0; i < expected.at("layers").size(); ++i) {
        CAPTURE(golden_case.at("name"), w, i);
        const auto& layer = expected.at("layers").at(i);
        const Matrix bias = golden_matrix(layer.at("gb_authors_scaling"));
        CHECK(max_difference(authors[w].applied[2 * i],
                             golden_matrix(layer.at("G_authors_scaling"))) < 1e-9);
        CHECK(max_difference(authors[w].applied[2 * i + 1], bias) < 1e-9);
        CHECK(max_difference(rescaled[w].applied[2 * i],
                             golden_matrix(layer.at("G_rescaled_B_over_k"))) < 1e-9);
        CHECK(max_difference(rescaled[w].applied[2 * i + 1], batch_over_k * bias) < 1e-9);
      }
  }
}
