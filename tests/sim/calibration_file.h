// A calibration written to a temporary file for the length of a test.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "sim/calibration.h"

namespace gradwire {

class CalibrationFile {
 public:
  explicit CalibrationFile(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "gradwire_XXXXXX.json").string();
    const int fd = mkstemps(name.data(), 5);
    if (fd < 0) throw std::runtime_error("no temporary file");
    close(fd);
    path_ = name;
    std::ofstream(path_) << text;
  }
  explicit CalibrationFile(const Calibration& calibration)
      : CalibrationFile(nlohmann::ordered_json{{"format", kCalibrationFormat},
                                               {"version", kCalibrationVersion},
                                               {"parameters", to_json(calibration)}}
                            .dump()) {}
  ~CalibrationFile() { std::remove(path_.c_str()); }
  CalibrationFile(const CalibrationFile&) = delete;
  CalibrationFile& operator=(const CalibrationFile&) = delete;

  const std::string& path() const { return path_; }
  std::string network_model() const { return "calibrated:" + path_; }

 private:
  std::string path_;
};

/// A transport without costs of its own.
inline Calibration free_calibration() {
  Calibration c;
  c.byte_costs = {{.bit_per_s = 1e9, .send_s = 0, .receive_s = 0}};
  return c;
}

}  // namespace gradwire
