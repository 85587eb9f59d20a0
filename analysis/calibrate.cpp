#include "analysis/calibrate.h"

#ifdef GRADWIRE_WITH_GLOO

#include <algorithm>
#include <cmath>

#include "algorithms/report.h"

namespace gradwire {

namespace {

using nlohmann::ordered_json;

// Payload, frame and acknowledgement of TCP with time stamps over Ethernet, as tbf counts them.
constexpr double kPayload_bytes = 1448, kFrame_bytes = 1514, kAcknowledgement_bytes = 66;
constexpr double kShort_bytes = 4096;  // sizes that are all latency

double median(std::vector<double> values) { return summarize(std::move(values)).median; }

ByteCost byte_cost(const Stream& stream, double bit_per_s) {
  return {.bit_per_s = bit_per_s,
          .send_s = stream.send_cpu_s / stream.bytes,
          .receive_s = stream.receive_cpu_s / stream.bytes};
}

// What bytes cost at each rate is for streams to say.  Of what short messages cost, both ends do a
// part while the message is on its way or has arrived: their one-way time says how much is not.
void fit_messages(const CalibrationSamples& samples, Calibration& c) {
  std::vector<double> bytes, cpu_s, one_way_s;
  for (const PingPong& p : samples.messages) {
    bytes.push_back(p.bytes);
    cpu_s.push_back(p.cpu_s);
  }
  const Line line = fit_line(bytes, cpu_s);
  for (const PingPong& p : samples.messages)
    if (p.bytes <= kShort_bytes) one_way_s.push_back(median(p.one_way_s) - line.slope * p.bytes);
  const double in_the_way_s = std::clamp(median(one_way_s), 0.0, line.intercept);
  c.latency_s = std::max(0.0, median(one_way_s) - line.intercept);
  c.background_s = (line.intercept - in_the_way_s) / 2;
  const Stream& shortest = samples.streams.front();
  const double both_s = shortest.send_cpu_s + shortest.receive_cpu_s;
  c.send_s = in_the_way_s * (both_s > 0 ? shortest.send_cpu_s / both_s : 0.5);
  c.receive_s = in_the_way_s - c.send_s;
  for (const ShapedSamples& s : samples.shaped)
    c.byte_costs.push_back(byte_cost(s.one_way, s.bit_per_s));
  const Stream& longest = samples.streams.back();
  c.byte_costs.push_back(byte_cost(longest, longest.goodput_bit_per_s));
  std::sort(c.byte_costs.begin(), c.byte_costs.end(),
            [](const ByteCost& a, const ByteCost& b) { return a.bit_per_s < b.bit_per_s; });
}

void fit_shares(const CalibrationSamples& samples, Calibration& c) {
  c.payload_share = kPayload_bytes / kFrame_bytes;
  c.acknowledgement_share = kAcknowledgement_bytes / 2 / kPayload_bytes;
  std::vector<double> shares, acknowledgements;
  for (const ShapedSamples& s : samples.shaped) {
    shares.push_back(s.one_way.goodput_bit_per_s / s.bit_per_s);
    acknowledgements.push_back(s.bit_per_s / s.both_ways.goodput_bit_per_s - 1 / shares.back());
  }
  if (shares.empty()) return;
  c.payload_share = std::min(1.0, median(shares));
  c.acknowledgement_share = std::max(0.0, median(acknowledgements));
}

// The times of the model for what was measured: an idle machine with at least two cores.
double predicted_one_way_s(const Calibration& c, double bytes) {
  const ByteCost& cost = c.byte_costs.back();
  return c.latency_s + c.send_s + c.receive_s + bytes * std::max(cost.send_s, cost.receive_s);
}

ordered_json residuals(const std::vector<double>& predicted, const std::vector<double>& measured) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    errors.push_back(std::abs(predicted[i] / measured[i] - 1));
  const Summary summary = summarize(errors);
  return {{"points", errors.size()},
          {"median_relative_error", summary.median},
          {"max_relative_error", summary.max}};
}

ordered_json fits_json(const CalibrationSamples& samples, const Calibration& c) {
  std::vector<double> cpu_s, cpu_fit_s, one_way_s, one_way_fit_s;
  for (const PingPong& p : samples.messages) {
    cpu_s.push_back(p.cpu_s);
    cpu_fit_s.push_back(c.send_s + c.receive_s + 2 * c.background_s +
                        p.bytes * (c.byte_costs.back().send_s + c.byte_costs.back().receive_s));
    one_way_s.push_back(median(p.one_way_s));
    one_way_fit_s.push_back(predicted_one_way_s(c, p.bytes));
  }
  std::vector<double> goodput, goodput_fit;
  for (const ShapedSamples& s : samples.shaped) {
    goodput.insert(goodput.end(), {s.one_way.goodput_bit_per_s, s.both_ways.goodput_bit_per_s});
    goodput_fit.insert(goodput_fit.end(),
                       {s.bit_per_s * c.payload_share,
                        s.bit_per_s / (1 / c.payload_share + c.acknowledgement_share)});
  }
  ordered_json fits{{"message_cpu", residuals(cpu_fit_s, cpu_s)},
                    {"message_one_way", residuals(one_way_fit_s, one_way_s)}};
  for (const auto& [name, rates] : {std::pair("products", &samples.compute.product_flop_per_s),
                                    std::pair("memory", &samples.compute.memory_byte_per_s)})
    fits[name] = residuals(std::vector<double>(rates->size(), median(*rates)), *rates);
  if (!goodput.empty()) fits["stream_goodput"] = residuals(goodput_fit, goodput);
  return fits;
}

ordered_json to_json(const Stream& s) {
  return {{"message_bytes", s.bytes},
          {"goodput_bit_per_s", s.goodput_bit_per_s},
          {"send_cpu_s", s.send_cpu_s},
          {"receive_cpu_s", s.receive_cpu_s}};
}

ordered_json samples_json(const CalibrationSamples& samples) {
  ordered_json all = ordered_json::object();
  for (const PingPong& p : samples.messages)
    all["messages"].push_back(
        {{"message_bytes", p.bytes}, {"cpu_s", p.cpu_s}, {"one_way_s", p.one_way_s}});
  for (const Stream& s : samples.streams) all["streams"].push_back(to_json(s));
  for (const ShapedSamples& s : samples.shaped)
    all["shaped_streams"].push_back({{"port_bit_per_s", s.bit_per_s},
                                     {"one_way", to_json(s.one_way)},
                                     {"both_ways", to_json(s.both_ways)},
                                     {"fan_out", to_json(s.fan_out)},
                                     {"fan_in", to_json(s.fan_in)}});
  if (const auto& d = samples.delayed)
    all["delayed"] = {{"delay_s", d->one_way_s},
                      {"port_bit_per_s", d->bit_per_s},
                      {"arrival_posted_early_s", d->arrival_posted_early_s},
                      {"arrival_posted_together_s", d->arrival_posted_together_s},
                      {"short_message_one_way_s", d->short_message.one_way_s},
                      {"sent_bytes", d->sent_bytes},
                      {"send_wait_s", d->send_wait_s}};
  all["product_flop_per_s"] = samples.compute.product_flop_per_s;
  all["memory_byte_per_s"] = samples.compute.memory_byte_per_s;
  all["iteration_flop_per_s"] = samples.compute.iteration_flop_per_s;
  return all;
}

}  // namespace

Line fit_line(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> slopes, intercepts;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (x[i] != x[j]) slopes.push_back((y[i] - y[j]) / (x[i] - x[j]));
  Line line;
  line.slope = std::max(0.0, median(slopes));
  for (std::size_t i = 0; i < x.size(); ++i) intercepts.push_back(y[i] - line.slope * x[i]);
  line.intercept = std::max(0.0, median(intercepts));
  return line;
}

Calibration fit(const CalibrationSamples& samples) {
  Calibration c;
  c.cores = samples.cores;
  c.one_machine = samples.one_machine;
  c.pinned = samples.pinned;
  fit_messages(samples, c);
  fit_shares(samples, c);
  c.rendezvous = true;  // as Gloo's source says, unless seen otherwise
  c.send_buffer_bytes = 4 << 20;
  if (const auto& d = samples.delayed) {
    c.rendezvous = median(d->arrival_posted_together_s) > 1.5 * median(d->arrival_posted_early_s);
    c.send_buffer_bytes =
        std::max(0.0, d->sent_bytes - d->send_wait_s * d->bit_per_s / 8 * c.payload_share);
    c.switch_s = std::max(0.0, median(d->short_message.one_way_s) - d->one_way_s - c.latency_s -
                                   c.send_s - c.receive_s);
  }
  c.token_buckets = samples.token_buckets;
  c.flop_per_s = median(samples.compute.product_flop_per_s);
  c.memory_byte_per_s = median(samples.compute.memory_byte_per_s);
  return c;
}

ordered_json calibration_json(const CalibrationSamples& samples) {
  const Calibration c = fit(samples);
  return {{"format", kCalibrationFormat},
          {"version", kCalibrationVersion},
          {"network", samples.network},
          {"parameters", to_json(c)},
          {"units",
           "seconds, bytes, bit/s, flop/s as the keys end; shares and costs per byte of "
           "payload; processor time of one core"},
          {"fits", fits_json(samples, c)},
          {"samples", samples_json(samples)}};
}

}  // namespace gradwire

#endif
