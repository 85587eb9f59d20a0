// A star of full-duplex ports in the fluid model, event by event and without SimGrid: what the
// simulation of any collective is checked against where sends contend and no closed form holds.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <stdexcept>
#include <vector>

#include "algorithms/communicator.h"

namespace gradwire {

/// Flows start when they are sent and share the ports of both ends (each `port_byte_per_s`, up and
/// down apart) max-min fairly; a sender's wait ends with its flow, a receiver's `latency_s` later.
class FluidStar {
 public:
  FluidStar(const std::vector<WorkerRecording>& workers, double port_byte_per_s, double latency_s)
      : port_byte_per_s_(port_byte_per_s), latency_s_(latency_s) {
    for (const WorkerRecording& worker : workers)
      workers_.push_back({.events = worker.lanes[0].events});
  }

  /// When each worker ended.
  std::vector<double> end_times_s() {
    while (true) {
      for (std::size_t w = 0; w < workers_.size(); ++w) run(w);
      const double next_s = std::min(next_end_s(), next_arrival_s());
      if (next_s == kNever) break;
      advance_to(next_s);
    }
    std::vector<double> ends_s;
    for (const Worker& worker : workers_) {
      if (worker.next < worker.events.size()) throw std::logic_error("the fluid star deadlocks");
      ends_s.push_back(worker.end_s);
    }
    return ends_s;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Flow {
    std::size_t from, to;
    double bytes_left;
    double rate = 0;
    double end_s = kNever;
  };
  struct Request {
    bool is_send;
    std::size_t flow_or_ordinal;  // a send's flow; a receive's place among those of its channel
    std::size_t peer;
  };
  struct Worker {
    EventLog events = {};
    std::size_t next = 0;
    double end_s = 0;
    std::vector<Request> requests = {};  // by id, given out as Communicator does
    std::vector<std::size_t> free_ids = {};
    std::map<std::size_t, std::size_t> receives_from = {};
  };

  // Goes on with a worker until it waits for something of the future.
  void run(std::size_t w) {
    Worker& me = workers_[w];
    for (; me.next < me.events.size(); ++me.next) {
      const Event& event = me.events[me.next];
      const auto peer = static_cast<std::size_t>(event.peer);
      if (event.kind == Event::Kind::kSend) {
        channels_[{w, peer}].push_back(flows_.size());
        open(me) = {true, flows_.size(), peer};
        flows_.push_back({w, peer, static_cast<double>(event.value)});
        if (event.value == 0) flows_.back().end_s = now_s_;
        shared_ = false;
      } else if (event.kind == Event::Kind::kReceive) {
        open(me) = {false, me.receives_from[peer]++, peer};
      } else if (event.kind == Event::Kind::kWait) {
        if (done_s(w, me.requests[event.value]) > now_s_) return;
        me.free_ids.push_back(event.value);
      }
      me.end_s = now_s_;
    }
  }

  Request& open(Worker& me) {
    if (me.free_ids.empty()) {
      me.free_ids.push_back(me.requests.size());
      me.requests.emplace_back();
    }
    const std::size_t id = me.free_ids.back();
    me.free_ids.pop_back();
    return me.requests[id];
  }

  double done_s(std::size_t w, const Request& request) const {
    if (request.is_send) return flows_[request.flow_or_ordinal].end_s;
    const auto channel = channels_.find({request.peer, w});
    if (channel == channels_.end() || channel->second.size() <= request.flow_or_ordinal)
      return kNever;
    return flows_[channel->second[request.flow_or_ordinal]].end_s + latency_s_;
  }

  double next_arrival_s() const {
    double next_s = kNever;
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if (const Worker& me = workers_[w]; me.next < me.events.size())
        next_s = std::min(next_s, done_s(w, me.requests[me.events[me.next].value]));
    return next_s;
  }

  double next_end_s() {
    if (!shared_) share();
    double next_s = kNever;
    for (const Flow& flow : flows_)
      if (flow.end_s == kNever) next_s = std::min(next_s, now_s_ + flow.bytes_left / flow.rate);
    return next_s;
  }

  void advance_to(double time_s) {
    for (Flow& flow : flows_) {
      if (flow.end_s != kNever) continue;
      const bool ends = now_s_ + flow.bytes_left / flow.rate <= time_s * (1 + 1e-14);
      flow.bytes_left -= flow.rate * (time_s - now_s_);
      if (!ends) continue;
      flow.end_s = time_s;
      shared_ = false;
    }
    now_s_ = time_s;
  }

  // Progressive filling: the port with the least for each of its flows fixes their rates.
  void share() {
    shared_ = true;
    const std::size_t n = workers_.size();  // port w: up, port n + w: down
    std::vector<double> left(2 * n, port_byte_per_s_);
    std::vector<int> open(2 * n, 0);
    std::vector<Flow*> unfixed;
    for (Flow& flow : flows_)
      if (flow.end_s == kNever) unfixed.push_back(&flow);
    for (const Flow* flow : unfixed) ++open[flow->from], ++open[n + flow->to];
    while (!unfixed.empty()) {
      double fair = kNever;
      for (std::size_t port = 0; port < 2 * n; ++port)
        if (open[port] > 0) fair = std::min(fair, left[port] / open[port]);
      std::vector<Flow*> rest;
      std::vector<double> left_after = left;
      std::vector<int> open_after = open;
      for (Flow* flow : unfixed) {
        const auto tight = [&](std::size_t port) {
          return left[port] / open[port] <= fair * (1 + 1e-12);
        };
        if (!tight(flow->from) && !tight(n + flow->to)) {
          rest.push_back(flow);
          continue;
        }
        flow->rate = fair;
        for (const std::size_t port : {flow->from, n + flow->to}) {
          left_after[port] -= fair;
          --open_after[port];
        }
      }
      left = left_after;
      open = open_after;
      unfixed = rest;
    }
  }

  double port_byte_per_s_;
  double latency_s_;
  double now_s_ = 0;
  bool shared_ = true;
  std::vector<Worker> workers_;
  std::deque<Flow> flows_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> channels_;
};

}  // namespace gradwire
