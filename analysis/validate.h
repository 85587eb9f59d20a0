// Predicted against measured: the cases of a validation, their errors, and what they say together.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/report.h"
#include "algorithms/scenario.h"

namespace gradwire {

/// Times of one scenario's batches, all rounds together.
struct ValidationCase {
  Scenario scenario;
  std::vector<double> measured_s;
  std::vector<double> predicted_s;
};

/// What identifies a case: model, batch size, workers, bandwidth, delay, algorithm, and the data
/// set and seed where they are not the usual ones.
std::string case_key(const Scenario& scenario);
/// The same without the algorithm: cases whose order matters.
std::string cell_key(const Scenario& scenario);

struct Interval {
  double low = 0, high = 0;
};
/// Of the batches' times, `uncertainty` (relative) wider at both ends.
Interval prediction_interval(const Summary& batch_time_s, double uncertainty);

struct Verdict {
  double measured_s = 0;  ///< median
  double predicted_s = 0;
  double least_s = 0, most_s = 0;  ///< the prediction's interval
  double relative_error = 0;       ///< of the prediction; positive: too long
  bool outside = false;            ///< the measured median, of the interval
};
Verdict judge(const ValidationCase& one, double uncertainty);

/// Two algorithms of a cell that differ by more than 5 % as measured, predicted the other way
/// round.
struct WrongOrder {
  std::string cell, faster, slower;
};

struct ValidationSummary {
  std::size_t cases = 0;
  double median_error = 0, p90_error = 0, max_error = 0;  ///< absolute, relative
  std::size_t cells = 0;                                  ///< with something to put in order
  std::vector<WrongOrder> wrong_orders;
  std::vector<std::string> outside;  ///< keys of cases outside their interval
};
ValidationSummary summarize(const std::vector<ValidationCase>& cases, double uncertainty);

nlohmann::ordered_json validation_json(const std::vector<ValidationCase>& cases,
                                       double uncertainty);
std::string validation_table(const std::vector<ValidationCase>& cases, double uncertainty);
/// Predicted over measured on logarithmic axes, one colour per algorithm, a band of 10 %.
std::string validation_svg(const std::vector<ValidationCase>& cases, double uncertainty);

/// The matrix of algorithms, workers, rates, delays and models that the project validates with.
std::vector<Scenario> validation_matrix();

/// One line per run of a case, so that an interrupted validation goes on where it was: the
/// calibration's hash first.  A line that an interruption cut short is left out.
struct ValidationRun {
  std::string key;
  int round = 0;
  std::vector<double> measured_s;
  std::vector<double> predicted_s;
};
std::string to_line(const ValidationRun& run);
/// Throws std::invalid_argument if the text is of another calibration or no results at all.
std::vector<ValidationRun> parse_lines(const std::string& text, const std::string& header);
std::string results_header(const std::string& calibration_text);

}  // namespace gradwire
