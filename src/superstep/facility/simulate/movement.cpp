// Items on links and within sites.
#include <algorithm>
#include <cmath>

#include "superstep/facility/simulate/engine.h"

namespace superstep::facility {

void Engine::deliver(std::size_t producer, double bytes, const Item& item) {
  auto& groups = deliveries_.groups(producer);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    ++groups[g].under_way;
    std::uint32_t index = static_cast<std::uint32_t>(transfers_.size());
    if (free_transfers_.empty()) {
      transfers_.emplace_back();
    } else {
      index = free_transfers_.back();
      free_transfers_.pop_back();
    }
    transfers_[index] = {.producer = producer, .group = g, .bytes = bytes, .item = item};
    transfers_[index].item.arrived = now_;  // when it set off, until it is there
    const auto& route = groups[g].channels;
    if (route.empty() || bytes == 0) {
      transfers_[index].hop = route.size();
      double latency = 0;
      for (const std::size_t channel : route) latency += deliveries_.latency(channel);
      if (latency > 0)
        calendar_.enter(now_ + latency, {Event::Kind::arrive, index});
      else
        arrive(index);
      continue;
    }
    transfers_[index].begun = now_;
    channels_[route.front()].join(now_, bytes, index);
    reschedule(route.front());
  }
}

void Engine::reschedule(std::size_t channel) {
  const double at = channels_[channel].next();
  if (std::isfinite(at))
    calendar_.enter(std::max(at, now_),
                    {Event::Kind::channel, static_cast<std::uint32_t>(channel), channels_[channel].version});
}

void Engine::channel_is_due(const Event& event) {
  if (event.version != channels_[event.index].version) return;  // something has joined or left since
  const std::uint32_t through = channels_[event.index].leave(now_);
  reschedule(event.index);
  move_on(through);
}

// Through one channel: onto the next, after the latency of the one that it comes from.
void Engine::move_on(std::uint32_t index) {
  Transfer& transfer = transfers_[index];
  const auto& route = deliveries_.groups(transfer.producer)[transfer.group].channels;
  const std::size_t channel = route[transfer.hop];
  keep_span({.link = true, .what = static_cast<int>(channel), .begin = transfer.begun, .end = now_},
            result_.tasks.size() + channel);
  ++transfer.hop;
  calendar_.enter(now_ + deliveries_.latency(channel), {Event::Kind::arrive, index});
}

void Engine::arrive(std::uint32_t index) {
  Transfer& transfer = transfers_[index];
  auto& group = deliveries_.groups(transfer.producer)[transfer.group];
  if (transfer.hop < group.channels.size()) {
    const std::size_t channel = group.channels[transfer.hop];
    transfer.begun = now_;
    channels_[channel].join(now_, transfer.bytes, index);
    return reschedule(channel);
  }
  Item item = transfer.item;
  item.course.moved += now_ - item.arrived;
  item.arrived = now_;
  --group.under_way;
  free_transfers_.push_back(index);
  for (const auto& [t, use] : group.users) used_[t][use] = {true, item.cut, item.id};
  for (const auto& [t, input] : group.takers) receive(t, input, item);
  if (group.producer_done && group.under_way == 0)
    for (const auto& [t, input] : group.takers) close_input(t, input);
}

}  // namespace superstep::facility
