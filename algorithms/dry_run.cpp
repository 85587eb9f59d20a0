#include "algorithms/dry_run.h"

#include <memory>

namespace gradwire {

namespace {

class DryCommunicator final : public Communicator {
 public:
  DryCommunicator(int rank, int size, int lane) : Communicator(rank, size, lane) {}
  bool carries_data() const override { return false; }

 private:
  void do_isend(int /*to*/, std::span<const std::byte> /*payload*/, std::uint32_t /*id*/) override {
  }
  void do_irecv(int /*from*/, std::span<std::byte> /*buffer*/, std::uint32_t /*id*/) override {}
  void do_wait(std::uint32_t /*id*/) override {}
  void do_charge(Phase /*phase*/, const Charge& /*charge*/) override {}
  void do_start(std::function<void(Communicator&)> job) override { job(second_lane()); }
  void do_finish() override {}
  double clock_s() const override { return 0; }
  std::unique_ptr<Communicator> make_lane() override {
    return std::make_unique<DryCommunicator>(rank(), size(), 1);
  }
};

}  // namespace

WorkerRecording record_dry(int rank, int size, const std::function<void(Communicator&)>& worker) {
  WorkerRecording recording;
  DryCommunicator comm(rank, size, 0);
  comm.record_to(&recording);
  worker(comm);
  return recording;
}

Traffic dry_traffic(int rank, int size, const std::function<void(Communicator&)>& worker) {
  DryCommunicator comm(rank, size, 0);
  worker(comm);
  return comm.account().traffic;
}

}  // namespace gradwire
