#include "models/dataset.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gradwire;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::write("X_TRAIN.ts", text);
  fuzz::write("X_TEST.ts", text);
  fuzz::expect_refusal_or_success([] { load_dataset("ts:" + (fuzz::folder() / "X").string(), 1); });
  return 0;
}
