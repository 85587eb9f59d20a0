#include "sim/flow_network.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gradwire {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUndecided = -1;
constexpr std::uint32_t kNone = UINT32_MAX;
}  // namespace

FlowNetwork::FlowNetwork(const RouteTable& routes) {
  links_.reserve(routes.links().size());
  for (const RouteTable::Link& link : routes.links())
    links_.push_back({.bandwidth = link.bandwidth_byte_per_s, .shared = link.shared, .flows = {}});
}

FlowNetwork::Path FlowNetwork::path(std::span<const std::uint32_t> links) const {
  Path path{.links = links, .bound_byte_per_s = kInfinity, .own_bound_byte_per_s = kInfinity};
  for (const std::uint32_t index : links) {
    const Link& link = links_[index];
    path.bound_byte_per_s = std::min(path.bound_byte_per_s, link.bandwidth);
    if (!link.shared)
      path.own_bound_byte_per_s = std::min(path.own_bound_byte_per_s, link.bandwidth);
  }
  return path;
}

void FlowNetwork::touch(std::uint32_t link) {
  if (links_[link].dirty) return;
  links_[link].dirty = true;
  dirty_.push_back(link);
}

void FlowNetwork::start(std::uint32_t id, const Path& path, double bytes, double now_s,
                        EventQueue& queue) {
  if (flows_.size() <= id) {
    flows_.resize(id + 1);
    new_rate_.resize(id + 1);
  }
  Flow& flow = flows_[id];
  flow = {.path = &path, .remaining_bytes = bytes, .since_s = now_s, .active = true};
  bool alone = true;
  if (bytes > 0) {
    for (const std::uint32_t index : path.links) {
      Link& link = links_[index];
      if (!link.shared) continue;
      if (!link.flows.empty()) {
        touch(index);
        alone = false;
      }
      link.flows.push_back(id);
    }
  }
  if (!alone) {
    flow.end_s = kInfinity;
    return;
  }
  flow.rate = path.bound_byte_per_s;
  flow.end_s = now_s + bytes / flow.rate;
  queue.push(flow.end_s, id);
}

void FlowNetwork::end(std::uint32_t id) {
  Flow& flow = flows_[id];
  flow.active = false;
  for (const std::uint32_t index : flow.path->links) {
    Link& link = links_[index];
    const auto at = std::find(link.flows.begin(), link.flows.end(), id);
    if (at == link.flows.end()) continue;  // not shared, or a message of no bytes
    *at = link.flows.back();
    link.flows.pop_back();
    if (!link.flows.empty()) touch(index);
  }
}

void FlowNetwork::share(double now_s, EventQueue& queue) {
  contended_ = contended_ || !dirty_.empty();
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    if (!links_[dirty_[i]].dirty) continue;  // was connected with an earlier one
    gather(dirty_[i]);
    solve();
    for (const std::uint32_t id : component_flows_)
      if (move(id, now_s)) queue.push(flows_[id].end_s, id);
  }
  dirty_.clear();
}

// Gives the flow its new rate; whether that is another one.
bool FlowNetwork::move(std::uint32_t id, double now_s) {
  Flow& flow = flows_[id];
  if (new_rate_[id] == flow.rate) return false;
  flow.remaining_bytes = std::max(0.0, flow.remaining_bytes - flow.rate * (now_s - flow.since_s));
  flow.since_s = now_s;
  flow.rate = new_rate_[id];
  flow.end_s = now_s + flow.remaining_bytes / flow.rate;
  return true;
}

// All flows and shared links connected with the link; they are no longer dirty.
void FlowNetwork::gather(std::uint32_t first) {
  component_links_.assign(1, first);
  component_flows_.clear();
  links_[first].seen = true;
  for (std::size_t i = 0; i < component_links_.size(); ++i)
    for (const std::uint32_t id : links_[component_links_[i]].flows) {
      if (std::exchange(flows_[id].seen, true)) continue;
      component_flows_.push_back(id);
      for (const std::uint32_t link : flows_[id].path->links)
        if (links_[link].shared && !std::exchange(links_[link].seen, true))
          component_links_.push_back(link);
    }
  for (const std::uint32_t id : component_flows_) flows_[id].seen = false;
  for (const std::uint32_t link : component_links_) links_[link].seen = links_[link].dirty = false;
}

// Progressive filling: the tightest link decides about its flows, then the others share the rest.
void FlowNetwork::solve() {
  open_ = component_links_;
  for (const std::uint32_t index : open_) {
    Link& link = links_[index];
    link.left = link.bandwidth;
    link.waiting = static_cast<std::uint32_t>(link.flows.size());
  }
  bounded_.clear();
  for (const std::uint32_t id : component_flows_) {
    new_rate_[id] = kUndecided;
    if (flows_[id].path->own_bound_byte_per_s < kInfinity) bounded_.push_back(id);
  }
  const auto own_bound = [&](std::uint32_t id) { return flows_[id].path->own_bound_byte_per_s; };
  std::sort(bounded_.begin(), bounded_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return own_bound(a) != own_bound(b) ? own_bound(a) > own_bound(b) : a > b;
  });
  while (true) {
    while (!bounded_.empty() && new_rate_[bounded_.back()] != kUndecided) bounded_.pop_back();
    const std::uint32_t index = tightest_link();
    if (index == kNone) return;
    const double fair = links_[index].left / links_[index].waiting;
    if (!bounded_.empty() && own_bound(bounded_.back()) < fair) {
      give(bounded_.back(), own_bound(bounded_.back()));
      continue;
    }
    for (const std::uint32_t id : links_[index].flows)
      if (new_rate_[id] == kUndecided) give(id, fair);
  }
}

// Of the links that have undecided flows; kNone if there are none.
std::uint32_t FlowNetwork::tightest_link() {
  std::uint32_t tightest = kNone;
  double least = kInfinity;
  for (std::size_t i = 0; i < open_.size();) {
    const Link& link = links_[open_[i]];
    if (link.waiting == 0) {
      open_[i] = open_.back();
      open_.pop_back();
      continue;
    }
    const double fair = link.left / link.waiting;
    if (tightest == kNone || fair < least) {
      least = fair;
      tightest = open_[i];
    }
    ++i;
  }
  return tightest;
}

void FlowNetwork::give(std::uint32_t id, double rate) {
  new_rate_[id] = rate;
  for (const std::uint32_t index : flows_[id].path->links) {
    Link& link = links_[index];
    if (!link.shared) continue;
    link.left = std::max(0.0, link.left - rate);
    --link.waiting;
  }
}

}  // namespace gradwire
