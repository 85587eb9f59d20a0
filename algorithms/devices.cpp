// NVIDIA's measured ResNet-50 v1.5 training throughputs (DeepLearningExamples README: one V100 of a
// DGX-1 16 GB, one A100 of a DGX A100 80 GB, PyTorch 21.03) times 3 x 8.178 Gflop per image
// (backward = 2 forward).  Others are peaks times the same share: 0.55 in fp32, 0.2 on tensor
// cores.
#include "algorithms/devices.h"

#include <stdexcept>

namespace gradwire {

namespace {

constexpr double kFlopPerImage = 3 * 8.178368512e9;

}  // namespace

const std::vector<Device>& devices() {
  static const std::vector<Device> all{
      {"cpu-core", 50e9, "one current CPU core, fp32 (measured here: 54 Gflop/s in a GEMM)"},
      {"v100-fp32", 367 * kFlopPerImage, "V100 16 GB, fp32: 367 images/s of ResNet-50 (measured)"},
      {"v100-amp", 1200 * kFlopPerImage, "V100 16 GB, fp16: 1200 images/s of ResNet-50 (measured)"},
      {"a100-tf32", 938 * kFlopPerImage, "A100 80 GB, TF32: 938 images/s of ResNet-50 (measured)"},
      {"a100-amp", 2470 * kFlopPerImage, "A100 80 GB, fp16: 2470 images/s of ResNet-50 (measured)"},
      {"t4-fp32", 0.55 * 8.1e12, "T4, fp32: 0.55 of its peak of 8.1 Tflop/s (a guess)"},
      {"h100-bf16", 0.2 * 989e12, "H100 SXM, bf16: 0.2 of its peak of 989 Tflop/s (a guess)"}};
  return all;
}

const Device& find_device(const std::string& name) {
  std::string known;
  for (const Device& device : devices()) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
  }
  throw std::invalid_argument("device: \"" + name + "\" is not known; allowed: " + known +
                              ", or give --device-rate");
}

}  // namespace gradwire
