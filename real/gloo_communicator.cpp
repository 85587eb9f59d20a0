#include "real/gloo_communicator.h"

#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "algorithms/serial.h"
#include "real/interface.h"
#include "real/rendezvous.h"
#include "real/scheduling.h"

namespace gradwire {

namespace {

using Clock = std::chrono::steady_clock;
using gloo::transport::UnboundBuffer;

std::string seconds(std::chrono::milliseconds time) {
  std::ostringstream text;
  text << static_cast<double>(time.count()) / 1e3 << " s";
  return text.str();
}

// Gloo's "[/build/gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:5" without where.
std::string reason_of(const std::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return text.starts_with("[") && end != std::string::npos ? text.substr(end + 2) : text;
}

// What the lanes of one worker share.  When one lane fails, the other must not wait for its
// timeout, and no message may arrive in memory that unwinding has freed.
class Link {
 public:
  Link(std::shared_ptr<gloo::Context> context, std::chrono::milliseconds timeout,
       Clock::time_point zero, bool messages_first)
      : context_(std::move(context)),
        timeout_(timeout),
        zero_(zero),
        messages_first_(messages_first) {}

  gloo::Context& context() { return *context_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  bool messages_first() const { return messages_first_; }
  double now_s() const { return std::chrono::duration<double>(Clock::now() - zero_).count(); }

  // The buffer that a lane waits for, null for none.  Throws if the other lane has failed.
  void set_waiting(int lane, UnboundBuffer* buffer) {
    const std::scoped_lock lock(mutex_);
    if (buffer != nullptr && !failure_.empty()) throw std::runtime_error(failure_);
    waiting_[static_cast<std::size_t>(lane)] = buffer;
  }

  std::string failure() {
    const std::scoped_lock lock(mutex_);
    return failure_;
  }

  // Closes all connections and wakes the lanes; later failures are its consequences.
  void fail(const std::string& message) {
    const std::scoped_lock lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = message;
    if (context_ != nullptr) context_->closeConnections();
    for (UnboundBuffer* buffer : waiting_) {
      if (buffer == nullptr) continue;
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }

 private:
  std::shared_ptr<gloo::Context> context_;
  std::chrono::milliseconds timeout_;
  Clock::time_point zero_;
  bool messages_first_;
  std::mutex mutex_;
  std::array<UnboundBuffer*, 2> waiting_{};
  std::string failure_;
};

// A thread that runs jobs one after another.
class JobThread {
 public:
  explicit JobThread(Link& link) : link_(link) {}
  ~JobThread() {
    {
      const std::scoped_lock lock(mutex_);
      if (outstanding_ > 0) link_.fail("the worker ended before its second lane");
      stopping_ = true;
      jobs_.clear();
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void start(std::function<void()> job) {
    {
      const std::scoped_lock lock(mutex_);
      jobs_.push_back(std::move(job));
      ++outstanding_;
    }
    changed_.notify_all();
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }

  // Returns when all jobs have ended; throws what the first one to fail threw.
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outstanding_ == 0 || error_ != nullptr; });
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  void run() {
    const MessageTurn turn(link_.messages_first());
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        job();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error != nullptr && error_ == nullptr) error_ = error;
      --outstanding_;
      changed_.notify_all();
    }
  }

  Link& link_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  int outstanding_ = 0;  // waiting or running
  bool stopping_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(std::shared_ptr<Link> link, int rank, int size, int lane)
      : Communicator(rank, size, lane), link_(std::move(link)), jobs_(*link_) {}

 private:
  struct Pending {
    std::unique_ptr<UnboundBuffer> buffer;
    bool is_send = false;
    int peer = -1;
  };

  // Gloo takes the caller's memory as it is, for sending too, but asks for a mutable pointer.
  void do_isend(int to, std::span<const std::byte> payload, std::uint32_t id) override {
    auto* data = const_cast<std::byte*>(payload.data());  // NOLINT(*-const-cast): only read
    post(id, {data, payload.size()}, true, to);
  }
  void do_irecv(int from, std::span<std::byte> buffer, std::uint32_t id) override {
    post(id, buffer, false, from);
  }

  void post(std::uint32_t id, std::span<std::byte> memory, bool is_send, int peer) {
    const MessageTurn turn(link_->messages_first());
    if (pending_.size() <= id) pending_.resize(id + 1);
    pending_[id] = {link_->context().createUnboundBuffer(memory.data(), memory.size()), is_send,
                    peer};
    UnboundBuffer& buffer = *pending_[id].buffer;
    const auto slot = static_cast<std::uint64_t>(lane_index());
    try {
      is_send ? buffer.send(peer, slot) : buffer.recv(peer, slot);
    } catch (const std::exception& error) {
      lose(pending_[id], reason_of(error));
    }
  }

  void do_wait(std::uint32_t id) override {
    const MessageTurn turn(link_->messages_first());
    const Pending pending = std::move(pending_[id]);
    UnboundBuffer& buffer = *pending.buffer;
    link_->set_waiting(lane_index(), &buffer);
    const auto start = Clock::now();
    bool done = false;
    try {
      done =
          pending.is_send ? buffer.waitSend(link_->timeout()) : buffer.waitRecv(link_->timeout());
    } catch (const std::exception& error) {
      link_->set_waiting(lane_index(), nullptr);
      const bool late = Clock::now() - start >= link_->timeout();
      lose(pending, late ? "" : reason_of(error));
    }
    link_->set_waiting(lane_index(), nullptr);
    if (!done) throw std::runtime_error(link_->failure());  // of the other lane
  }

  // Never returns; without a reason the time is over.
  [[noreturn]] void lose(const Pending& pending, const std::string& reason) {
    const std::string peer = "worker " + std::to_string(pending.peer);
    const std::string bytes = std::to_string(pending.buffer->size) + " bytes";
    const std::string message =
        reason.empty() ? peer + (pending.is_send ? " did not take " : " did not send ") + bytes +
                             " within " + seconds(link_->timeout())
                       : "lost " + peer + ": " + reason;
    link_->fail(message);
    throw std::runtime_error(message);
  }

  void do_charge(Phase /*phase*/, const Charge& /*charge*/) override {}  // time passed by itself
  void do_start(std::function<void(Communicator&)> job) override {
    jobs_.start([this, job = std::move(job)] { job(second_lane()); });
  }
  void do_finish() override {
    const MessageTurn turn(link_->messages_first());
    jobs_.finish();
  }
  double clock_s() const override { return link_->now_s(); }
  std::unique_ptr<Communicator> make_lane() override {
    return std::make_unique<GlooCommunicator>(link_, rank(), size(), 1);
  }

  std::shared_ptr<Link> link_;    // shared by the lanes
  std::vector<Pending> pending_;  // by request
  JobThread jobs_;
};

// Gloo's key-value store in our folder, where it exchanges addresses.
class FolderStore final : public gloo::rendezvous::Store {
 public:
  explicit FolderStore(Rendezvous& folder) : folder_(folder) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    folder_.put("gloo-" + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = folder_.get("gloo-" + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) folder_.get("gloo-" + key);
  }

 private:
  Rendezvous& folder_;
};

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

struct Introduction {
  std::string host;     // workers of one host share a steady clock
  std::string network;  // workers of one network reach one another by loopback
  std::vector<std::pair<std::string, std::string>> agreement;

  std::string bytes() const {
    ByteWriter out;
    out.put_string(host);
    out.put_string(network);
    out.put(agreement.size());
    for (const auto& [key, value] : agreement) {
      out.put_string(key);
      out.put_string(value);
    }
    return out.take();
  }
  explicit Introduction(const MeshOptions& options)
      : host(first_line("/proc/sys/kernel/random/boot_id")), agreement(options.agreement) {
    std::error_code error;
    network = host + std::filesystem::read_symlink("/proc/self/ns/net", error).string();
    agreement.insert(agreement.begin(), {"workers", std::to_string(options.size)});
  }
  explicit Introduction(const std::string& bytes) {
    ByteReader in(bytes);
    host = in.get_string();
    network = in.get_string();
    for (auto n = in.get<std::size_t>(); n > 0; --n) {
      std::string key = in.get_string();
      agreement.emplace_back(std::move(key), in.get_string());
    }
  }
};

void check_agreement(const std::vector<Introduction>& all, int rank) {
  const auto& mine = all[static_cast<std::size_t>(rank)].agreement;
  for (std::size_t other = 0; other < all.size(); ++other) {
    const auto& theirs = all[other].agreement;
    const std::string who = "worker " + std::to_string(other);
    for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i)
      if (mine[i] != theirs[i])
        throw std::runtime_error(who + " runs something else: " + theirs[i].first + " is " +
                                 theirs[i].second + " there and " + mine[i].second + " on worker " +
                                 std::to_string(rank));
    if (mine.size() != theirs.size())
      throw std::runtime_error(who + " runs another version of this program");
  }
}

// The instant that the workers' clocks start from, after a barrier.
Clock::time_point common_zero(const std::shared_ptr<gloo::Context>& context, bool one_host) {
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
  std::int64_t zero = Clock::now().time_since_epoch().count();
  gloo::BroadcastOptions broadcast(context);
  broadcast.setRoot(0);
  broadcast.setOutput(&zero, 1);
  gloo::broadcast(broadcast);
  return one_host ? Clock::time_point(Clock::duration(zero)) : Clock::now();
}

}  // namespace

Mesh connect(const MeshOptions& options) {
  const std::chrono::milliseconds timeout(std::llround(1e3 * options.timeout_s));
  if (options.size == 1) {
    auto link = std::make_shared<Link>(nullptr, timeout, Clock::now(), false);
    return {std::make_unique<GlooCommunicator>(std::move(link), 0, 1, 0), ""};
  }
  Rendezvous folder(options.rendezvous, options.rank, options.timeout_s);
  std::vector<Introduction> all;
  for (const std::string& bytes : folder.exchange(Introduction(options).bytes(), options.size))
    all.emplace_back(bytes);
  check_agreement(all, options.rank);
  const auto all_share = [&](std::string Introduction::*what) {
    return std::all_of(all.begin(), all.end(),
                       [&](const Introduction& other) { return other.*what == all[0].*what; });
  };
  const Interface interface = options.interface.empty() && all_share(&Introduction::network)
                                  ? loopback()
                                  : find_interface(options.interface);
  // Gloo's event loop inherits it.
  const MessageTurn turn(options.messages_first);
  try {
    auto device = gloo::transport::tcp::CreateDevice(interface.address.c_str());
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context->setTimeout(timeout);
    FolderStore store(folder);
    context->connectFullMesh(store, device);
    const Clock::time_point zero = common_zero(context, all_share(&Introduction::host));
    auto link = std::make_shared<Link>(context, timeout, zero, options.messages_first);
    return {std::make_unique<GlooCommunicator>(std::move(link), options.rank, options.size, 0),
            interface.name};
  } catch (const std::exception& error) {
    throw std::runtime_error("cannot connect to the other workers through " + interface.name +
                             " (" + interface.address + "): " + reason_of(error));
  }
}

}  // namespace gradwire
