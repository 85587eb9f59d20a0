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

struct Stopped : std::exception {};  // unwinds a worker after another one failed

using Bytes = std::vector<std::byte>;

// The messages under way, and who waits.  One mutex for all: a message costs far less than the
// mathematics around it.
class Network {
 public:
  Network(int workers, int concurrency)
      : waiting_(static_cast<std::size_t>(workers)), free_slots_(concurrency) {}

  void acquire_slot() {
    std::unique_lock lock(mutex_);
    acquire(lock);
  }

  // A worker's thread has ended; those still waiting may now wait for ever.
  void leave() {
    const std::scoped_lock lock(mutex_);
    ++free_slots_;
    slot_free_.notify_one();
    ++ended_;
    check_deadlock();
  }

  void fail(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (error_ == nullptr) error_ = std::move(error);
    arrived_.notify_all();
    slot_free_.notify_all();
  }

  std::exception_ptr error() const { return error_; }

  void push(int from, int to, int lane, std::span<const std::byte> payload) {
    Bytes copy(payload.begin(), payload.end());
    const std::scoped_lock lock(mutex_);
    channels_[{from, to, lane}].messages.push_back(std::move(copy));
    if (waiting_[static_cast<std::size_t>(to)].from == from) arrived_.notify_all();
  }

  std::uint64_t next_ticket(int from, int to, int lane) {
    const std::scoped_lock lock(mutex_);
    return channels_[{from, to, lane}].tickets++;
  }

  // The message with that number on the channel, when it is there.
  Bytes pop(int from, int to, int lane, std::uint64_t ticket) {
    std::unique_lock lock(mutex_);
    Channel& channel = channels_[{from, to, lane}];
    auto here = [&] { return channel.first + channel.messages.size() > ticket; };
    if (!here() && error_ == nullptr) {
      Waiting& me = waiting_[static_cast<std::size_t>(to)];
      me = {from, lane, ticket};
      ++free_slots_;
      slot_free_.notify_one();
      check_deadlock();
      arrived_.wait(lock, [&] { return here() || error_ != nullptr; });
      me.from = -1;
      acquire(lock);
    }
    if (error_ != nullptr) throw Stopped();
    Bytes message = std::move(channel.messages[ticket - channel.first]);
    channel.taken.resize(channel.messages.size(), false);
    channel.taken[ticket - channel.first] = true;
    while (!channel.taken.empty() && channel.taken.front()) {
      channel.taken.pop_front();
      channel.messages.pop_front();
      ++channel.first;
    }
    return message;
  }

 private:
  struct Channel {
    std::deque<Bytes> messages;
    std::deque<bool> taken;
    std::uint64_t first = 0;  // number of the front message
    std::uint64_t tickets = 0;
  };
  struct Waiting {
    int from = -1;
    int lane = 0;
    std::uint64_t ticket = 0;
  };

  void acquire(std::unique_lock<std::mutex>& lock) {
    slot_free_.wait(lock, [&] { return free_slots_ > 0 || error_ != nullptr; });
    --free_slots_;
  }

  // With the mutex held: if every worker has ended or waits for a message that is not there, say
  // so.
  void check_deadlock() {
    if (error_ != nullptr) return;
    int stuck = 0;
    std::string names;
    for (std::size_t w = 0; w < waiting_.size(); ++w) {
      const Waiting& waiting = waiting_[w];
      if (waiting.from < 0) continue;
      const Channel& channel = channels_[{waiting.from, static_cast<int>(w), waiting.lane}];
      if (channel.first + channel.messages.size() > waiting.ticket) return;
      ++stuck;
      names += (names.empty() ? "worker " : ", worker ") + std::to_string(w) +
               " waits for worker " + std::to_string(waiting.from);
    }
    if (stuck == 0 || stuck + ended_ < static_cast<int>(waiting_.size())) return;
    error_ = std::make_exception_ptr(std::runtime_error("deadlock: " + names));
    arrived_.notify_all();
    slot_free_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable slot_free_;
  std::map<std::tuple<int, int, int>, Channel> channels_;  // (from, to, lane)
  std::vector<Waiting> waiting_;
  int free_slots_;
  int ended_ = 0;
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
  if (options.workers < 1) throw std::invalid_argument("workers must be at least 1");
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Network network(options.workers, options.concurrency > 0 ? options.concurrency : cores);
  if (options.recordings != nullptr) {
    options.recordings->clear();
    options.recordings->resize(static_cast<std::size_t>(options.workers));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.workers; ++rank) {
    threads.emplace_back([&, rank] {
      network.acquire_slot();
      try {
        InProcessCommunicator comm(network, rank, options.workers, 0);
        if (options.recordings != nullptr)
          comm.record_to(&(*options.recordings)[static_cast<std::size_t>(rank)]);
        comm.measure_cpu(options.measure_cpu);
        worker(comm);
      } catch (const Stopped&) {  // the worker that failed has reported
      } catch (...) {
        network.fail(std::current_exception());
      }
      network.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (network.error() != nullptr) std::rethrow_exception(network.error());
}

}  // namespace gradwire
