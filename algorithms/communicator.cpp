#include "algorithms/communicator.h"

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>

#include "algorithms/dry_run.h"

namespace gradwire {

namespace {
double thread_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
}  // namespace

std::string_view phase_name(Phase phase) {
  static constexpr std::array<std::string_view, kPhases> kNames{
      "forward", "backward", "compression", "reduction", "optimizer"};
  return kNames[static_cast<std::size_t>(phase)];
}

Request Communicator::isend(int to, std::span<const std::byte> payload) {
  check_peer(to);
  traffic_.bytes_sent += static_cast<std::int64_t>(payload.size());
  traffic_.messages_sent += 1;
  log({.kind = Event::Kind::kSend, .peer = to, .value = payload.size()});
  const std::uint32_t id = open_request(true, to, payload.size());
  do_isend(to, payload, id);
  mark();
  return {id};
}

Request Communicator::irecv(int from, std::span<std::byte> buffer) {
  check_peer(from);
  log({.kind = Event::Kind::kReceive, .peer = from, .value = buffer.size()});
  const std::uint32_t id = open_request(false, from, buffer.size());
  do_irecv(from, buffer, id);
  mark();
  return {id};
}

void Communicator::wait(Request request) {
  if (request.id >= pending_.size() || !pending_[request.id].open)
    throw std::logic_error("wait for a request that is not open");
  log({.kind = Event::Kind::kWait, .value = request.id});
  const double start_s = clock_s();
  do_wait(request.id);
  const double end_s = clock_s();
  waiting_s_ += end_s - start_s;
  Pending& done = pending_[request.id];
  if (!done.is_send) {
    traffic_.bytes_received += done.bytes;
    traffic_.messages_received += 1;
  }
  if (spans_ != nullptr)
    spans_->push_back({done.is_send ? Span::Kind::kSend : Span::Kind::kReceive, Phase::kForward,
                       static_cast<std::uint8_t>(lane_index_), done.peer, done.bytes, start_s,
                       end_s, step()});
  done.open = false;
  free_ids_.push_back(request.id);
  mark();
}

bool Communicator::run_native(const std::function<void(NativeCollectives&)>& collective,
                              const std::function<void(Communicator&)>& schedule) {
  NativeCollectives* const own = native();
  if (own == nullptr) return false;
  const Traffic planned = dry_traffic(rank_, size_, schedule);
  traffic_.bytes_sent += planned.bytes_sent;
  traffic_.messages_sent += planned.messages_sent;
  traffic_.bytes_received += planned.bytes_received;
  traffic_.messages_received += planned.messages_received;
  const double start_s = clock_s();
  collective(*own);
  const double end_s = clock_s();
  waiting_s_ += end_s - start_s;
  if (spans_ != nullptr)
    spans_->push_back({Span::Kind::kCollective, Phase::kForward,
                       static_cast<std::uint8_t>(lane_index_), -1, planned.bytes_sent, start_s,
                       end_s, step()});
  mark();
  return true;
}

void Communicator::charge(Phase phase, const Work& work) {
  const Charge charge{.work = work, .cpu_s = measure_cpu_ ? thread_cpu_s() - cpu_mark_s_ : 0};
  if (recording_ != nullptr)
    recording_->lanes[static_cast<std::size_t>(lane_index_)].add_charge(phase, charge);
  const double start_s = mark_s_;
  do_charge(phase, charge);
  const double end_s = clock_s();
  phase_s_[static_cast<std::size_t>(phase)] += end_s - start_s;
  if (spans_ != nullptr)
    spans_->push_back({Span::Kind::kCharge, phase, static_cast<std::uint8_t>(lane_index_), -1, 0,
                       start_s, end_s, step()});
  mark();
}

void Communicator::start(std::function<void(Communicator&)> job) {
  if (lane_index_ != 0) throw std::logic_error("the second lane cannot start jobs");
  second_lane();
  log({.kind = Event::Kind::kStart});
  do_start([job = std::move(job), step = step()](Communicator& lane) {
    lane.job_step_ = step;
    lane.mark();
    job(lane);
    lane.require_idle();
    lane.log({.kind = Event::Kind::kJobEnd});
  });
  mark();
}

void Communicator::finish() {
  log({.kind = Event::Kind::kFinish});
  const double start_s = clock_s();
  if (lane_ != nullptr) do_finish();
  const double end_s = clock_s();
  waiting_s_ += end_s - start_s;
  if (spans_ != nullptr) {
    spans_->insert(spans_->end(), lane_spans_.begin(), lane_spans_.end());
    lane_spans_.clear();
    spans_->push_back({Span::Kind::kFinish, Phase::kForward, 0, -1, 0, start_s, end_s, step()});
  }
  mark();
}

void Communicator::end_step() {
  require_idle();
  log({.kind = Event::Kind::kStep});
  steps_.push_back(account());
  mark();
}

void Communicator::require_idle() const {
  if (free_ids_.size() == pending_.size()) return;
  const auto open =
      std::find_if(pending_.begin(), pending_.end(), [](const Pending& p) { return p.open; });
  throw std::logic_error("worker " + std::to_string(rank_) + " did not wait for its " +
                         (open->is_send ? "send to" : "receive from") + " worker " +
                         std::to_string(open->peer) + " of " + std::to_string(open->bytes) +
                         " bytes" + (lane_index_ == 0 ? "" : " (second lane)"));
}

Account Communicator::account() const {
  Account now{.time_s = clock_s(),
              .traffic = traffic_,
              .phase_s = phase_s_,
              .lane_phase_s = {},
              .waiting_s = waiting_s_};
  if (lane_ != nullptr) {
    now.lane_phase_s = lane_->phase_s_;
    now.traffic.bytes_sent += lane_->traffic_.bytes_sent;
    now.traffic.messages_sent += lane_->traffic_.messages_sent;
    now.traffic.bytes_received += lane_->traffic_.bytes_received;
    now.traffic.messages_received += lane_->traffic_.messages_received;
  }
  return now;
}

void Communicator::record_to(WorkerRecording* recording) { recording_ = recording; }

void Communicator::trace_to(std::vector<Span>* spans) { spans_ = spans; }

void Communicator::measure_cpu(bool on) {
  measure_cpu_ = on;
  mark();
}

Communicator& Communicator::second_lane() {
  if (lane_ == nullptr) {
    lane_ = make_lane();
    lane_->recording_ = recording_;
    if (spans_ != nullptr) lane_->spans_ = &lane_spans_;
    lane_->measure_cpu_ = measure_cpu_;
  }
  return *lane_;
}

std::uint32_t Communicator::open_request(bool is_send, int peer, std::size_t bytes) {
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<std::uint32_t>(pending_.size()));
    pending_.emplace_back();
  }
  const std::uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  pending_[id] = {is_send, true, peer, static_cast<std::int64_t>(bytes)};
  return id;
}

void Communicator::check_peer(int peer) const {
  if (peer < 0 || peer >= size_ || peer == rank_)
    throw std::logic_error("worker " + std::to_string(rank_) + " of " + std::to_string(size_) +
                           " cannot exchange messages with worker " + std::to_string(peer));
}

void Communicator::log(Event event) {
  if (recording_ != nullptr) recording_->lanes[static_cast<std::size_t>(lane_index_)].add(event);
}

void Communicator::mark() {
  mark_s_ = clock_s();
  if (measure_cpu_) cpu_mark_s_ = thread_cpu_s();
}

}  // namespace gradwire
