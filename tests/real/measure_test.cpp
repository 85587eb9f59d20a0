// A calibration's measurements over loopback: what they count, not how long it takes.
#include "real/measure.h"

#include <catch2/catch.hpp>

#include "algorithms/serial.h"
#include "real/launch.h"

using namespace gradwire;

namespace {

// Worker 0's number, and the messages that it has sent until then.
std::pair<double, std::int64_t> run(int workers,
                                    const std::function<double(Communicator&)>& measure) {
  const auto all = run_on_mesh(workers, {}, {}, [&](const Mesh& mesh) {
    ByteWriter out;
    out.put(measure(*mesh.comm));
    out.put(mesh.comm->account().traffic.messages_sent);
    return out.take();
  });
  ByteReader in(all.front());
  const auto value = in.get<double>();
  return {value, in.get<std::int64_t>()};
}

}  // namespace

TEST_CASE("Long bursts of messages cost more processor time than short ones, on either lane") {
  const bool second_lane = GENERATE(false, true);
  const auto cost = [&](int messages) {
    return run(3, [&](Communicator& comm) { return measure_burst(comm, second_lane, messages); });
  };
  const auto [short_s, short_messages] = cost(1);
  const auto [long_s, long_messages] = cost(30);
  CHECK(long_s > short_s);
  CHECK(long_messages - short_messages == 310 * 29);  // ten bursts to warm up, 300
}

TEST_CASE("A ping-pong counts half round trips but the first, wherever it runs") {
  const auto [samples, messages] = run(3, [](Communicator& comm) {
    PingPong found;
    comm.start([&](Communicator& lane) { found = measure_ping_pong(lane, 1000, 20); });
    comm.finish();
    for (const double one_way_s : found.one_way_s)
      if (!(one_way_s > 0)) return 0.0;
    return static_cast<double>(found.one_way_s.size());
  });
  CHECK(samples == 19);
  CHECK(messages >= 20);
}

TEST_CASE("A queue is measured by messages beside a stream that ends with them") {
  const auto [queue_s, messages] =
      run(3, [](Communicator& comm) { return measure_queue(comm, 4); });
  CHECK(queue_s > -0.1);  // nothing queues here
  CHECK(queue_s < 0.1);
  CHECK(messages >= 4 + 2 * 4);
}
