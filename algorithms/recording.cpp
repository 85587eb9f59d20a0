#include "algorithms/recording.h"

#include <bit>
#include <limits>

namespace gradwire {

namespace {

// The finaliser of splitmix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

}  // namespace

std::size_t EventLog::Hash::operator()(const Event& event) const {
  return mix(event.value + mix(static_cast<std::uint64_t>(event.kind) |
                               static_cast<std::uint64_t>(event.phase) << 8U |
                               static_cast<std::uint64_t>(event.peer) << 16U));
}

std::size_t LaneRecording::Hash::operator()(const std::array<std::uint64_t, 4>& bits) const {
  return mix(bits[0] + mix(bits[1] + mix(bits[2])));
}

void EventLog::push_back(const Event& event) {
  // Most events come after the one that they came after before.
  const std::uint32_t guess = size_ > 0 ? successor_[last_] : 0;
  const std::uint32_t symbol =
      guess < distinct_.size() && distinct_[guess] == event ? guess : symbol_of(event);
  if (size_ > 0) successor_[last_] = symbol;
  last_ = symbol;
  append(symbol);
}

std::uint32_t EventLog::symbol_of(const Event& event) {
  const auto next = static_cast<std::uint32_t>(distinct_.size());
  const auto [found, is_new] = index_.try_emplace(event, next);
  if (is_new) {
    distinct_.push_back(event);
    successor_.push_back(0);
  }
  return found->second;
}

void EventLog::append(std::uint32_t symbol) {
  while (width_ < 4 && symbol >> (8 * width_) != 0) widen();
  for (unsigned byte = 0; byte < width_; ++byte)
    symbols_.push_back(static_cast<std::uint8_t>(symbol >> (8 * byte)));
  ++size_;
}

void EventLog::widen() {
  std::vector<std::uint8_t> wider;
  wider.reserve(2 * symbols_.size());
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    wider.push_back(symbols_[i]);
    if ((i + 1) % width_ == 0) wider.insert(wider.end(), width_, 0);
  }
  symbols_ = std::move(wider);
  width_ *= 2;
}

void LaneRecording::add_charge(Phase phase, const Charge& charge) {
  const auto [found, is_new] =
      charge_index_.try_emplace({std::bit_cast<std::uint64_t>(charge.work.flops),
                                 std::bit_cast<std::uint64_t>(charge.work.memory_bytes),
                                 std::bit_cast<std::uint64_t>(charge.work.seconds),
                                 std::bit_cast<std::uint64_t>(charge.cpu_s)},
                                charges.size());
  if (is_new) charges.push_back(charge);
  events.push_back({.kind = Event::Kind::kCharge, .phase = phase, .value = found->second});
}

}  // namespace gradwire
