#include "sim/gloo_transport.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace gradwire {

namespace s4u = simgrid::s4u;

namespace {

constexpr double kFrame_bytes = 1514;         // of Ethernet
constexpr double kFramePayload_bytes = 1448;  // of those, TCP's with time stamps
constexpr double kPreamble_bytes = 48;        // a note, or before a payload (gloo/transport/tcp)

double now_s() { return s4u::Engine::get_clock(); }

s4u::CommPtr start_flow(s4u::Host* from, s4u::Host* to, double bytes) {
  return s4u::Comm::sendto_async(from, to, static_cast<std::uint64_t>(std::max(bytes, 1.0)));
}

}  // namespace

GlooTransport::GlooTransport(Calibration calibration, const LoadedPlatform& platform, int workers)
    : calibration_(std::move(calibration)),
      platform_(platform),
      up_(static_cast<std::size_t>(workers)),
      down_(static_cast<std::size_t>(workers)) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  burst_end_.fill(std::vector<double>(static_cast<std::size_t>(workers), kNever));
  const Calibration& c = calibration_;
  const int machines = !c.one_machine ? workers : c.pinned ? c.cores : 1;
  for (int m = 0; m < machines; ++m)
    machines_.push_back(std::make_unique<Cores>(c.one_machine && c.pinned ? 1 : c.cores));
}

Cores& GlooTransport::cores_of(int worker) {
  if (calibration_.one_machine)
    return *machines_[static_cast<std::size_t>(worker) % machines_.size()];
  return *machines_[platform_.host_index(worker)];
}

GlooTransport::Stream& GlooTransport::stream(int from, int to) {
  auto& found = streams_[{from, to}];
  if (found != nullptr) return *found;
  found = std::make_unique<Stream>();
  Stream& made = *found;
  made.from = from;
  made.to = to;
  made.latency_s = platform_.injected_latency_s(from, to) + calibration_.latency_s;
  made.switched = calibration_.switch_s > 0 && made.latency_s > calibration_.latency_s;
  made.byte_per_s = platform_.route_byte_per_s(from, to);
  made.cost = calibration_.byte_cost(8 * made.byte_per_s);
  const std::string name = std::to_string(from) + ">" + std::to_string(to);
  s4u::Actor::create(name + " out", &platform_.host_of(from), [this, &made] {
    run_sending_end(made);
  })->daemonize();
  s4u::Actor::create(name + " in", &platform_.host_of(to), [this, &made] {
    run_receiving_end(made);
  })->daemonize();
  return made;
}

GlooTransport::Handle GlooTransport::send(int from, int to, int lane, std::size_t bytes,
                                          void* payload) {
  continue_burst(from, lane);
  cores_of(from).run(cost_of(lane).send_s, Urgency::kMessages);
  Stream& s = stream(from, to);
  Lane& queue = s.lanes[static_cast<std::size_t>(lane)];
  Handle message;
  if (queue.unsent.empty()) {
    message = queue.unasked.emplace_back(std::make_shared<Message>());
    message->announced = !calibration_.rendezvous;
  } else {
    message = std::move(queue.unsent.front());
    queue.unsent.pop_front();
  }
  message->bytes = bytes;
  message->payload = payload;
  message->posted = true;
  message->lane = lane;
  if (calibration_.rendezvous) enqueue(s, {now_s(), Item::Kind::kSendNote, nullptr});
  enqueue_if_matched(s, message);
  return message;
}

GlooTransport::Handle GlooTransport::receive(int from, int to, int lane) {
  continue_burst(to, lane);
  Lane& queue = stream(from, to).lanes[static_cast<std::size_t>(lane)];
  Handle message;
  if (queue.unasked.empty()) {
    message = queue.unsent.emplace_back(std::make_shared<Message>());
    message->announced = !calibration_.rendezvous;
  } else {
    message = std::move(queue.unasked.front());
    queue.unasked.pop_front();
  }
  if (calibration_.rendezvous)
    enqueue(stream(to, from), {now_s(), Item::Kind::kReceiveNote, message});
  return message;
}

// A message after mathematics finds caches cold and its threads asleep.
void GlooTransport::continue_burst(int worker, int lane) {
  constexpr double kCold_s = 1e-4;  // of mathematics
  double& end = burst_end_[static_cast<std::size_t>(lane)][static_cast<std::size_t>(worker)];
  Cores& cores = cores_of(worker);
  if (cores.mathematics_s() - end > kCold_s) cores.run(cost_of(lane).burst_s, Urgency::kMessages);
  end = cores.mathematics_s();
}

void GlooTransport::enqueue_if_matched(Stream& stream, const Handle& message) {
  if (message->posted && message->announced)
    enqueue(stream, {std::max(now_s(), message->ready_s), Item::Kind::kPayload, message});
}

void GlooTransport::enqueue(Stream& stream, Item item) {
  const auto later = std::find_if(stream.items.begin(), stream.items.end(),
                                  [&](const Item& other) { return other.ready_s > item.ready_s; });
  stream.items.insert(later, std::move(item));
  stream.changed->release();
}

GlooTransport::Item GlooTransport::next(Stream& stream) {
  for (;;) {
    if (stream.items.empty()) {
      stream.changed->acquire();
    } else if (const double pause_s = stream.items.front().ready_s - now_s(); pause_s > 0) {
      stream.changed->acquire_timeout(pause_s);
    } else {
      Item item = std::move(stream.items.front());
      stream.items.pop_front();
      return item;
    }
  }
}

void GlooTransport::run_sending_end(Stream& stream) {
  for (;;) {
    const Item item = next(stream);
    if (item.kind == Item::Kind::kPayload) {
      transfer(stream, item.message);
      continue;
    }
    const double wait_s = queue_s(stream);
    carry_note(stream);
    if (item.kind == Item::Kind::kSendNote) continue;
    item.message->announced = true;
    item.message->ready_s = now_s() + wait_s + stream.latency_s + forwarding_s(stream, 0);
    enqueue_if_matched(this->stream(stream.to, stream.from), item.message);
  }
}

double GlooTransport::wire_bytes(double bytes) const {
  const double headers_bytes = kFramePayload_bytes * (1 / calibration_.payload_share - 1);
  return bytes + headers_bytes * std::ceil(bytes / kFramePayload_bytes);
}

void GlooTransport::carry_note(const Stream& stream) {
  const double bytes = wire_bytes(kPreamble_bytes);
  if (const double to_carry = bytes - take_burst(stream, bytes); to_carry > 0)
    start_flow(&platform_.host_of(stream.from), &platform_.host_of(stream.to), to_carry)->wait();
  release_ports(stream);
}

// What a port has taken of other streams' payload leaves before a note.
double GlooTransport::queue_s(const Stream& stream) const {
  const double left_s = up_[static_cast<std::size_t>(stream.from)].free_s - now_s();
  return std::clamp(left_s, 0.0, calibration_.queue_bytes / stream.byte_per_s);
}

// What the system has taken of a message leaves without its sender.
void GlooTransport::transfer(Stream& stream, const Handle& message) {
  s4u::Host* const from = &platform_.host_of(stream.from);
  s4u::Host* const to = &platform_.host_of(stream.to);
  const auto bytes = static_cast<double>(message->bytes);
  const double all_bytes = wire_bytes(bytes + kPreamble_bytes);
  const double to_carry = all_bytes - take_burst(stream, all_bytes);
  message->wire_s = to_carry / stream.byte_per_s;
  double& free_s = up_[static_cast<std::size_t>(stream.from)].free_s;
  free_s = std::max(free_s, now_s()) + message->wire_s;
  const double buffered = std::min(to_carry, calibration_.send_buffer_bytes);
  stream.incoming.push_back(message);
  stream.started->release();
  auto& returning = stream.acknowledgements;
  returning.erase(std::remove_if(returning.begin(), returning.end(),
                                 [](const s4u::CommPtr& comm) { return comm->test(); }),
                  returning.end());
  if (const double back = calibration_.acknowledgement_share * bytes; back >= 1)
    returning.push_back(start_flow(to, from, back));
  s4u::CommPtr flow = start_flow(from, to, to_carry > buffered ? to_carry - buffered : buffered);
  cores_of(stream.from).run(stream.cost.send_s * bytes, Urgency::kMessages);
  if (to_carry > buffered) {
    flow->wait();
    flow = start_flow(from, to, buffered);
  }
  message->sent->release();
  flow->wait();
  release_ports(stream);
  message->left_s = now_s();
  message->left->release();
  cores_of(stream.from).run(cost_of(message->lane).background_s, Urgency::kMessages);
}

// Arriving bytes need their processor time as they pass: all at once it would keep mathematics from
// the core for as long.
void GlooTransport::receive_bytes(const Stream& stream, const Message& message) {
  constexpr double kPieceBytes = 65536, kMostPieces = 64;
  const auto bytes = static_cast<double>(message.bytes);
  const double pieces = std::clamp(std::floor(bytes / kPieceBytes), 1.0, kMostPieces);
  const double start_s = now_s();
  for (double piece = 0; piece < pieces; ++piece) {
    const double passed_s = start_s + message.wire_s * piece / pieces;
    if (passed_s > now_s()) s4u::this_actor::sleep_until(passed_s);
    cores_of(stream.to).run(stream.cost.receive_s * bytes / pieces, Urgency::kMessages);
  }
}

void GlooTransport::run_receiving_end(Stream& stream) {
  for (;;) {
    stream.started->acquire();
    const Handle message = std::move(stream.incoming.front());
    stream.incoming.pop_front();
    Cores& cores = cores_of(stream.to);
    receive_bytes(stream, *message);
    message->left->acquire();
    const double arrival_s =
        message->left_s + stream.latency_s + forwarding_s(stream, message->bytes);
    if (arrival_s > now_s()) s4u::this_actor::sleep_until(arrival_s);
    continue_burst(stream.to, message->lane);
    cores.run(cost_of(message->lane).receive_s, Urgency::kMessages);
    message->arrived->release();
    cores.run(cost_of(message->lane).background_s, Urgency::kMessages);
  }
}

// From a frame's last byte at the switch to its last byte behind it.
double GlooTransport::forwarding_s(const Stream& stream, std::size_t bytes) const {
  if (!stream.switched) return 0;
  const double last_bytes = wire_bytes(static_cast<double>(bytes) + kPreamble_bytes);
  return calibration_.switch_s + std::min(last_bytes, kFrame_bytes) / stream.byte_per_s;
}

// Tokens that both ports have saved up while they were idle; spends them and keeps the ports busy.
double GlooTransport::take_burst(const Stream& stream, double bytes) {
  const double most = stream.switched ? 0 : calibration_.burst_bytes(8 * stream.byte_per_s);
  double taken = bytes;
  for (Bucket* bucket :
       {&up_[static_cast<std::size_t>(stream.from)], &down_[static_cast<std::size_t>(stream.to)]}) {
    if (bucket->busy == 0) bucket->tokens += (now_s() - bucket->idle_since_s) * stream.byte_per_s;
    bucket->tokens = std::min(most, bucket->tokens);
    ++bucket->busy;
    taken = std::min(taken, bucket->tokens);
  }
  up_[static_cast<std::size_t>(stream.from)].tokens -= taken;
  down_[static_cast<std::size_t>(stream.to)].tokens -= taken;
  return taken;
}

void GlooTransport::release_ports(const Stream& stream) {
  for (Bucket* bucket :
       {&up_[static_cast<std::size_t>(stream.from)], &down_[static_cast<std::size_t>(stream.to)]}) {
    --bucket->busy;
    bucket->idle_since_s = now_s();
  }
}

}  // namespace gradwire
