// Dates and what happens then.  Most dates of a simulation are those of many events (all workers of
// a ring step end it together), so that the heap holds dates and each date a list.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace gradwire {

class EventQueue {
 public:
  void push(double date_s, std::uint32_t item) {
    Recent& recent = recent_[slot(date_s)];
    if (recent.bucket >= buckets_.size() || buckets_[recent.bucket].date_s != date_s)
      recent.bucket = open_bucket(date_s);
    Bucket& bucket = buckets_[recent.bucket];
    const std::uint32_t node = new_node(item);
    (bucket.last == kNone ? bucket.first : nodes_[bucket.last].next) = node;
    bucket.last = node;
  }
  bool empty() const { return heap_.empty(); }
  double next_date_s() const { return heap_.front().date_s; }
  /// The items of the next date in the order of their pushes, into `items`.
  void pop(std::vector<std::uint32_t>& items);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Node {
    std::uint32_t item;
    std::uint32_t next;
  };
  struct Bucket {
    double date_s;
    std::uint32_t first, last;
  };
  struct Entry {
    double date_s;
    std::uint64_t order;  // of two buckets of one date, the older first
    std::uint32_t bucket;
    friend bool operator<(const Entry& a, const Entry& b) {  // std::push_heap's top is the largest
      return a.date_s != b.date_s ? a.date_s > b.date_s : a.order > b.order;
    }
  };
  struct Recent {
    std::uint32_t bucket = kNone;
  };

  static std::size_t slot(double date_s) {
    return std::bit_cast<std::uint64_t>(date_s) * 0x9e3779b97f4a7c15ULL >> 54U;  // 10 bits
  }
  std::uint32_t open_bucket(double date_s);
  std::uint32_t new_node(std::uint32_t item) {
    if (free_node_ == kNone) {
      nodes_.push_back({item, kNone});
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_node_;
    free_node_ = nodes_[node].next;
    nodes_[node] = {item, kNone};
    return node;
  }

  std::array<Recent, 1024> recent_{};  // by a hash of the date: buckets that may still be open
  std::vector<Entry> heap_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> free_buckets_;
  std::vector<Node> nodes_;
  std::uint32_t free_node_ = kNone;
  std::uint64_t order_ = 0;
};

}  // namespace gradwire
