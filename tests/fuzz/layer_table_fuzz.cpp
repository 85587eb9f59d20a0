#include "models/layer_table.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gradwire;
  fuzz::write("x.json", std::string(reinterpret_cast<const char*>(data), size));
  fuzz::expect_refusal_or_success([] { load_layer_table((fuzz::folder() / "x.json").string()); });
  return 0;
}
