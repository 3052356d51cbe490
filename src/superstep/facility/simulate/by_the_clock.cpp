// The same events by the clock of a world in which commands do the work.
#include <algorithm>
#include <limits>
#include <optional>

#include "superstep/facility/simulate/engine.h"

namespace superstep::facility {

// A command has ended; of a machine that is not here its work goes on until its simulated time is over.
void Engine::command_ended(std::uint32_t f) {
  const auto t = static_cast<std::size_t>(firings_[f].task);
  firings_[f].ending = Firing::Ending::done;
  const double until = firings_[f].begun + (task_at(t).job ? start_of(t) : 0) + firings_[f].left;
  if (world_->paced(t) && until > now_) return calendar_.enter(until, {Event::Kind::stop, f});
  stop(f);
}

// Whether a command has ended before the next event; else that is due.
bool Engine::wait_for_next_event() {
  const double until = calendar_.empty() ? std::numeric_limits<double>::infinity() : calendar_.next_time();
  const std::optional<std::uint32_t> ended = world_->wait(until);
  if (!ended) return false;
  now_ = std::max(now_, world_->now());
  command_ended(*ended);
  return true;
}

// Items that no firing has taken are where they were going; sources go on after their last one.
void Engine::restore() {
  const Restored restored = world_->restore();
  now_ = restored.now;
  const auto give = [&](std::size_t producer, const std::vector<Restored::Item>& items) {
    for (const auto& group : deliveries_.groups(producer)) {
      for (const Restored::Item& item : items) {
        for (const auto& [t, input] : group.takers) {
          if (item.taken_by[t]) continue;
          inboxes_[t][input].items.push_back(
              {.cut = item.cut, .arrived = now_, .course = {.born = item.born}, .id = item.id});
          inboxes_[t][input].weight += 1;
        }
        for (const auto& [t, use] : group.users) used_[t][use] = {true, item.cut, item.id};
      }
    }
  };
  for (std::size_t s = 0; s < sources_.size(); ++s) give(deliveries_.of_source(s), restored.of_sources[s]);
  for (std::size_t t = 0; t < inboxes_.size(); ++t) give(deliveries_.of_task(t), restored.of_tasks[t]);
  for (std::size_t t = 0; t < inboxes_.size(); ++t)
    if (task_at(t).trigger == Trigger::items) try_items(t);
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    sources_[s].given = static_cast<double>(restored.of_sources[s].size());
    if (sources_[s].given >= sources_[s].most)
      producer_is_done(deliveries_.of_source(s));
    else
      calendar_.enter(std::max(now_, start_of_item(s, sources_[s].given)),
                      {Event::Kind::source, static_cast<std::uint32_t>(s)});
  }
}

Simulated run_in(World& world, const Plan& plan, const SimulationSettings& settings) {
  return Engine(plan, settings, &world).run();
}

}  // namespace superstep::facility
