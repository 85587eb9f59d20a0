// The Communicator of a worker that is a SimGrid actor: messages are SimGrid transfers, charges are
// simulated time (NETWORK_MODEL: "the recipe").
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithms/communicator.h"
#include "sim/child.h"
#include "sim/compute_model.h"
#include "sim/gloo_transport.h"
#include "sim/loaded_platform.h"

namespace gradwire {

/// What the workers of one simulation share.
struct SimGridWorld {
  const LoadedPlatform& platform;
  const ComputeModel& compute;
  Child& child;
  std::vector<simgrid::s4u::ActorPtr> workers;  ///< by rank; all made before the simulation starts
  GlooTransport* transport = nullptr;           ///< of the calibrated network model
};

class SimGridCommunicator final : public Communicator {
 public:
  /// With `recorded`, charges take their measured processor time from there, in order.
  SimGridCommunicator(SimGridWorld& world, int rank, int size, int lane,
                      const WorkerRecording* recorded);

  /// At a worker's end: lets the second lane run dry.
  void close();

  /// "worker 3 waits for worker 4", both lanes, appended; nothing if it does not wait.
  void describe_waiting(std::vector<std::string>& lines) const;

 private:
  struct Message {
    std::vector<std::byte> bytes;
  };
  struct Pending {
    simgrid::s4u::CommPtr comm;
    GlooTransport::Handle transported;  // instead of comm
    bool is_send = false;
    int peer = -1;
    std::span<std::byte> buffer;
    Message* message = nullptr;
    double latency_s = 0;
  };
  struct Channel {
    simgrid::s4u::Mailbox* mailbox = nullptr;
    double latency_s = 0;
  };

  void do_isend(int to, std::span<const std::byte> payload, std::uint32_t id) override;
  void do_irecv(int from, std::span<std::byte> buffer, std::uint32_t id) override;
  void do_wait(std::uint32_t id) override;
  void do_charge(Phase phase, const Charge& charge) override;
  void do_start(std::function<void(Communicator&)> job) override;
  void do_finish() override;
  double clock_s() const override;
  std::unique_ptr<Communicator> make_lane() override;

  Channel open_channel(int from, int to) const;
  Pending& pending(std::uint32_t id);
  void deliver(const Pending& receive) const;
  const Charge& recorded_charge();
  void run_jobs();

  SimGridWorld& world_;
  const WorkerRecording* recorded_;
  std::size_t next_event_ = 0;  // of the recording: where to look for the next charge
  std::unordered_map<int, Channel> outgoing_, incoming_;  // by peer
  std::deque<Pending> pending_;                           // by id; SimGrid keeps pointers into it
  const Pending* waiting_ = nullptr;
  SimGridCommunicator* lane_ = nullptr;  // the second lane, once made

  // Main lane only: the second lane's actor takes jobs from here; an empty one ends it.
  std::deque<std::function<void(Communicator&)>> jobs_;
  simgrid::s4u::ActorPtr lane_actor_;
  simgrid::s4u::SemaphorePtr jobs_started_, jobs_ended_;
  int jobs_running_ = 0;
};

}  // namespace gradwire
