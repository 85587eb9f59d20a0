#include "algorithms/in_process.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

namespace gradwire {

namespace {

constexpr int kMaxWorkers = 16384;  // a thread each

struct Stopped : std::exception {};  // unwinds a worker after another one failed

using Bytes = std::vector<std::byte>;

// The messages under way, who waits, and who may compute.  One mutex for all: a message costs far
// less than the mathematics around it.
class Network {
 public:
  Network(int workers, int concurrency)
      : receivers_(static_cast<std::size_t>(workers)), free_slots_(concurrency) {}

  // A worker's thread begins: waits until it may compute.
  void enter() {
    std::unique_lock lock(mutex_);
    acquire_slot(lock);
    if (error_ != nullptr) throw Stopped();
  }

  // A worker's thread has ended; those still waiting may now wait for ever.
  void leave() {
    const std::scoped_lock lock(mutex_);
    release_slot();
    ++ended_;
    check_deadlock();
  }

  void fail(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    stop(std::move(error));
  }

  // Once all threads have ended.
  std::exception_ptr error() const { return error_; }

  void push(int from, int to, int lane, std::span<const std::byte> payload) {
    Bytes copy(payload.begin(), payload.end());
    const std::scoped_lock lock(mutex_);
    if (error_ != nullptr) throw Stopped();
    Channel& channel = channels_[{from, to, lane}];
    channel.messages.push_back(std::move(copy));
    Receiver& receiver = receivers_[static_cast<std::size_t>(to)];
    if (receiver.blocked && receiver.from == from && receiver.lane == lane &&
        channel.has(receiver.ticket)) {
      receiver.blocked = false;
      --blocked_;
      receiver.wake.notify_one();
    }
  }

  std::uint64_t next_ticket(int from, int to, int lane) {
    const std::scoped_lock lock(mutex_);
    return channels_[{from, to, lane}].tickets++;
  }

  // The message with that number on the channel, when it is there.
  Bytes pop(int from, int to, int lane, std::uint64_t ticket) {
    std::unique_lock lock(mutex_);
    Channel& channel = channels_[{from, to, lane}];
    if (!channel.has(ticket) && error_ == nullptr) {
      Receiver& me = receivers_[static_cast<std::size_t>(to)];
      me.from = from;
      me.lane = lane;
      me.ticket = ticket;
      me.blocked = true;
      ++blocked_;
      release_slot();
      check_deadlock();
      me.wake.wait(lock, [&] { return !me.blocked || error_ != nullptr; });
      acquire_slot(lock);
    }
    if (error_ != nullptr) throw Stopped();
    return channel.take(ticket);
  }

 private:
  struct Channel {
    std::deque<Bytes> messages;
    std::deque<bool> taken;   // of the messages, up to the last one that was
    std::uint64_t first = 0;  // number of the front message
    std::uint64_t tickets = 0;

    bool has(std::uint64_t ticket) const { return ticket < first + messages.size(); }
    Bytes take(std::uint64_t ticket) {
      Bytes message = std::move(messages[ticket - first]);
      taken.resize(messages.size(), false);
      taken[ticket - first] = true;
      while (!taken.empty() && taken.front()) {
        taken.pop_front();
        messages.pop_front();
        ++first;
      }
      return message;
    }
  };
  // A worker has one thread and waits for one message at a time, whatever the lane.
  struct Receiver {
    std::condition_variable wake;
    bool blocked = false;  // waits for a message that is not there
    int from = 0;
    int lane = 0;
    std::uint64_t ticket = 0;
  };

  // All below with the mutex held.

  // After an error slots no longer limit anybody: the count may fall below zero until all have
  // left.
  void acquire_slot(std::unique_lock<std::mutex>& lock) {
    slot_free_.wait(lock, [&] { return free_slots_ > 0 || error_ != nullptr; });
    --free_slots_;
  }
  void release_slot() {
    ++free_slots_;
    slot_free_.notify_one();
  }

  void stop(std::exception_ptr error) {
    if (error_ == nullptr) error_ = std::move(error);
    for (Receiver& receiver : receivers_) receiver.wake.notify_one();
    slot_free_.notify_all();
  }

  // If every worker has ended or waits for a message that is not there, says so.
  void check_deadlock() {
    if (error_ != nullptr || blocked_ == 0 || blocked_ + ended_ < receivers_.size()) return;
    std::string names;
    for (std::size_t w = 0; w < receivers_.size(); ++w)
      if (receivers_[w].blocked)
        names += (names.empty() ? "worker " : ", worker ") + std::to_string(w) +
                 " waits for worker " + std::to_string(receivers_[w].from);
    stop(std::make_exception_ptr(std::runtime_error("deadlock: " + names)));
  }

  std::mutex mutex_;
  std::condition_variable slot_free_;
  std::map<std::tuple<int, int, int>, Channel> channels_;  // (from, to, lane)
  std::vector<Receiver> receivers_;
  int free_slots_;
  std::size_t blocked_ = 0;
  std::size_t ended_ = 0;
  std::exception_ptr error_;
};

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(Network& network, int rank, int size, int lane)
      : Communicator(rank, size, lane), network_(network) {}

 private:
  struct PendingReceive {
    int from = -1;  // -1: a send, already delivered
    std::span<std::byte> buffer;
    std::uint64_t ticket = 0;
  };

  void do_isend(int to, std::span<const std::byte> payload, std::uint32_t id) override {
    network_.push(rank(), to, lane_index(), payload);
    slot(id) = {};
  }
  void do_irecv(int from, std::span<std::byte> buffer, std::uint32_t id) override {
    slot(id) = {from, buffer, network_.next_ticket(from, rank(), lane_index())};
  }
  void do_wait(std::uint32_t id) override {
    const PendingReceive receive = slot(id);
    if (receive.from < 0) return;
    const Bytes message = network_.pop(receive.from, rank(), lane_index(), receive.ticket);
    if (message.size() != receive.buffer.size())
      throw std::logic_error("worker " + std::to_string(rank()) + " expects " +
                             std::to_string(receive.buffer.size()) + " bytes from worker " +
                             std::to_string(receive.from) + " and gets " +
                             std::to_string(message.size()));
    if (!message.empty()) std::memcpy(receive.buffer.data(), message.data(), message.size());
  }
  void do_charge(Phase /*phase*/, const Charge& /*charge*/) override {}
  // Jobs run at once: every worker starts the same ones in the same order, so none can block
  // another.
  void do_start(std::function<void(Communicator&)> job) override { job(second_lane()); }
  void do_finish() override {}
  double clock_s() const override { return 0; }
  std::unique_ptr<Communicator> make_lane() override {
    return std::make_unique<InProcessCommunicator>(network_, rank(), size(), 1);
  }

  PendingReceive& slot(std::uint32_t id) {
    if (pending_.size() <= id) pending_.resize(id + 1);
    return pending_[id];
  }

  Network& network_;
  std::vector<PendingReceive> pending_;
};

}  // namespace

void run_in_process(const InProcessOptions& options,
                    const std::function<void(Communicator&)>& worker) {
  if (options.workers < 1 || options.workers > kMaxWorkers)
    throw std::invalid_argument("workers: " + std::to_string(options.workers) +
                                " is not allowed; in one process there can be 1 to " +
                                std::to_string(kMaxWorkers));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Network network(options.workers, options.concurrency > 0 ? options.concurrency : cores);
  if (options.recordings != nullptr) {
    options.recordings->clear();
    options.recordings->resize(static_cast<std::size_t>(options.workers));
  }
  const auto run = [&](int rank) {
    try {
      network.enter();
      InProcessCommunicator comm(network, rank, options.workers, 0);
      if (options.recordings != nullptr)
        comm.record_to(&(*options.recordings)[static_cast<std::size_t>(rank)]);
      comm.measure_cpu(options.measure_cpu);
      worker(comm);
      comm.require_idle();
    } catch (const Stopped&) {  // the worker that failed has reported
    } catch (...) {
      network.fail(std::current_exception());
    }
    network.leave();
  };
  std::vector<std::thread> threads;
  try {
    for (int rank = 0; rank < options.workers; ++rank) threads.emplace_back(run, rank);
  } catch (...) {  // no more threads: stop those that run
    network.fail(std::current_exception());
  }
  for (std::thread& thread : threads) thread.join();
  if (network.error() != nullptr) std::rethrow_exception(network.error());
}

}  // namespace gradwire
