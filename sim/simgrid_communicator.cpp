#include "sim/simgrid_communicator.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace gradwire {

namespace s4u = simgrid::s4u;

SimGridCommunicator::SimGridCommunicator(SimGridWorld& world, int rank, int size, int lane,
                                         const WorkerRecording* recorded)
    : Communicator(rank, size, lane), world_(world), recorded_(recorded) {}

double SimGridCommunicator::clock_s() const { return s4u::Engine::get_clock(); }

SimGridCommunicator::Channel SimGridCommunicator::open_channel(int from, int to) const {
  s4u::Mailbox* mailbox = s4u::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to) +
                                                "/" + std::to_string(lane_index()));
  // A mailbox with a permanent receiver starts its transfers at once, whether or not the receive is
  // posted, as TCP does up to its buffers.  It must have it before the first send.
  if (from == rank()) mailbox->set_receiver(world_.workers[static_cast<std::size_t>(to)]);
  return {mailbox, world_.platform.injected_latency_s(from, to)};
}

SimGridCommunicator::Pending& SimGridCommunicator::pending(std::uint32_t id) {
  if (pending_.size() <= id) pending_.resize(id + 1);
  return pending_[id];
}

// SimGrid refuses null payloads.
static char no_payload;  // NOLINT(misc-use-anonymous-namespace)

void SimGridCommunicator::do_isend(int to, std::span<const std::byte> payload, std::uint32_t id) {
  // The receiver may look at the bytes long after the sender has gone on.
  void* message = &no_payload;
  if (payload.data() != nullptr) message = new Message{{payload.begin(), payload.end()}};
  Pending& send = pending(id);
  send.is_send = true;
  send.peer = to;
  if (world_.transport != nullptr) {
    send.transported = world_.transport->send(rank(), to, lane_index(), payload.size(), message);
    return;
  }
  auto [channel, is_new] = outgoing_.try_emplace(to);
  if (is_new) channel->second = open_channel(rank(), to);
  send.comm = channel->second.mailbox->put_async(message, payload.size());
}

void SimGridCommunicator::do_irecv(int from, std::span<std::byte> buffer, std::uint32_t id) {
  Pending& receive = pending(id);
  receive.is_send = false;
  receive.peer = from;
  receive.buffer = buffer;
  if (world_.transport != nullptr) {
    receive.transported = world_.transport->receive(from, rank(), lane_index());
    return;
  }
  auto [channel, is_new] = incoming_.try_emplace(from);
  if (is_new) channel->second = open_channel(from, rank());
  receive.latency_s = channel->second.latency_s;
  receive.comm = channel->second.mailbox->get_async(&receive.message);
}

void SimGridCommunicator::do_wait(std::uint32_t id) {
  Pending& request = pending_[id];
  waiting_ = &request;
  if (request.transported != nullptr) {
    (request.is_send ? request.transported->sent : request.transported->arrived)->acquire();
    request.message = static_cast<Message*>(request.transported->payload);
    if (!request.is_send) deliver(request);
    request.transported = nullptr;
    waiting_ = nullptr;
    return;
  }
  request.comm->wait();
  if (!request.is_send) {
    if (request.latency_s > 0) {
      const double arrival_s = request.comm->get_finish_time() + request.latency_s;
      if (arrival_s > clock_s()) s4u::this_actor::sleep_until(arrival_s);
    }
    deliver(request);
  }
  waiting_ = nullptr;
  request.comm = nullptr;
}

void SimGridCommunicator::deliver(const Pending& receive) const {
  std::unique_ptr<Message> message;
  if (static_cast<void*>(receive.message) != &no_payload) message.reset(receive.message);
  if (message == nullptr && receive.buffer.data() == nullptr) return;  // a replay, or no bytes
  const std::size_t size = message == nullptr ? 0 : message->bytes.size();
  if (size != receive.buffer.size())
    throw std::logic_error("worker " + std::to_string(rank()) + " expects " +
                           std::to_string(receive.buffer.size()) + " bytes from worker " +
                           std::to_string(receive.peer) + " and gets " + std::to_string(size));
  if (size > 0) std::memcpy(receive.buffer.data(), message->bytes.data(), size);
}

void SimGridCommunicator::do_charge(Phase phase, const Charge& charge) {
  const double duration_s =
      world_.compute.seconds(phase, recorded_ == nullptr ? charge : recorded_charge());
  if (world_.transport != nullptr) return world_.transport->compute(rank(), duration_s);
  if (duration_s > 0) s4u::this_actor::sleep_for(duration_s);
}

const Charge& SimGridCommunicator::recorded_charge() {
  const LaneRecording& lane = recorded_->lanes[static_cast<std::size_t>(lane_index())];
  while (lane.events[next_event_].kind != Event::Kind::kCharge) ++next_event_;
  return lane.charges[lane.events[next_event_++].value];
}

std::unique_ptr<Communicator> SimGridCommunicator::make_lane() {
  auto lane = std::make_unique<SimGridCommunicator>(world_, rank(), size(), 1, recorded_);
  lane_ = lane.get();
  return lane;
}

void SimGridCommunicator::do_start(std::function<void(Communicator&)> job) {
  if (lane_actor_ == nullptr) {
    jobs_started_ = s4u::Semaphore::create(0);
    jobs_ended_ = s4u::Semaphore::create(0);
    lane_actor_ = s4u::Actor::create("lane " + std::to_string(rank()), s4u::this_actor::get_host(),
                                     [this] { run_jobs(); });
  }
  jobs_.push_back(std::move(job));
  ++jobs_running_;
  jobs_started_->release();
}

void SimGridCommunicator::run_jobs() {
  try {
    while (true) {
      jobs_started_->acquire();
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      if (!job) return;
      job(second_lane());
      jobs_ended_->release();
    }
  } catch (const std::exception& error) {
    world_.child.fail(std::runtime_error("worker " + std::to_string(rank()) + ": " + error.what()));
  }
}

void SimGridCommunicator::do_finish() {
  for (; jobs_running_ > 0; --jobs_running_) jobs_ended_->acquire();
}

void SimGridCommunicator::close() {
  if (lane_actor_ == nullptr) return;
  jobs_.emplace_back();
  jobs_started_->release();
  lane_actor_->join();
}

void SimGridCommunicator::describe_waiting(std::vector<std::string>& lines) const {
  if (waiting_ != nullptr)
    lines.push_back("worker " + std::to_string(rank()) +
                    (lane_index() == 0 ? "" : " (second lane)") + " waits for worker " +
                    std::to_string(waiting_->peer));
  if (lane_ != nullptr) lane_->describe_waiting(lines);
}

}  // namespace gradwire
