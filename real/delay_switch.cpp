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

constexpr std::size_t kLargestFrame = 2048;
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

}  // namespace

MacAddress mac_of_port(std::size_t port) {  // locally administered
  return {0x02,
          0x67,
          0x77,
          0,
          static_cast<std::uint8_t>(port >> 8U),
          static_cast<std::uint8_t>(port & 0xffU)};
}

DelaySwitch::DelaySwitch(std::vector<SwitchPort> ports)
    : ports_(std::move(ports)), clocks_(ports_.size()) {}

double DelaySwitch::ready_s(std::size_t port) const { return clocks_[port].up_free_s - kLead_s; }

void DelaySwitch::accept(std::size_t port, const Frame& frame, double now_s) {
  MacAddress to{};
  if (frame.size() < 2 * to.size()) return;
  std::memcpy(to.data(), frame.data(), to.size());
  Clocks& clocks = clocks_[port];
  clocks.up_free_s =
      std::max(now_s, clocks.up_free_s) + transfer_s(frame.size(), ports_[port].up_bit_per_s);
  for (std::size_t p = 0; p < ports_.size(); ++p)
    if (p != port && (to == mac_of_port(p) || to == kBroadcast))
      schedule(clocks.up_free_s + ports_[port].delay_s + ports_[p].delay_s,
               {.arrived = false, .port = p, .frame = frame});
}

std::optional<std::pair<std::size_t, Frame>> DelaySwitch::deliver(double now_s) {
  while (!events_.empty() && events_.begin()->first.first <= now_s) {
    auto node = events_.extract(events_.begin());
    Event& event = node.mapped();
    if (event.arrived) return std::pair(event.port, std::move(event.frame));
    enqueue(node.key().first, std::move(event));
  }
  return std::nullopt;
}

double DelaySwitch::next_event_s() const {
  return events_.empty() ? std::numeric_limits<double>::infinity() : events_.begin()->first.first;
}

// Events are taken in the order of their own times, however late the caller is: lateness does not
// add up.
void DelaySwitch::enqueue(double time_s, Event event) {
  const SwitchPort& port = ports_[event.port];
  double& free_s = clocks_[event.port].down_free_s;
  const double start_s = std::max(time_s, free_s);
  const double queued_bytes = (start_s - time_s) * port.down_bit_per_s / 8;
  if (queued_bytes + static_cast<double>(event.frame.size()) >
      static_cast<double>(port.queue_bytes)) {
    ++dropped_;
    return;
  }
  free_s = start_s + transfer_s(event.frame.size(), port.down_bit_per_s);
  event.arrived = true;
  schedule(free_s, std::move(event));
}

void DelaySwitch::schedule(double time_s, Event event) {
  events_.emplace(std::pair(time_s, scheduled_++), std::move(event));
}

void run_delay_switch(const std::vector<SwitchPort>& ports, const std::vector<int>& taps) {
  constexpr double kEarly_s = 20e-6;  // not worth a sleep
  prctl(PR_SET_TIMERSLACK, 1);
  DelaySwitch model(ports);
  std::vector<pollfd> watched(taps.size());
  Frame buffer(kLargestFrame);
  for (;;) {
    double now_s = clock_s();
    while (auto frame = model.deliver(now_s + kEarly_s)) {
      // A device that is down or full loses the frame, as a cable would.
      [[maybe_unused]] const ssize_t written =
          write(taps[frame->first], frame->second.data(), frame->second.size());
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
        model.accept(p, Frame(buffer.begin(), buffer.begin() + n), now_s);
      }
    }
  }
}

}  // namespace gradwire
