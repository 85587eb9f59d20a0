#include "real/gloo_communicator.h"

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <algorithm>
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

// Calls `ring` at the deadline unless it goes before.
class Alarm {
 public:
  Alarm(Clock::time_point deadline, std::function<void()> ring)
      : thread_([deadline, ring = std::move(ring)](const std::stop_token& stop) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any stopped;
          stopped.wait_until(lock, stop, deadline, [] { return false; });
          if (!stop.stop_requested()) ring();
        }) {}

 private:
  std::jthread thread_;
};

// Which message of a lane between two workers this is, and of how many bytes.  Gloo delivers what
// comes for a slot: a short message without a word, a long one by ending the process.  With the
// size in it, messages that do not fit never meet.  The highest bit keeps Gloo's own slots apart.
struct SlotName {
  int lane;
  std::uint16_t number;  // modulo 2^16
  std::size_t bytes;

  std::uint64_t slot() const {
    return kOurs | static_cast<std::uint64_t>(bytes) << kBytesBit |
           static_cast<std::uint64_t>(number) << 1U | static_cast<unsigned>(lane);
  }
  // The bytes of another slot if it is for the same message.
  std::optional<std::size_t> bytes_of_same(std::uint64_t other) const {
    const std::uint64_t bytes_of_other = (other & ~kOurs) >> kBytesBit;
    if (SlotName{lane, number, bytes_of_other}.slot() != other) return std::nullopt;
    return bytes_of_other;
  }

 private:
  static constexpr std::uint64_t kOurs = 1ULL << 63U;
  static constexpr unsigned kBytesBit = 17;
};

// Connections to all other workers.  Gloo's own full mesh waits for one after another, each five
// times its timeout.
class MeshContext final : public gloo::Context {
 public:
  using gloo::Context::Context;

  void connect(const std::shared_ptr<gloo::transport::Device>& device, Rendezvous& folder,
               std::chrono::milliseconds timeout) {
    device_ = device;
    transportContext_ = device->createContext(rank, size);
    transportContext_->setTimeout(timeout);
    std::vector<std::string> addresses(static_cast<std::size_t>(size));
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      if (Clock::now() >= folder.deadline())  // the kernel searches long where ports are short
        throw std::runtime_error("no port for every worker within " + seconds(timeout));
      const std::vector<char> bytes = transportContext_->createPair(other)->address().bytes();
      addresses[static_cast<std::size_t>(other)] = {bytes.begin(), bytes.end()};
    }
    ByteWriter out;
    out.put_strings(addresses);
    folder.put(key(rank), out.take());
    const Alarm alarm(folder.deadline(), [this] { closeConnections(); });
    for (int other = 0; other < size; ++other)
      if (other != rank) connect_to(other, folder, timeout);
  }

  // The size that the peer means for a message of ours that waits, as far as it has said so.
  std::optional<std::size_t> size_at_peer(int peer, const SlotName& name, bool peer_sends) {
    struct Open : gloo::transport::Context {
      static auto mutex() { return &Open::mutex_; }
      static auto operations() { return &Open::pendingOperations_; }
    };
    const std::scoped_lock lock((*transportContext_).*Open::mutex());
    for (const auto& tally : (*transportContext_).*Open::operations()) {
      const auto& ranks = peer_sends ? tally.getSendList() : tally.getRecvList();
      if (std::find(ranks.begin(), ranks.end(), peer) == ranks.end()) continue;
      if (const auto bytes = name.bytes_of_same(tally.slot)) return bytes;
    }
    return std::nullopt;
  }

 private:
  static std::string key(int worker) { return "mesh-" + std::to_string(worker); }

  void connect_to(int other, Rendezvous& folder, std::chrono::milliseconds timeout) {
    const std::string name = "worker " + std::to_string(other);
    const auto addresses = ByteReader(folder.get(key(other))).get_strings();
    std::string reason;
    try {
      const std::string& address = addresses.at(static_cast<std::size_t>(rank));
      getPair(other)->connect({address.begin(), address.end()});
    } catch (const std::exception& error) {
      reason = reason_of(error);
    }
    if (Clock::now() >= folder.deadline())
      throw std::runtime_error(name + " did not connect within " + seconds(timeout));
    if (!reason.empty()) throw std::runtime_error(name + ": " + reason);
  }
};

// What the lanes of one worker share.  When one lane fails, the other must not wait for its
// timeout, and no message may arrive in memory that unwinding has freed.
class Link {
 public:
  Link(std::shared_ptr<MeshContext> context, std::chrono::milliseconds timeout,
       Clock::time_point zero, bool messages_first)
      : context_(std::move(context)),
        timeout_(timeout),
        zero_(zero),
        messages_first_(messages_first) {}

  MeshContext& context() { return *context_; }
  const std::shared_ptr<MeshContext>& shared_context() { return context_; }
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

  // Closes all connections and wakes the lanes, but for one inside a collective of Gloo's, which
  // keeps its timeout; later failures are its consequences.
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
  std::shared_ptr<MeshContext> context_;
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

class GlooCommunicator final : public Communicator, private NativeCollectives {
 public:
  GlooCommunicator(std::shared_ptr<Link> link, int rank, int size, int lane)
      : Communicator(rank, size, lane),
        link_(std::move(link)),
        messages_(static_cast<std::size_t>(size)),
        jobs_(*link_) {}

 private:
  struct Pending {
    std::unique_ptr<UnboundBuffer> buffer;
    bool is_send = false;
    int peer = -1;
    SlotName name{};
  };
  struct Messages {
    std::uint16_t sent = 0, received = 0;  // modulo 2^16
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
    Messages& past = messages_[static_cast<std::size_t>(peer)];
    const std::uint16_t number = is_send ? past.sent++ : past.received++;
    pending_[id] = {link_->context().createUnboundBuffer(memory.data(), memory.size()),
                    is_send,
                    peer,
                    {lane_index(), number, memory.size()}};
    UnboundBuffer& buffer = *pending_[id].buffer;
    const std::uint64_t slot = pending_[id].name.slot();
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
    if (const std::string earlier = link_->failure(); !earlier.empty())
      throw std::runtime_error(earlier);
    const std::string peer = "worker " + std::to_string(pending.peer);
    if (const auto other =
            link_->context().size_at_peer(pending.peer, pending.name, !pending.is_send);
        other && *other != pending.buffer->size) {
      const std::string message =
          "worker " + std::to_string(rank()) + (pending.is_send ? " sends " : " expects ") +
          std::to_string(pending.buffer->size) + " bytes" +
          (pending.is_send ? " to " + peer + ", which expects " : " from " + peer + " and gets ") +
          std::to_string(*other);
      link_->fail(message);
      throw std::logic_error(message);
    }
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
  NativeCollectives* native() override { return size() > 1 ? this : nullptr; }

  void all_reduce(std::span<Scalar> values) override {
    gloo::AllreduceOptions options(link_->shared_context());
    options.setOutput(values.data(), values.size());
    void (*const sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<Scalar>;
    options.setReduceFunction(sum);
    run("all-reduce", values.size_bytes(), options, [&] { gloo::allreduce(options); });
  }
  void all_gather(std::span<std::byte> all, std::span<const std::size_t> sizes) override {
    auto* const data = reinterpret_cast<char*>(all.data());  // NOLINT(*-reinterpret-cast)
    if (std::equal(sizes.begin() + 1, sizes.end(), sizes.begin())) {
      gloo::AllgatherOptions options(link_->shared_context());
      options.setOutput(data, all.size());
      return run("all-gather", all.size(), options, [&] { gloo::allgather(options); });
    }
    gloo::AllgathervOptions options(link_->shared_context());
    options.setOutput(data, std::vector<std::size_t>(sizes.begin(), sizes.end()));
    run("all-gather", all.size(), options, [&] { gloo::allgatherv(options); });
  }
  void broadcast(int root, std::span<std::byte> buffer) override {
    gloo::BroadcastOptions options(link_->shared_context());
    options.setRoot(root);
    auto* const data = reinterpret_cast<char*>(buffer.data());  // NOLINT(*-reinterpret-cast)
    options.setOutput(data, buffer.size());
    run("broadcast", buffer.size(), options, [&] { gloo::broadcast(options); });
  }

  // Workers that mean different sizes or collectives do not meet: their tags differ, but for one
  // chance in 32768.
  template <class Options>
  void run(const std::string& name, std::size_t bytes, Options& options,
           const std::function<void()>& collective) {
    const MessageTurn turn(link_->messages_first());
    const std::string what = name + " of " + std::to_string(bytes) + " bytes";
    const auto kind = static_cast<std::uint32_t>(std::hash<std::string>()(what));
    options.setTag(kind << 17U | static_cast<std::uint32_t>(collectives_++) << 1U |
                   static_cast<std::uint32_t>(lane_index()));
    options.setTimeout(link_->timeout());
    try {
      link_->set_waiting(lane_index(), nullptr);
      collective();
    } catch (const std::exception& error) {
      const std::string peers =
          size() == 2 ? "worker " + std::to_string(1 - rank()) : std::string("a worker");
      link_->fail("lost " + peers + " in Gloo's " + what + ": " + reason_of(error));
      throw std::runtime_error(link_->failure());
    }
  }

  std::shared_ptr<Link> link_;      // shared by the lanes
  std::vector<Pending> pending_;    // by request
  std::vector<Messages> messages_;  // by peer
  std::uint16_t collectives_ = 0;   // run so far, modulo 2^16
  JobThread jobs_;
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
    auto context = std::make_shared<MeshContext>(options.rank, options.size);
    context->connect(device, folder, timeout);
    context->setTimeout(std::max(
        std::chrono::milliseconds(1),
        std::chrono::duration_cast<std::chrono::milliseconds>(folder.deadline() - Clock::now())));
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
