#include "models/dataset.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gradwire;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"})
    fuzz::write(name, bytes);
  fuzz::expect_refusal_or_success([] { load_dataset("cifar10:" + fuzz::folder().string(), 1); });
  return 0;
}
