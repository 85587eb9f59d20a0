// One worker's link to the others.  Algorithms and collectives are sequential functions over it;
// three implementations stand behind it: in-process threads (algorithms/in_process.h), SimGrid
// actors (sim/) and Gloo processes (real/).
//
// The public calls count, record and time; then they call the private virtual one.  An algorithm
// can therefore never misreport its traffic: bytes are the bytes of the real encoding it sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/recording.h"
#include "models/matrix.h"

namespace gradwire {

std::string_view phase_name(Phase phase);

/// Names a pending isend or irecv until its wait().
struct Request {
  std::uint32_t id;
};

struct Traffic {
  std::int64_t bytes_sent = 0;
  std::int64_t messages_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t messages_received = 0;
};

/// Totals since the start; differences between two step ends describe a step.
struct Account {
  double time_s = 0;                           ///< clock when it was taken
  Traffic traffic;                             ///< both lanes
  std::array<double, kPhases> phase_s{};       ///< main lane, time in each phase
  std::array<double, kPhases> lane_phase_s{};  ///< second lane
  double waiting_s = 0;                        ///< main lane, blocked in wait() and finish()
};

/// A piece of a worker's timeline, for traces.
struct Span {
  enum class Kind : std::uint8_t { kCharge, kReceive, kSend, kFinish, kCollective };
  Kind kind;
  Phase phase;  ///< of a charge
  std::uint8_t lane;
  int peer;  ///< of a message
  std::int64_t bytes;
  double start_s;
  double end_s;
  std::int64_t step;  ///< 0 before training, k in batch k
};

/// Timelines by worker, for traces.
using Timeline = std::vector<std::vector<Span>>;

/// Collectives that a transport has of its own: Gloo's, where workers are real.  What they send is
/// that of the schedules in algorithms/gloo_collectives.h, which stand for them elsewhere.
class NativeCollectives {
 public:
  virtual ~NativeCollectives() = default;
  /// Sums over the workers, on all.
  virtual void all_reduce(std::span<Scalar> values) = 0;
  /// `all` has this worker's block in its place; `sizes` are those of all blocks.
  virtual void all_gather(std::span<std::byte> all, std::span<const std::size_t> sizes) = 0;
  virtual void broadcast(int root, std::span<std::byte> buffer) = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// False if messages have sizes only (algorithms/dry_run.h): then nobody may look at a buffer,
  /// nor compute what would depend on one; the charges are the same.
  virtual bool carries_data() const { return true; }

  /// Starts sending; `payload` stays untouched until wait(), which returns when the sender may go
  /// on (its last byte has left).  Messages between a pair of workers on one lane arrive in order.
  /// Zero bytes are legal; sending to oneself is not.
  [[nodiscard]] Request isend(int to, std::span<const std::byte> payload);
  /// Posts a receive of exactly `buffer.size()` bytes; wait() returns when they have arrived.
  [[nodiscard]] Request irecv(int from, std::span<std::byte> buffer);
  void wait(Request request);

  void send(int to, std::span<const std::byte> payload) { wait(isend(to, payload)); }
  void recv(int from, std::span<std::byte> buffer) { wait(irecv(from, buffer)); }

  /// Lets the transport's own collective do what `schedule` would do with messages, and counts
  /// those; does nothing and returns false if it has none.
  bool run_native(const std::function<void(NativeCollectives&)>& collective,
                  const std::function<void(Communicator&)>& schedule);

  /// Accounts for the mathematics done since the previous call on this communicator.
  void charge(Phase phase, const Work& work);

  /// Runs `job` on the worker's second lane, after the jobs started before it and concurrently with
  /// what the caller does next.  All workers start the same jobs in the same order.
  void start(std::function<void(Communicator& lane)> job);
  /// Returns when every started job has ended.
  void finish();

  /// Ends a training step: takes an Account.  Where lanes are threads (real/), every started job
  /// must have finished.  Throws as require_idle().
  void end_step();

  /// Throws std::logic_error naming this worker if a send or receive of this lane was not waited
  /// for; implementations call it at a worker's end, start() at the end of each job.
  void require_idle() const;

  double now_s() const { return clock_s(); }
  const std::vector<Account>& steps() const { return steps_; }
  Account account() const;

  /// What to keep; set before the first call, null for nothing.
  void record_to(WorkerRecording* recording);
  void trace_to(std::vector<Span>* spans);
  /// Fill Charge::cpu_s with the thread's processor time.
  void measure_cpu(bool on);

 protected:
  Communicator(int rank, int size, int lane) : rank_(rank), size_(size), lane_index_(lane) {}
  int lane_index() const { return lane_index_; }
  Communicator& second_lane();
  WorkerRecording* recording() { return recording_; }

 private:
  // `id` is small and reused after its wait: implementations index a vector with it.
  virtual void do_isend(int to, std::span<const std::byte> payload, std::uint32_t id) = 0;
  virtual void do_irecv(int from, std::span<std::byte> buffer, std::uint32_t id) = 0;
  virtual void do_wait(std::uint32_t id) = 0;
  virtual void do_charge(Phase phase, const Charge& charge) = 0;
  virtual void do_start(std::function<void(Communicator&)> job) = 0;
  virtual void do_finish() = 0;
  virtual double clock_s() const = 0;
  virtual std::unique_ptr<Communicator> make_lane() = 0;
  virtual NativeCollectives* native() { return nullptr; }

  struct Pending {
    bool is_send = false;
    bool open = false;
    int peer = 0;
    std::int64_t bytes = 0;
  };

  std::uint32_t open_request(bool is_send, int peer, std::size_t bytes);
  void check_peer(int peer) const;
  void log(Event event);
  std::int64_t step() const {
    return lane_index_ == 0 ? static_cast<std::int64_t>(steps_.size()) : job_step_;
  }
  void mark();  ///< the clock and processor time from which the next charge counts

  int rank_;
  int size_;
  int lane_index_;
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> free_ids_;
  Traffic traffic_;
  std::array<double, kPhases> phase_s_{};
  double waiting_s_ = 0;
  std::vector<Account> steps_;
  std::int64_t job_step_ = 0;  ///< of the second lane's job: the main lane's when it started
  double mark_s_ = 0;
  double cpu_mark_s_ = 0;
  bool measure_cpu_ = false;
  WorkerRecording* recording_ = nullptr;
  std::vector<Span>* spans_ = nullptr;
  std::vector<Span> lane_spans_;  ///< the second lane's, perhaps another thread's, until finish()
  std::unique_ptr<Communicator> lane_;
};

/// Bytes of a contiguous array.
template <class T>
std::span<const std::byte> bytes_of(std::span<const T> values) {
  return std::as_bytes(values);
}
template <class T>
std::span<std::byte> writable_bytes_of(std::span<T> values) {
  return std::as_writable_bytes(values);
}

}  // namespace gradwire
