#include "real/delay_switch.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>

namespace gradwire {

namespace {

constexpr std::size_t kVirtio_bytes = sizeof(VirtioHeader);
constexpr std::size_t kLargestPiece_bytes = kVirtio_bytes + (1U << 17U);
constexpr MacAddress kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

double transfer_s(std::size_t bytes, double bit_per_s) {
  return bit_per_s > 0 ? 8.0 * static_cast<double>(bytes) / bit_per_s : 0;
}

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

timespec to_timespec(double s) {
  const double whole = std::floor(s);
  return {static_cast<time_t>(whole), static_cast<decltype(timespec::tv_nsec)>((s - whole) * 1e9)};
}

// Ethernet's to TCP's; header_bytes is only a hint.
std::size_t headers_bytes(std::span<const std::byte> piece, const VirtioHeader& virtio) {
  constexpr std::size_t kDataOffset = 12;  // in TCP's header, in words of 4 bytes
  const std::size_t at = kVirtio_bytes + virtio.checksum_start + kDataOffset;
  const auto words = at < piece.size() ? std::to_integer<std::size_t>(piece[at] >> 4) : 0;
  return std::min(virtio.checksum_start + 4 * words, piece.size() - kVirtio_bytes);
}

double shortest_way_s(const std::vector<SwitchPort>& ports) {
  std::vector<double> delays_s(ports.size());
  std::transform(ports.begin(), ports.end(), delays_s.begin(), [](auto& p) { return p.delay_s; });
  std::sort(delays_s.begin(), delays_s.end());
  return delays_s.size() < 2 ? 0 : delays_s[0] + delays_s[1];
}

}  // namespace

WireFrames wire_frames(std::span<const std::byte> piece) {
  VirtioHeader virtio;
  std::memcpy(&virtio, piece.data(), kVirtio_bytes);
  const std::size_t all = piece.size() - kVirtio_bytes;
  const std::size_t headers = headers_bytes(piece, virtio);
  if (virtio.gso_type == 0 || virtio.segment_bytes == 0 || all <= headers + virtio.segment_bytes)
    return {1, all, all};
  const std::size_t count = (all - headers + virtio.segment_bytes - 1) / virtio.segment_bytes;
  return {count, headers + virtio.segment_bytes, all - (count - 1) * virtio.segment_bytes};
}

MacAddress mac_of_port(std::size_t port) {  // locally administered
  return {0x02,
          0x67,
          0x77,
          0,
          static_cast<std::uint8_t>(port >> 8U),
          static_cast<std::uint8_t>(port & 0xffU)};
}

DelaySwitch::DelaySwitch(std::vector<SwitchPort> ports)
    : ports_(std::move(ports)), clocks_(ports_.size()), shortest_way_s_(shortest_way_s(ports_)) {}

double DelaySwitch::ready_s(std::size_t port) const { return clocks_[port].up_free_s - kLead_s; }

void DelaySwitch::accept(std::size_t port, std::span<const std::byte> piece, double now_s) {
  MacAddress to{};
  if (piece.size() < kVirtio_bytes + 2 * to.size()) return;
  std::memcpy(to.data(), piece.data() + kVirtio_bytes, to.size());
  const WireFrames frames = wire_frames(piece);
  const SwitchPort& from = ports_[port];
  double& free_s = clocks_[port].up_free_s;
  const double start_s = std::max(now_s, free_s);
  const double first_s = start_s + transfer_s(frames.bytes, from.up_bit_per_s);
  const std::size_t bytes = (frames.count - 1) * frames.bytes + frames.last_bytes;
  free_s = start_s + transfer_s(bytes, from.up_bit_per_s);
  for (std::size_t p = 0; p < ports_.size(); ++p)
    if (p != port && (to == mac_of_port(p) || to == kBroadcast))
      travelling_.emplace(
          std::pair(first_s + from.delay_s + ports_[p].delay_s, accepted_++),
          Transit{.from = port, .to = p, .piece = {piece.begin(), piece.end()}, .frames = frames});
}

std::optional<std::pair<std::size_t, Piece>> DelaySwitch::deliver(double now_s) {
  // Nothing that is yet to be accepted can overtake what is so close to its queue.
  while (!travelling_.empty() && travelling_.begin()->first.first - shortest_way_s_ <= now_s)
    enqueue_frame(travelling_.extract(travelling_.begin()));
  if (arriving_.empty() || arriving_.begin()->first.first > now_s) return std::nullopt;
  Transit arrived = std::move(arriving_.extract(arriving_.begin()).mapped());
  return std::pair(arrived.to, std::move(arrived.piece));
}

double DelaySwitch::next_event_s() const {
  double next_s = std::numeric_limits<double>::infinity();
  for (const Transits* some : {&travelling_, &arriving_})
    if (!some->empty()) next_s = std::min(next_s, some->begin()->first.first);
  return next_s;
}

// Frames are taken in the order of their own times, however late the caller is: lateness does not
// add up.
void DelaySwitch::enqueue_frame(Transits::node_type next) {
  Transit& transit = next.mapped();
  double& time_s = next.key().first;
  const SwitchPort& port = ports_[transit.to];
  const auto bytes_of = [&](std::size_t frame) {
    return frame + 1 < transit.frames.count ? transit.frames.bytes : transit.frames.last_bytes;
  };
  const std::size_t bytes = bytes_of(transit.queued++);
  double& free_s = clocks_[transit.to].down_free_s;
  const double start_s = std::max(time_s, free_s);
  const double queued_bytes = (start_s - time_s) * port.down_bit_per_s / 8;
  if (queued_bytes + static_cast<double>(bytes) > static_cast<double>(port.queue_bytes)) {
    dropped_ += static_cast<std::int64_t>(transit.frames.count);
    return;
  }
  free_s = start_s + transfer_s(bytes, port.down_bit_per_s);
  const bool last = transit.queued == transit.frames.count;
  time_s = last ? free_s
                : time_s + transfer_s(bytes_of(transit.queued), ports_[transit.from].up_bit_per_s);
  (last ? arriving_ : travelling_).insert(std::move(next));
}

void run_delay_switch(const std::vector<SwitchPort>& ports, const std::vector<int>& taps) {
  constexpr double kEarly_s = 20e-6;  // not worth a sleep
  prctl(PR_SET_TIMERSLACK, 1);
  DelaySwitch model(ports);
  std::vector<pollfd> watched(taps.size());
  Piece buffer(kLargestPiece_bytes);
  for (;;) {
    double now_s = clock_s();
    while (const auto piece = model.deliver(now_s + kEarly_s)) {
      // A device that is down or full loses the frames, as a cable would.
      [[maybe_unused]] const ssize_t written =
          write(taps[piece->first], piece->second.data(), piece->second.size());
    }
    double wake_s = model.next_event_s();
    for (std::size_t p = 0; p < taps.size(); ++p) {
      const double ready_s = model.ready_s(p);
      watched[p] = {ready_s <= now_s ? taps[p] : -1, POLLIN, 0};
      if (ready_s > now_s) wake_s = std::min(wake_s, ready_s + DelaySwitch::kLead_s / 2);
    }
    const timespec pause =
        std::isinf(wake_s) ? timespec{} : to_timespec(std::max(0.0, wake_s - clock_s()));
    if (ppoll(watched.data(), watched.size(), std::isinf(wake_s) ? nullptr : &pause, nullptr) <= 0)
      continue;
    for (std::size_t p = 0; p < taps.size(); ++p) {
      if ((watched[p].revents & POLLIN) == 0) continue;
      now_s = clock_s();
      while (model.ready_s(p) <= now_s) {
        const ssize_t n = read(taps[p], buffer.data(), buffer.size());
        if (n <= 0) break;
        model.accept(p, std::span(buffer).first(static_cast<std::size_t>(n)), now_s);
      }
    }
  }
}

}  // namespace gradwire
