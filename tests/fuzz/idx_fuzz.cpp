#include "models/dataset.h"
#include "tests/fuzz/fuzz.h"

// The first byte says where the images end and the labels begin.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gradwire;
  if (size < 1) return 0;
  const std::string all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t images = std::min<std::size_t>(data[0], all.size());
  for (const std::string part : {"train", "t10k"}) {
    fuzz::write(part + "-images-idx3-ubyte", all.substr(0, images));
    fuzz::write(part + "-labels-idx1-ubyte", all.substr(images));
  }
  fuzz::expect_refusal_or_success([] { load_dataset("idx:" + fuzz::folder().string(), 1); });
  return 0;
}
