// CIFAR-10's binary version (cs.toronto.edu/~kriz/cifar.html): records of one label byte and 3072
// pixel bytes, the red, green and blue planes of 32x32.
#include <array>

#include "models/dataset_formats.h"
#include "models/gzip_reader.h"

namespace gradwire {

namespace {

constexpr std::size_t kPixels = std::size_t{3} * 32 * 32;
constexpr std::size_t kMaxRecords = 1'000'000;  // the set has 10000 per file
constexpr int kClasses = 10;

struct Records {
  std::vector<unsigned char> pixels;
  std::vector<int> labels;
};

void read_records(const std::string& path, Records& records) {
  GzipReader reader(path);
  std::array<unsigned char, 1 + kPixels> record{};
  std::size_t read = 0;
  for (;; ++read) {
    const std::size_t got = reader.read(record);
    const std::string place = " at record " + std::to_string(read);
    if (got == 0) break;
    if (got < record.size())
      reader.fail("is truncated: " + std::to_string(got) + " of 3073 bytes" + place);
    if (record[0] >= kClasses)
      reader.fail("has label " + std::to_string(record[0]) + place + "; allowed: 0 to 9");
    if (read >= kMaxRecords) reader.fail("has more than 1000000 records");
    records.labels.push_back(record[0]);
    records.pixels.insert(records.pixels.end(), record.begin() + 1, record.end());
  }
  if (read == 0) reader.fail("is empty");
}

Examples to_examples(const Records& records) {
  Examples examples{.inputs = Matrix(static_cast<Index>(records.labels.size()), Index{kPixels}),
                    .labels = records.labels};
  for (std::size_t i = 0; i < records.pixels.size(); ++i)
    examples.inputs.data()[i] = records.pixels[i];
  return examples;
}

}  // namespace

Dataset load_cifar10(const std::string& name, const std::string& folder) {
  check_folder(folder);
  Records train, test;
  for (const char* file : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin"})
    read_records(find_plain_or_gz(folder, file), train);
  read_records(find_plain_or_gz(folder, "test_batch.bin"), test);
  return {.name = name,
          .synthetic = false,
          .shape = {.features = Index{kPixels},
                    .classes = kClasses,
                    .channels = 3,
                    .height = 32,
                    .width = 32},
          .train = to_examples(train),
          .test = to_examples(test)};
}

}  // namespace gradwire
