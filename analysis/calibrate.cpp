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

// Of a message without bytes.
double one_way_s(const LaneSamples& lane) {
  std::vector<double> bytes, times_s, short_s;
  for (const PingPong& p : lane.messages) {
    bytes.push_back(p.bytes);
    times_s.push_back(median(p.one_way_s));
  }
  const double slope = fit_line(bytes, times_s).slope;
  for (const PingPong& p : lane.messages)
    if (p.bytes <= kShort_bytes) short_s.push_back(median(p.one_way_s) - slope * p.bytes);
  return median(short_s);
}

// Of both ends together, one among others.
double message_cpu_s(const LaneSamples& lane) {
  constexpr int kMore = LaneSamples::kLongBurst - LaneSamples::kShortBurst;
  return std::max(0.0, median(lane.long_burst_cpu_s) - median(lane.short_burst_cpu_s)) / kMore;
}

// Of what a short message costs, both ends do a part while it is on its way or has arrived: its
// one-way time says how much is not.
MessageCost message_cost(const LaneSamples& lane, double sender_share) {
  const double all_s = message_cpu_s(lane);
  const double in_the_way_s = std::min(one_way_s(lane), all_s);
  return {
      .send_s = in_the_way_s * sender_share,
      .receive_s = in_the_way_s * (1 - sender_share),
      .background_s = (all_s - in_the_way_s) / 2,
      .burst_s = std::max(0.0, median(lane.short_burst_cpu_s) - LaneSamples::kShortBurst * all_s)};
}

// What bytes cost at each rate is for streams to say.
void fit_messages(const CalibrationSamples& samples, Calibration& c) {
  const Stream& shortest = samples.streams.front();
  const double both_s = shortest.send_cpu_s + shortest.receive_cpu_s;
  const double sender_share = both_s > 0 ? shortest.send_cpu_s / both_s : 0.5;
  std::transform(samples.lanes.begin(), samples.lanes.end(), c.message_costs.begin(),
                 [&](const LaneSamples& lane) { return message_cost(lane, sender_share); });
  const LaneSamples& main = samples.lanes.front();
  c.latency_s = std::max(0.0, one_way_s(main) - message_cpu_s(main));
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
  const MessageCost& message = c.message_costs.front();
  return c.latency_s + message.send_s + message.receive_s +
         bytes * std::max(cost.send_s, cost.receive_s);
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
  for (std::size_t lane = 0; lane < samples.lanes.size(); ++lane) {
    const MessageCost& cost = c.message_costs[lane];
    const double message_s = cost.send_s + cost.receive_s + 2 * cost.background_s;
    const auto add = [&](const std::vector<double>& each_s, int messages) {
      cpu_s.insert(cpu_s.end(), each_s.begin(), each_s.end());
      cpu_fit_s.resize(cpu_s.size(), cost.burst_s + messages * message_s);
    };
    add(samples.lanes[lane].short_burst_cpu_s, LaneSamples::kShortBurst);
    add(samples.lanes[lane].long_burst_cpu_s, LaneSamples::kLongBurst);
  }
  for (const PingPong& p : samples.lanes.front().messages) {
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
  for (const LaneSamples& lane : samples.lanes) {
    ordered_json messages = ordered_json::array();
    for (const PingPong& p : lane.messages)
      messages.push_back(
          {{"message_bytes", p.bytes}, {"cpu_s", p.cpu_s}, {"one_way_s", p.one_way_s}});
    all["lanes"].push_back({{"messages", std::move(messages)},
                            {"short_burst_messages", LaneSamples::kShortBurst},
                            {"short_burst_cpu_s", lane.short_burst_cpu_s},
                            {"long_burst_messages", LaneSamples::kLongBurst},
                            {"long_burst_cpu_s", lane.long_burst_cpu_s}});
  }
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
                      {"send_wait_s", d->send_wait_s},
                      {"queue_s", d->queue_s}};
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
    c.queue_bytes = std::max(0.0, d->queue_s * d->bit_per_s / 8);
    c.switch_s = std::max(0.0, median(d->short_message.one_way_s) - d->one_way_s - c.latency_s -
                                   c.message_costs[0].send_s - c.message_costs[0].receive_s);
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
