#include "sim/flow_replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/event_queue.h"
#include "sim/flow_network.h"

namespace gradwire {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kLaneItems = 1U << 31U;  // in the queue: lanes from here on, flows below
constexpr double kPrecisionS = 1e-12;            // SimGrid's surf/precision in our settings

// A first-in-first-out queue that costs nothing while it is empty.
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  void push(std::uint32_t item) { items_.push_back(item); }
  std::uint32_t pop() {
    const std::uint32_t item = items_[head_++];
    if (empty()) {
      items_.clear();
      head_ = 0;
    }
    return item;
  }

 private:
  std::vector<std::uint32_t> items_;
  std::size_t head_ = 0;
};

// From one worker to another on one lane: sends and receives match in order.
struct Channel {
  FlowNetwork::Path path;
  double latency_s = 0;
  Fifo sent;      // flows without a receive
  Fifo expected;  // request numbers of receives without a flow; one of the two is empty
  std::uint32_t receiver = kNone;
};

struct Flow {
  std::uint32_t sender = kNone;    // the lane that waits for its end
  std::uint32_t receiver = kNone;  // likewise
  double latency_s = 0;
  double end_s = 0;
  bool ended = false;
  std::uint8_t owners = 2;  // requests that have not been waited for
};

struct Request {
  std::uint32_t flow = kNone;  // none: a receive whose message has not been sent
  bool is_send = false;
  bool open = false;
  bool awaited = false;
  std::int64_t bytes = 0;
};

// An event of a recording, looked up.
struct Instruction {
  Event::Kind kind;
  Phase phase;
  std::uint32_t channel;
  std::uint64_t value;
  double duration_s;
};

// A lane of a worker runs its events in order until one takes time.
struct Lane {
  const EventLog* events = nullptr;
  std::vector<Instruction> code;  // by symbol
  std::size_t next = 0;
  double since_s = 0;  // when the event that takes time began
  std::vector<Request> requests;
  std::vector<std::uint32_t> free_requests;
  Traffic traffic;
  std::array<double, kPhases> phase_s{};
  double waiting_s = 0;
};

class Replay {
 public:
  /// Events of which the first is at most `together_s` earlier happen at its date, as in SimGrid.
  Replay(const Recording& recording, const RouteTable& routes, int workers_per_host,
         const ComputeModel& compute, double together_s)
      : together_s_(together_s),
        network_(routes),
        workers_(recording.workers.size()),
        lanes_(2 * workers_),
        jobs_(workers_) {
    const auto host = [&](std::size_t worker) {
      return worker / static_cast<std::size_t>(workers_per_host);
    };
    for (std::size_t id = 0; id < lanes_.size(); ++id) {
      const LaneRecording& recorded = recording.workers[worker_of(id)].lanes[id % 2];
      lanes_[id].events = &recorded.events;
      compile(id, recorded, compute, [&](std::size_t from, std::size_t to) {
        const auto links = routes.route(host(from), host(to));
        return std::pair(network_.path(links), routes.latency_s(links));
      });
    }
    accounts_.resize(workers_);
  }

  bool contended() const { return network_.contended(); }

  std::optional<std::vector<std::vector<Account>>> run() {
    for (std::uint32_t id = 0; id < lanes_.size(); id += 2) proceed(id);
    std::vector<std::uint32_t> items;
    while (true) {
      while (!ready_.empty()) {
        const std::uint32_t lane = ready_.back();
        ready_.pop_back();
        resume(lane);
      }
      if (queue_.empty() || queue_.next_date_s() > now_s_) network_.share(now_s_, queue_);
      if (queue_.empty()) break;
      advance(items);
    }
    for (const Lane& lane : lanes_)
      if (lane.next < lane.events->size()) return std::nullopt;
    return std::move(accounts_);
  }

 private:
  struct Jobs {
    std::size_t started = 0;
    std::size_t ended = 0;
    bool lane_idle = true;
    bool main_finishes = false;
  };

  static std::size_t worker_of(std::size_t lane) { return lane / 2; }

  template <class Route>
  void compile(std::size_t id, const LaneRecording& recorded, const ComputeModel& compute,
               const Route& route) {
    const std::size_t me = worker_of(id);
    for (const Event& event : recorded.events.distinct()) {
      Instruction code{event.kind, event.phase, kNone, event.value, 0};
      if (event.kind == Event::Kind::kSend || event.kind == Event::Kind::kReceive) {
        const auto peer = static_cast<std::size_t>(event.peer);
        if (peer >= workers_ || peer == me)
          throw std::logic_error("replay: worker " + std::to_string(me) + " has no peer " +
                                 std::to_string(event.peer));
        const bool sends = event.kind == Event::Kind::kSend;
        code.channel = channel(sends ? me : peer, sends ? peer : me, id % 2, route);
      } else if (event.kind == Event::Kind::kCharge) {
        code.duration_s = compute.seconds(event.phase, recorded.charges.at(event.value));
        if (code.duration_s > 0) code.duration_s = std::max(code.duration_s, kPrecisionS);
      }
      lanes_[id].code.push_back(code);
    }
  }

  template <class Route>
  std::uint32_t channel(std::size_t from, std::size_t to, std::size_t lane, const Route& route) {
    const auto [found, is_new] = channel_index_.try_emplace(
        (from * workers_ + to) * 2 + lane, static_cast<std::uint32_t>(channels_.size()));
    if (is_new) {
      Channel& made = channels_.emplace_back();
      std::tie(made.path, made.latency_s) = route(from, to);
      made.receiver = static_cast<std::uint32_t>(2 * to + lane);
    }
    return found->second;
  }

  // To the next date, and all that happens within SimGrid's precision of it.
  void advance(std::vector<std::uint32_t>& items) {
    bool moved = false;
    do {
      const double date_s = queue_.next_date_s();
      queue_.pop(items);
      for (const std::uint32_t item : items) {
        const bool is_flow = item < kLaneItems;
        if (is_flow && !network_.is_due(item, date_s)) continue;  // its end has moved
        if (!moved) now_s_ += date_s - now_s_;                    // rounded as SimGrid rounds it
        moved = true;
        if (is_flow) {
          end_flow(item);
        } else {
          ready_.push_back(item - kLaneItems);
        }
      }
    } while (moved && !queue_.empty() && queue_.next_date_s() - now_s_ < together_s_);
  }

  void end_flow(std::uint32_t id) {
    network_.end(id);
    Flow& flow = flows_[id];
    flow.ended = true;
    flow.end_s = now_s_;
    if (flow.sender != kNone) ready_.push_back(flow.sender);
    if (flow.receiver != kNone) wake_on_arrival(flow.receiver, flow);
  }

  // After a sleep until the message's arrival, in SimGrid's roundings.
  void wake_on_arrival(std::uint32_t lane, const Flow& flow) {
    const double arrival_s = flow.end_s + flow.latency_s;
    if (flow.latency_s > 0 && arrival_s > now_s_) {
      sleep(lane, arrival_s - now_s_);
    } else {
      ready_.push_back(lane);
    }
  }

  void sleep(std::uint32_t lane, double duration_s) {
    queue_.push(now_s_ + std::max(duration_s, kPrecisionS), kLaneItems + lane);
  }

  // The event that took time is over.
  void resume(std::uint32_t id) {
    Lane& lane = lanes_[id];
    const Instruction& code = lane.code[lane.events->symbol(lane.next)];
    const double spent_s = now_s_ - lane.since_s;
    if (code.kind == Event::Kind::kWait) {
      end_wait(lane, static_cast<std::uint32_t>(code.value), spent_s);
    } else if (code.kind == Event::Kind::kCharge) {
      lane.phase_s[static_cast<std::size_t>(code.phase)] += spent_s;
    } else {  // finish
      lane.waiting_s += spent_s;
    }
    ++lane.next;
    proceed(id);
  }

  void proceed(std::uint32_t id) {
    Lane& lane = lanes_[id];
    const std::size_t end = lane.events->size();
    for (; lane.next < end; ++lane.next) {
      const Instruction& code = lane.code[lane.events->symbol(lane.next)];
      lane.since_s = now_s_;
      if (!execute(id, lane, code)) return;
    }
  }

  // False if the event takes time (or the second lane has no further job).
  bool execute(std::uint32_t id, Lane& lane, const Instruction& code) {
    Jobs& jobs = jobs_[worker_of(id)];
    switch (code.kind) {
      case Event::Kind::kSend:
        send(lane, code);
        return true;
      case Event::Kind::kReceive:
        receive(lane, code);
        return true;
      case Event::Kind::kWait:
        return wait(id, lane, code.value);
      case Event::Kind::kCharge:
        if (!(code.duration_s > 0)) return true;
        sleep(id, code.duration_s);
        return false;
      case Event::Kind::kStart:
        ++jobs.started;
        if (jobs.lane_idle) {
          jobs.lane_idle = false;
          proceed(id + 1);
        }
        return true;
      case Event::Kind::kJobEnd:
        return end_job(id, lane, jobs);
      case Event::Kind::kFinish:
        jobs.main_finishes = jobs.ended < jobs.started;
        return !jobs.main_finishes;
      case Event::Kind::kStep:
        end_step(id);
        return true;
    }
    return true;
  }

  bool end_job(std::uint32_t id, Lane& lane, Jobs& jobs) {
    ++jobs.ended;
    if (jobs.main_finishes && jobs.ended == jobs.started) {
      jobs.main_finishes = false;
      ready_.push_back(id - 1);
    }
    if (jobs.ended < jobs.started) return true;
    jobs.lane_idle = true;
    ++lane.next;
    return false;
  }

  std::uint32_t open_request(Lane& lane, const Request& request) {
    if (lane.free_requests.empty()) {
      lane.free_requests.push_back(static_cast<std::uint32_t>(lane.requests.size()));
      lane.requests.emplace_back();
    }
    const std::uint32_t number = lane.free_requests.back();
    lane.free_requests.pop_back();
    lane.requests[number] = request;
    return number;
  }

  void send(Lane& lane, const Instruction& code) {
    Channel& channel = channels_[code.channel];
    const auto bytes = static_cast<std::int64_t>(code.value);
    lane.traffic.bytes_sent += bytes;
    lane.traffic.messages_sent += 1;
    const std::uint32_t id = new_flow();
    flows_[id] = {.latency_s = channel.latency_s};
    open_request(lane, {.flow = id, .is_send = true, .open = true, .bytes = bytes});
    network_.start(id, channel.path, static_cast<double>(code.value), now_s_, queue_);
    if (channel.expected.empty()) return channel.sent.push(id);
    Request& request = lanes_[channel.receiver].requests[channel.expected.pop()];
    request.flow = id;
    if (request.awaited) flows_[id].receiver = channel.receiver;
  }

  void receive(Lane& lane, const Instruction& code) {
    Channel& channel = channels_[code.channel];
    const bool sent = !channel.sent.empty();
    const std::uint32_t number =
        open_request(lane, {.flow = sent ? channel.sent.pop() : kNone,
                            .open = true,
                            .bytes = static_cast<std::int64_t>(code.value)});
    if (!sent) channel.expected.push(number);
  }

  bool wait(std::uint32_t id, Lane& lane, std::uint64_t number) {
    if (number >= lane.requests.size() || !lane.requests[number].open)
      throw std::logic_error("replay: wait for a request that is not open");
    Request& request = lane.requests[number];
    request.awaited = true;
    if (request.flow == kNone) return false;
    Flow& flow = flows_[request.flow];
    if (!flow.ended) {
      (request.is_send ? flow.sender : flow.receiver) = id;
      return false;
    }
    if (!request.is_send && flow.latency_s > 0 && flow.end_s + flow.latency_s > now_s_) {
      wake_on_arrival(id, flow);
      return false;
    }
    end_wait(lane, static_cast<std::uint32_t>(number), 0);
    return true;
  }

  void end_wait(Lane& lane, std::uint32_t number, double spent_s) {
    lane.waiting_s += spent_s;
    Request& request = lane.requests[number];
    if (!request.is_send) {
      lane.traffic.bytes_received += request.bytes;
      lane.traffic.messages_received += 1;
    }
    if (--flows_[request.flow].owners == 0) free_flows_.push_back(request.flow);
    request.open = false;
    lane.free_requests.push_back(number);
  }

  std::uint32_t new_flow() {
    if (free_flows_.empty()) {
      free_flows_.push_back(static_cast<std::uint32_t>(flows_.size()));
      flows_.emplace_back();
    }
    const std::uint32_t id = free_flows_.back();
    free_flows_.pop_back();
    return id;
  }

  void end_step(std::uint32_t id) {
    const Lane& main = lanes_[id];
    const Lane& second = lanes_[id + 1];
    Account now{.time_s = now_s_,
                .traffic = main.traffic,
                .phase_s = main.phase_s,
                .lane_phase_s = second.phase_s,
                .waiting_s = main.waiting_s};
    now.traffic.bytes_sent += second.traffic.bytes_sent;
    now.traffic.messages_sent += second.traffic.messages_sent;
    now.traffic.bytes_received += second.traffic.bytes_received;
    now.traffic.messages_received += second.traffic.messages_received;
    accounts_[worker_of(id)].push_back(now);
  }

  double together_s_;
  FlowNetwork network_;
  EventQueue queue_;
  double now_s_ = 0;
  std::size_t workers_;
  std::vector<Lane> lanes_;  // main and second lane of each worker
  std::vector<Jobs> jobs_;   // by worker
  std::vector<std::uint32_t> ready_;
  std::unordered_map<std::size_t, std::uint32_t> channel_index_;
  std::deque<Channel> channels_;  // the network keeps pointers to their paths
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<std::vector<Account>> accounts_;
};

using Accounts = std::vector<std::vector<Account>>;

// Whether the times of two replays are the same to ten times less than what replay() promises.
bool agree(const Accounts& a, const Accounts& b) {
  constexpr double kTolerance = 1e-10;
  for (std::size_t w = 0; w < a.size(); ++w)
    for (std::size_t s = 0; s < a[w].size(); ++s) {
      const Account &x = a[w][s], &y = b[w][s];
      const double allowed_s = kTolerance * x.time_s;
      if (std::abs(x.time_s - y.time_s) > allowed_s ||
          std::abs(x.waiting_s - y.waiting_s) > allowed_s)
        return false;
    }
  return true;
}

}  // namespace

std::optional<std::vector<std::vector<Account>>> replay_flows(const Recording& recording,
                                                              const RouteTable& routes,
                                                              int workers_per_host,
                                                              const ComputeModel& compute) {
  Replay replay(recording, routes, workers_per_host, compute, kPrecisionS);
  std::optional<Accounts> accounts = replay.run();
  if (!accounts || !replay.contended()) return accounts;
  const auto coarser = Replay(recording, routes, workers_per_host, compute, 4 * kPrecisionS).run();
  return coarser && agree(*accounts, *coarser) ? std::move(accounts) : std::nullopt;
}

}  // namespace gradwire
