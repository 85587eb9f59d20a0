#include "analysis/chrome_trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

namespace gradwire {

namespace {

using nlohmann::ordered_json;

enum Lane : std::size_t { kCompute, kCompression, kCommunication, kOverlapped, kBatches };
constexpr std::array<const char*, 5> kLanes{"compute", "compression", "communication",
                                            "overlapped communication", "batches"};

Lane lane_of(const Span& span) {
  if (span.lane != 0) return kOverlapped;
  if (span.kind != Span::Kind::kCharge) return kCommunication;
  if (span.phase == Phase::kCompression) return kCompression;
  return span.phase == Phase::kReduction ? kCommunication : kCompute;
}

std::string name_of(const Span& span) {
  switch (span.kind) {
    case Span::Kind::kCharge:
      return std::string(phase_name(span.phase));
    case Span::Kind::kReceive:
      return "receive from " + std::to_string(span.peer);
    case Span::Kind::kSend:
      return "send to " + std::to_string(span.peer);
    case Span::Kind::kCollective:
      return "Gloo's collective";
    case Span::Kind::kFinish:
      break;
  }
  return "wait for the second lane";
}

ordered_json event_of(const std::string& name, Lane lane, double start_s, double end_s,
                      std::size_t worker) {
  return {{"name", name},
          {"cat", kLanes[lane]},
          {"ph", "X"},
          {"ts", start_s * 1e6},
          {"dur", (end_s - start_s) * 1e6},
          {"pid", worker},
          {"tid", static_cast<std::size_t>(lane)}};
}

// From the first to the last thing that the worker's main lane did in each batch.
std::map<std::int64_t, std::pair<double, double>> batches(const std::vector<Span>& spans) {
  std::map<std::int64_t, std::pair<double, double>> found;
  for (const Span& span : spans) {
    if (span.lane != 0) continue;
    auto& [start_s, end_s] = found.try_emplace(span.step, span.start_s, span.end_s).first->second;
    start_s = std::min(start_s, span.start_s);
    end_s = std::max(end_s, span.end_s);
  }
  return found;
}

std::string batch_name(std::int64_t step) {
  return step == 0 ? "set-up" : "batch " + std::to_string(step);
}

ordered_json label(const char* what, std::size_t worker, std::size_t lane,
                   const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", worker}, {"tid", lane}, {"args", {{"name", name}}}};
}

}  // namespace

std::string chrome_trace(const Timeline& timeline) {
  std::string text = R"({"displayTimeUnit":"ms","traceEvents":[)";
  const char* separator = "\n";
  const auto add = [&](const ordered_json& event) {
    text += separator + event.dump();
    separator = ",\n";
  };
  for (std::size_t worker = 0; worker < timeline.size(); ++worker) {
    add(label("process_name", worker, 0, "worker " + std::to_string(worker)));
    for (std::size_t lane = 0; lane < kLanes.size(); ++lane)
      add(label("thread_name", worker, lane, kLanes[lane]));
    for (const Span& span : timeline[worker]) {
      if (span.end_s <= span.start_s) continue;
      ordered_json event = event_of(name_of(span), lane_of(span), span.start_s, span.end_s, worker);
      event["args"] = {{"batch", span.step}};
      if (span.bytes > 0 || span.peer >= 0) event["args"]["bytes"] = span.bytes;
      add(event);
    }
    for (const auto& [step, times] : batches(timeline[worker]))
      if (times.second > times.first)
        add(event_of(batch_name(step), kBatches, times.first, times.second, worker));
  }
  return text + "\n]}\n";
}

}  // namespace gradwire
