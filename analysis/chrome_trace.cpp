#include "analysis/chrome_trace.h"

#include <array>
#include <nlohmann/json.hpp>

namespace gradwire {

namespace {

using nlohmann::ordered_json;

enum Lane : std::size_t { kCompute, kCompression, kCommunication, kOverlapped };
constexpr std::array<const char*, 4> kLanes{"compute", "compression", "communication",
                                            "overlapped communication"};

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
    case Span::Kind::kFinish:
      break;
  }
  return "wait for the second lane";
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
      ordered_json event{{"name", name_of(span)},
                         {"cat", kLanes[lane_of(span)]},
                         {"ph", "X"},
                         {"ts", span.start_s * 1e6},
                         {"dur", (span.end_s - span.start_s) * 1e6},
                         {"pid", worker},
                         {"tid", static_cast<std::size_t>(lane_of(span))}};
      if (span.peer >= 0) event["args"] = {{"bytes", span.bytes}};
      add(event);
    }
  }
  return text + "\n]}\n";
}

}  // namespace gradwire
