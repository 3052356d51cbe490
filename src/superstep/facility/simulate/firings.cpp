// Tasks at work: what triggers a firing, its queue, its devices, its end.
#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/facility/simulate/engine.h"

namespace superstep::facility {
namespace {

constexpr double whole = 1e-9;  // sums of fractions of items that are a whole one

}  // namespace

void Engine::receive(std::size_t t, std::size_t input, Item item) {
  Inbox& inbox = inboxes_[t][input];
  inbox.weight += item.weight;
  inbox.items.push_back(std::move(item));
  if (task_at(t).trigger == Trigger::items) try_items(t);
}

void Engine::try_items(std::size_t t) {
  while (true) {
    double firings = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < inboxes_[t].size(); ++i)
      firings = std::min(firings, std::floor(inboxes_[t][i].weight / task_at(t).inputs[i].every + whole));
    if (firings < 1) return;
    // Items that came together are worked on together; single ones one by one.
    const bool single = inboxes_[t].front().items.front().weight <= 1;
    const double factor = single ? 1 : firings;
    Item newest;
    std::vector<Taken> taken;
    take_for(t, factor, newest, taken);
    fire(t, factor, newest, std::move(taken));
  }
}

void Engine::take_for(std::size_t t, double firings, Item& newest, std::vector<Taken>& taken) {
  for (std::size_t i = 0; i < inboxes_[t].size(); ++i) {
    Inbox& inbox = inboxes_[t][i];
    double need = firings * task_at(t).inputs[i].every;
    while (need > whole && !inbox.items.empty()) {
      Item& first = inbox.items.front();
      if (first.arrived >= newest.arrived) newest = first;
      const double part = std::min(need, first.weight);
      need -= part;
      inbox.weight -= part;
      first.weight -= part;
      if (world_) taken.push_back({i, first.id});
      if (first.weight <= whole) inbox.items.pop_front();
    }
  }
}

// Everything that has come; false: nothing has.
bool Engine::take_all(std::size_t t, Item& newest, std::vector<Taken>& taken) {
  bool any = false;
  for (std::size_t i = 0; i < inboxes_[t].size(); ++i) {
    Inbox& inbox = inboxes_[t][i];
    for (const Item& item : inbox.items) {
      if (item.arrived >= newest.arrived) newest = item;
      if (world_) taken.push_back({i, item.id});
    }
    any |= !inbox.items.empty();
    inbox.items.clear();
    inbox.weight = 0;
  }
  return any;
}

std::uint32_t Engine::new_firing() {
  if (free_firings_.empty()) {
    firings_.emplace_back();
    return static_cast<std::uint32_t>(firings_.size() - 1);
  }
  const std::uint32_t index = free_firings_.back();
  free_firings_.pop_back();
  firings_[index] = {};
  return index;
}

void Engine::fire(std::size_t t, double factor, const Item& newest, std::vector<Taken> taken) {
  const std::uint32_t index = new_firing();
  Firing& firing = firings_[index];
  firing.task = static_cast<int>(t);
  firing.factor = factor;
  firing.cut = now_;
  firing.left = place(t).seconds.value * factors_[t] * factor;
  firing.course = newest.course;
  firing.course.gathered += now_ - newest.arrived;
  firing.taken = std::move(taken);
  ++pending_[t];
  enqueue(index);
}

// To the queue of its partition, and then to the devices.
void Engine::enqueue(std::uint32_t f) {
  const auto t = static_cast<std::size_t>(firings_[f].task);
  const bool limited = task_at(t).copies > 0 && !reserves(t);
  if (limited && copies_running_[t] >= task_at(t).copies) {
    firings_[f].asked = now_;
    held_back_[t].push_back(f);
    return;
  }
  copies_running_[t] += 1;
  const double wait = task_at(t).job ? wait_of(t) : 0;
  firings_[f].course.queued += wait;
  if (wait > 0) return calendar_.enter(now_ + wait, {Event::Kind::granted, f});
  firings_[f].asked = now_;
  pool(t).ask(f, place(t).devices);
  start_what_can(pool(t));
}

void Engine::ask(std::uint32_t f) {
  const auto t = static_cast<std::size_t>(firings_[f].task);
  firings_[f].asked = now_;
  pool(t).ask(f, place(t).devices);
  start_what_can(pool(t));
}

void Engine::start_what_can(Pool& from) {
  while (from.can_start()) start(from.start());
}

void Engine::start(std::uint32_t f) {
  Firing& firing = firings_[f];
  const auto t = static_cast<std::size_t>(firing.task);
  TaskFigures& figures = result_.tasks[t];
  firing.course.waited += now_ - firing.asked;
  firing.begun = now_;
  figures.first = std::min(figures.first, now_);
  if (!firing.started) {
    firing.started = true;
    figures.firings += firing.factor;
    for (const Used& used : used_[t]) {
      if (used.there)
        figures.ages.push_back(static_cast<float>(now_ - used.cut));
      else
        figures.without += firing.factor;
    }
  }
  const Partition& where = partition(t);
  const double start = task_at(t).job ? start_of(t) : 0;
  double lasts = start + firing.left;
  firing.ending = Firing::Ending::done;
  if (task_at(t).job && where.longest > 0 && lasts > where.longest) {
    lasts = where.longest;
    firing.ending = Firing::Ending::allotted;
  }
  if (settings_.draw > 0 && !where.fails.none()) {
    const double until = -std::log1p(-failures_.uniform()) * where.fails.every / place(t).devices;
    if (until < lasts) {
      lasts = until;
      firing.ending = Firing::Ending::failed;
    }
  }
  firing.worked = std::max(0.0, lasts - start);
  if (world_) {
    for (std::size_t u = 0; u < used_[t].size(); ++u)
      if (used_[t][u].there) firing.taken.push_back({u, used_[t][u].id, true});
    if (world_->begin(f, t, now_, firing.taken)) return;
  }
  calendar_.enter(now_ + lasts, {Event::Kind::stop, f});
}

void Engine::stop(std::uint32_t f) {
  Firing& firing = firings_[f];
  const auto t = static_cast<std::size_t>(firing.task);
  const auto p = static_cast<std::size_t>(place(t).partition);
  const double device_seconds = (now_ - firing.begun) * place(t).devices;
  result_.device_seconds[p] += device_seconds;
  if (!reserves(t)) result_.cost += device_seconds / 3600 * partition(t).price;
  if (plan_.power[p] > 0)
    result_.energy += device_seconds * plan_.power[p];
  else
    result_.energy_known = false;
  keep_span({.what = firing.task, .partition = static_cast<int>(p), .begin = firing.begun, .end = now_}, t);
  firing.course.computed += now_ - firing.begun;
  pool(t).give_back(place(t).devices);
  if (firing.ending == Firing::Ending::done) {
    finish_firing(f);
  } else {
    ++result_.tasks[t].restarts;
    const double step = task_at(t).checkpoint;
    double kept = firing.worked;  // work is saved before an allotted time ends
    if (firing.ending == Firing::Ending::failed)
      kept = step > 0 ? std::floor(firing.worked / step) * step : 0;
    firing.left -= kept;
    const double away = (firing.ending == Firing::Ending::failed ? partition(t).fails.lasts : 0) +
                        (task_at(t).job ? wait_of(t) : 0);
    firing.course.queued += away;
    calendar_.enter(now_ + away, {Event::Kind::granted, f});
  }
  start_what_can(pool(t));
}

void Engine::finish_firing(std::uint32_t f) {
  const Firing firing = firings_[f];
  const auto t = static_cast<std::size_t>(firing.task);
  free_firings_.push_back(f);
  TaskFigures& figures = result_.tasks[t];
  figures.last = now_;
  const double latency = now_ - firing.course.born;
  if (latency > figures.slowest.total()) figures.slowest = firing.course;
  figures.latencies.push_back(static_cast<float>(latency));
  if (now_ >= result_.end) {
    result_.end = now_;
    result_.last = firing.course;
  }
  copies_running_[t] -= 1;
  if (!held_back_[t].empty()) {
    const std::uint32_t next = held_back_[t].front();
    held_back_[t].pop_front();
    firings_[next].course.waited += now_ - firings_[next].asked;
    enqueue(next);
  }
  const ItemId id = world_ ? world_->give(f, t, now_, firing.course) : no_item;
  deliver(deliveries_.of_task(t), task_at(t).bytes * firing.factor,
          {.weight = firing.factor, .cut = firing.cut, .course = firing.course, .id = id});
  --pending_[t];
  finish_if_idle(t);
}

void Engine::close_input(std::size_t t, std::size_t input) {
  inboxes_[t][input].closed = true;
  if (std::ranges::all_of(inboxes_[t], [](const Inbox& inbox) { return inbox.closed; })) when_closed(t);
}

// All that is left is taken in one more firing, as long as any other.
void Engine::when_closed(std::size_t t) {
  Item newest;
  std::vector<Taken> taken;
  if (take_all(t, newest, taken)) fire(t, 1, newest, std::move(taken));
  finish_if_idle(t);
}

void Engine::finish_if_idle(std::size_t t) {
  const bool closed = std::ranges::all_of(inboxes_[t], [](const Inbox& inbox) { return inbox.closed; });
  if (finished_[t] || !closed || pending_[t] > 0) return;
  finished_[t] = true;
  --unfinished_;
  if (reserves(t) && opened_[t] >= 0)
    result_.cost += (now_ - opened_[t]) / 3600 * partition(t).price * static_cast<double>(reserved(t));
  producer_is_done(deliveries_.of_task(t));
}

void Engine::producer_is_done(std::size_t producer) {
  for (auto& group : deliveries_.groups(producer)) {
    group.producer_done = true;
    if (group.under_way > 0) continue;
    for (const auto& [t, input] : group.takers) close_input(t, input);
  }
}

}  // namespace superstep::facility
