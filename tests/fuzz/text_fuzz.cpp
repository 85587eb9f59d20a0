#include "models/dataset.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gradwire;
  fuzz::write("x.tsv", std::string(reinterpret_cast<const char*>(data), size));
  fuzz::expect_refusal_or_success(
      [] { load_dataset("text:" + (fuzz::folder() / "x.tsv").string(), 1); });
  return 0;
}
