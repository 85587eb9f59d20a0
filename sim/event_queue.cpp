#include "sim/event_queue.h"

#include <algorithm>
#include <limits>

namespace gradwire {

std::uint32_t EventQueue::open_bucket(double date_s) {
  if (free_buckets_.empty()) {
    free_buckets_.push_back(static_cast<std::uint32_t>(buckets_.size()));
    buckets_.emplace_back();
  }
  const std::uint32_t bucket = free_buckets_.back();
  free_buckets_.pop_back();
  buckets_[bucket] = {date_s, kNone, kNone};
  heap_.push_back({date_s, order_++, bucket});
  std::push_heap(heap_.begin(), heap_.end());
  return bucket;
}

void EventQueue::pop(std::vector<std::uint32_t>& items) {
  std::pop_heap(heap_.begin(), heap_.end());
  const std::uint32_t bucket = heap_.back().bucket;
  heap_.pop_back();
  items.clear();
  for (std::uint32_t node = buckets_[bucket].first; node != kNone;) {
    const std::uint32_t next = nodes_[node].next;
    items.push_back(nodes_[node].item);
    nodes_[node].next = free_node_;
    free_node_ = node;
    node = next;
  }
  buckets_[bucket].date_s = std::numeric_limits<double>::quiet_NaN();  // closed
  free_buckets_.push_back(bucket);
}

}  // namespace gradwire
