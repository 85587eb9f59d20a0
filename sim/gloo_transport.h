// Gloo's TCP transport in simulated time, from a calibration: every direction of a connection is a
// first-in-first-out stream, payload leaves when the receiver's note of readiness has come, its
// acknowledgements share the way back, and both ends' processor time competes with the mathematics
// (REAL_EXECUTION: "exact message schedules").
#pragma once

#include <array>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <utility>
#include <vector>

#include "sim/calibration.h"
#include "sim/cores.h"
#include "sim/loaded_platform.h"

namespace gradwire {

class GlooTransport {
 public:
  GlooTransport(Calibration calibration, const LoadedPlatform& platform, int workers);

  struct Message {
    std::size_t bytes = 0;
    void* payload = nullptr;
    bool posted = false;     ///< by the sender
    bool announced = false;  ///< by the receiver, as the sender knows it from ready_s on
    double ready_s = 0;
    int lane = 0;
    double wire_s = 0;  ///< what its bytes take at the port's rate, after what passed at once
    double left_s = 0;  ///< when its last byte left the sender's port
    simgrid::s4u::SemaphorePtr left = simgrid::s4u::Semaphore::create(0);
    simgrid::s4u::SemaphorePtr sent = simgrid::s4u::Semaphore::create(0);
    simgrid::s4u::SemaphorePtr arrived = simgrid::s4u::Semaphore::create(0);
  };
  using Handle = std::shared_ptr<Message>;

  /// Messages between two workers on one lane match in order.  The calling actor pays for them.
  Handle send(int from, int to, int lane, std::size_t bytes, void* payload);
  Handle receive(int from, int to, int lane);

  /// Lets the calling actor compute on the worker's machine.
  void compute(int worker, double seconds) { cores_of(worker).run(seconds, Urgency::kMathematics); }

 private:
  // A worker's port, towards the network or from it: what may pass at once.
  struct Bucket {
    double tokens = std::numeric_limits<double>::infinity();
    double idle_since_s = 0;
    double free_s = 0;  // when what it carries has left, if nothing else limits it
    int busy = 0;       // with so many messages
  };
  struct Item {
    // Either end of a message tells the other that it is ready; only the receiver's note is waited
    // for.
    enum class Kind : std::uint8_t { kSendNote, kReceiveNote, kPayload };
    double ready_s = 0;
    Kind kind = Kind::kPayload;
    Handle message;
  };
  struct Lane {
    std::deque<Handle> unsent;   // receives whose sends are to come
    std::deque<Handle> unasked;  // sends whose receives are to come
  };
  // What leaves one worker for another.
  struct Stream {
    int from = 0;
    int to = 0;
    double latency_s = 0;
    double byte_per_s = 0;
    bool switched = false;  // by a switch that stores frames and forwards them
    ByteCost cost;
    std::array<Lane, 2> lanes;
    std::deque<Item> items;       // by ready_s
    std::deque<Handle> incoming;  // payload on its way, for the receiving end
    simgrid::s4u::SemaphorePtr changed = simgrid::s4u::Semaphore::create(0);  // items
    simgrid::s4u::SemaphorePtr started = simgrid::s4u::Semaphore::create(0);  // incoming
    std::vector<simgrid::s4u::CommPtr> acknowledgements;
  };

  Stream& stream(int from, int to);
  Cores& cores_of(int worker);
  const MessageCost& cost_of(int lane) const {
    return calibration_.message_costs[static_cast<std::size_t>(lane)];
  }
  void continue_burst(int worker, int lane);
  void enqueue(Stream& stream, Item item);
  void enqueue_if_matched(Stream& stream, const Handle& message);
  Item next(Stream& stream);
  [[noreturn]] void run_sending_end(Stream& stream);
  [[noreturn]] void run_receiving_end(Stream& stream);
  double wire_bytes(double bytes) const;
  double queue_s(const Stream& stream) const;
  void carry_note(const Stream& stream);
  void transfer(Stream& stream, const Handle& message);
  void receive_bytes(const Stream& stream, const Message& message);
  double forwarding_s(const Stream& stream, std::size_t bytes) const;
  double take_burst(const Stream& stream, double bytes);
  void release_ports(const Stream& stream);

  Calibration calibration_;
  const LoadedPlatform& platform_;
  std::vector<std::unique_ptr<Cores>> machines_;  // or single cores, where workers are pinned
  std::vector<Bucket> up_, down_;                 // by worker
  std::array<std::vector<double>, 2> burst_end_;  // by lane and worker, see continue_burst()
  std::map<std::pair<int, int>, std::unique_ptr<Stream>> streams_;
};

}  // namespace gradwire
