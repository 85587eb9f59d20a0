// A calibration written to a temporary file for the length of a test.
#pragma once

#include <string>

#include "sim/calibration.h"
#include "tests/scratch.h"

namespace gradwire {

class CalibrationFile {
 public:
  explicit CalibrationFile(const std::string& text) : file_("calibration.json", text) {}
  explicit CalibrationFile(const Calibration& calibration)
      : CalibrationFile(nlohmann::ordered_json{{"format", kCalibrationFormat},
                                               {"version", kCalibrationVersion},
                                               {"parameters", to_json(calibration)}}
                            .dump()) {}

  const std::string& path() const { return file_.path(); }
  std::string network_model() const { return "calibrated:" + path(); }

 private:
  ScratchFile file_;
};

/// A transport without costs of its own.
inline Calibration free_calibration() {
  Calibration c;
  c.byte_costs = {{.bit_per_s = 1e9, .send_s = 0, .receive_s = 0}};
  return c;
}

}  // namespace gradwire
