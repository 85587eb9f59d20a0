// What a worker called, in order: enough to repeat its traffic and charges without the mathematics.
// Each distinct call of a lane is stored once and referred to by one, two or four bytes, so that
// the 33 million messages of a ring of 4096 workers fit into memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "models/matrix.h"

namespace gradwire {

/// What a charge of mathematics was for.
enum class Phase : std::uint8_t { kForward, kBackward, kCompression, kReduction, kOptimizer };
inline constexpr std::size_t kPhases = 5;

/// One call of a worker on one of its lanes.
struct Event {
  enum class Kind : std::uint8_t {
    kSend,
    kReceive,
    kWait,
    kCharge,
    kStart,
    kJobEnd,
    kFinish,
    kStep
  };
  Kind kind;
  Phase phase = Phase::kForward;
  std::int32_t peer = 0;
  std::uint64_t value = 0;  ///< bytes of a message, id of a wait, index into the lane's charges

  friend bool operator==(const Event&, const Event&) = default;
};
inline constexpr std::size_t kEventKinds = 8;

struct Charge {
  Work work;
  double cpu_s = 0;  ///< measured processor time; 0 unless measuring
};

/// A sequence of events that costs one, two or four bytes for each, whichever holds the number of
/// distinct ones.
class EventLog {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Event;
    using difference_type = std::ptrdiff_t;
    using pointer = const Event*;
    using reference = const Event&;
    Iterator() = default;
    Iterator(const EventLog* log, std::size_t at) : log_(log), at_(at) {}
    reference operator*() const { return (*log_)[at_]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {log_, at_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const EventLog* log_ = nullptr;
    std::size_t at_ = 0;
  };

  void push_back(const Event& event);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Event& operator[](std::size_t i) const { return distinct_[symbol(i)]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

  /// The distinct events, by symbol.
  const std::vector<Event>& distinct() const { return distinct_; }
  std::uint32_t symbol(std::size_t i) const {
    if (width_ == 1) return symbols_[i];
    const std::uint8_t* bytes = symbols_.data() + i * width_;
    const std::uint32_t low = bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8U;
    if (width_ == 2) return low;
    return low | static_cast<std::uint32_t>(bytes[2]) << 16U |
           static_cast<std::uint32_t>(bytes[3]) << 24U;
  }
  /// All symbols, little-endian, symbol_bytes() each.
  const std::vector<std::uint8_t>& symbols() const { return symbols_; }
  unsigned symbol_bytes() const { return width_; }

 private:
  struct Hash {
    std::size_t operator()(const Event& event) const;
  };
  std::uint32_t symbol_of(const Event& event);
  void append(std::uint32_t symbol);
  void widen();

  std::vector<Event> distinct_;
  std::unordered_map<Event, std::uint32_t, Hash> index_;
  std::vector<std::uint32_t> successor_;  // the symbol that came after it the last time
  std::uint32_t last_ = 0;
  std::vector<std::uint8_t> symbols_;  // little-endian, width_ bytes each
  std::size_t size_ = 0;
  unsigned width_ = 1;
};

struct LaneRecording {
  EventLog events;
  std::vector<Charge> charges;  ///< the distinct ones

  void add(const Event& event) { events.push_back(event); }
  void add_charge(Phase phase, const Charge& charge);

 private:
  struct Hash {
    std::size_t operator()(const std::array<std::uint64_t, 4>& bits) const;
  };
  std::unordered_map<std::array<std::uint64_t, 4>, std::uint64_t, Hash> charge_index_;
};

struct WorkerRecording {
  std::array<LaneRecording, 2> lanes;  ///< main and second lane; jobs of the second end in kJobEnd
};

}  // namespace gradwire
