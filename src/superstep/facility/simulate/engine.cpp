#include "superstep/facility/simulate/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::facility {
namespace {

constexpr std::uint64_t most_events = 100'000'000;    // some minutes of work
constexpr std::uint64_t events_between_looks = 4096;  // at whether somebody wants to stop: a millisecond
constexpr double normal_p90 = 1.2815515655446004;     // of the standard normal distribution
constexpr double longest_start = 0.9;                 // of the time that a job may run

}  // namespace

Engine::Engine(const Plan& plan, const SimulationSettings& settings, World* world)
    : plan_(plan),
      settings_(settings),
      world_(world),
      times_(settings.seed, settings.draw, 0),
      waits_(settings.seed, settings.draw, 1),
      failures_(settings.seed, settings.draw, 2),
      deliveries_(plan) {
  const std::size_t tasks = plan.workflow->tasks.size();
  result_.tasks.resize(tasks);
  inboxes_.resize(tasks);
  used_.resize(tasks);
  held_back_.resize(tasks);
  for (std::size_t t = 0; t < tasks; ++t) {
    inboxes_[t].resize(task_at(t).inputs.size());
    used_[t].resize(task_at(t).uses.size());
    factors_.push_back(drawn(place(t).seconds, times_) / place(t).seconds.value);
    result_.tasks[t].first = std::numeric_limits<double>::infinity();
  }
  pending_.assign(tasks, 0);
  finished_.assign(tasks, false);
  copies_running_.assign(tasks, 0);
  opened_.assign(tasks, -1);
  unfinished_ = tasks;
  make_channels();
  make_pools();
  spans_.assign(tasks + channels_.size(), 0);
}

// Lognormal on either side of the value, with the interval's ends at a tenth and nine tenths.
double Engine::drawn(const Amount& amount, RandomStream& random) const {
  const double z = random.normal();
  if (settings_.draw == 0 || amount.exact()) return amount.value;
  const double side = z < 0 ? amount.value / amount.low : amount.high / amount.value;
  return amount.value * std::exp(z * std::log(side) / normal_p90);
}

double Engine::wait_of(std::size_t t) {
  const Wait& wait = partition(t).wait;
  if (plan_.no_queues || wait.none()) return 0;
  return settings_.draw == 0 ? wait.usual() : wait.draw(waits_);
}

void Engine::make_channels() {
  for (std::size_t l = 0; l < plan_.facility->links.size(); ++l) {
    const Link& link = plan_.facility->links[l];
    const double factor = plan_.link_factors.empty() ? 1 : plan_.link_factors[l];
    const double rate = drawn(link.rate, times_) * (1 - link.others) * factor;
    channels_.emplace_back(rate);
    channels_.emplace_back(rate);
  }
  for (const Site& site : plan_.facility->sites)
    channels_.emplace_back(site.network.value > 0 ? drawn(site.network, times_) : 1.0);
}

void Engine::make_pools() {
  std::vector<std::int64_t> left;
  for (std::size_t p = 0; p < plan_.facility->partitions.size(); ++p) {
    const double factor = plan_.more_devices.empty() ? 1 : plan_.more_devices[p];
    // A start drawn far out must not take all of a job's time: nothing would ever be done.
    const Partition& partition = plan_.facility->partitions[p];
    const double start = drawn(partition.start, times_);
    starts_.push_back(partition.longest > 0 ? std::min(start, longest_start * partition.longest) : start);
    left.push_back(static_cast<std::int64_t>(plan_.facility->partitions[p].devices * factor));
  }
  own_pools_.resize(result_.tasks.size());
  for (std::size_t t = 0; t < own_pools_.size(); ++t) {
    if (!reserves(t)) continue;
    own_pools_[t] = std::make_unique<Pool>(reserved(t));
    own_pools_[t]->set_open(false);
    left[static_cast<std::size_t>(place(t).partition)] -= reserved(t);
  }
  for (const std::int64_t devices : left) pools_.emplace_back(std::max<std::int64_t>(devices, 0));
  result_.device_seconds.assign(left.size(), 0);
}

double Engine::start_of_item(std::size_t s, double index) const {
  const double rate = plan_.workflow->sources[s].rate;
  return rate > 0 ? index / rate : 0;
}

void Engine::begin() {
  for (std::size_t s = 0; s < plan_.workflow->sources.size(); ++s) {
    const auto count = static_cast<double>(plan_.workflow->sources[s].count);
    const auto most = static_cast<double>(settings_.most_items);
    SourceState state{.most = settings_.head ? std::min(count, most) : count};
    state.group = settings_.head ? 1 : std::ceil(count / most);
    sources_.push_back(state);
    if (!world_)
      calendar_.enter(start_of_item(s, std::min(state.group, state.most) - 1),
                      {Event::Kind::source, static_cast<std::uint32_t>(s)});
  }
  if (world_) restore();
  for (std::size_t t = 0; t < result_.tasks.size(); ++t) {
    const auto index = static_cast<std::uint32_t>(t);
    if (reserves(t)) calendar_.enter(now_ + wait_of(t) + start_of(t), {Event::Kind::open, index});
    if (task_at(t).trigger == Trigger::period || task_at(t).trigger == Trigger::drift)
      calendar_.enter(now_ + until_tick(t), {Event::Kind::tick, index});
  }
  if (settings_.draw == 0) return;
  for (std::size_t l = 0; l < plan_.facility->links.size(); ++l) {
    const Failures& fails = plan_.facility->links[l].fails;
    if (!fails.none())
      calendar_.enter(-std::log1p(-failures_.uniform()) * fails.every,
                      {Event::Kind::broken, static_cast<std::uint32_t>(l)});
  }
}

Simulated Engine::run() {
  begin();
  for (std::uint64_t handled = 0; unfinished_ > 0; ++handled) {
    if (calendar_.empty() && !world_)
      throw Error(ErrorCode::internal, "the simulation has nothing left to do, and tasks that are not done");
    if (calendar_.entered() > most_events)
      throw Error(ErrorCode::unsupported, "the simulation does not come to an end within 100 million events",
                  plan_.workflow->file, "fewer items, or fewer firings of each");
    if (handled % events_between_looks == 0 && interrupted())
      throw Error(ErrorCode::interrupted, "stopped while simulating");
    if (world_ && wait_for_next_event()) continue;
    now_ = std::max(now_, calendar_.next_time());
    handle(calendar_.take());
  }
  result_.events = calendar_.entered();
  const std::size_t links = plan_.facility->links.size();
  for (std::size_t l = 0; l < links; ++l)
    for (const std::size_t way : {0, 1}) result_.link_busy[way].push_back(channels_[2 * l + way].busy());
  for (std::size_t s = 2 * links; s < channels_.size(); ++s)
    result_.network_busy.push_back(channels_[s].busy());
  return std::move(result_);
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::source: return emit_of_source(event.index);
    case Event::Kind::granted: return ask(event.index);
    case Event::Kind::stop: return stop(event.index);
    case Event::Kind::channel: return channel_is_due(event);
    case Event::Kind::arrive: return arrive(event.index);
    case Event::Kind::tick: return tick(event);
    case Event::Kind::open: return open_service(event.index);
    case Event::Kind::close: return close_service(event.index);
    case Event::Kind::broken: return set_broken(event.index, true);
    case Event::Kind::mended: return set_broken(event.index, false);
  }
}

double Engine::until_tick(std::size_t t) {
  const bool random = task_at(t).trigger == Trigger::drift && settings_.draw > 0;
  return task_at(t).period * (random ? -std::log1p(-times_.uniform()) : 1);
}

void Engine::tick(const Event& event) {
  const std::size_t t = event.index;
  if (finished_[t]) return;
  Item newest;
  std::vector<Taken> taken;
  if (take_all(t, newest, taken)) fire(t, 1, newest, std::move(taken));
  calendar_.enter(now_ + until_tick(t), event);
}

void Engine::open_service(std::uint32_t t) {
  if (finished_[t]) return;
  if (opened_[t] < 0) opened_[t] = now_;
  own_pools_[t]->set_open(true);
  const double longest = partition(t).longest;
  if (longest > 0) calendar_.enter(now_ + longest, {Event::Kind::close, t});
  start_what_can(*own_pools_[t]);
}

// Its successor was handed in when it started itself.
void Engine::close_service(std::uint32_t t) {
  if (finished_[t]) return;
  own_pools_[t]->set_open(false);
  ++result_.tasks[t].restarts;
  const double gap = std::max(0.0, wait_of(t) - partition(t).longest);
  calendar_.enter(now_ + gap + start_of(t), {Event::Kind::open, t});
}

void Engine::set_broken(std::uint32_t link, bool broken) {
  const Failures& fails = plan_.facility->links[link].fails;
  for (const std::size_t way : {0, 1}) {
    channels_[2 * link + way].set_broken(now_, broken);
    reschedule(2 * link + way);
  }
  calendar_.enter(now_ + (broken ? fails.lasts : -std::log1p(-failures_.uniform()) * fails.every),
                  {broken ? Event::Kind::mended : Event::Kind::broken, link});
}

void Engine::emit_of_source(std::size_t s) {
  SourceState& state = sources_[s];
  const Source& source = plan_.workflow->sources[s];
  Item item{.weight = std::min(state.group, state.most - state.given), .cut = now_, .course = {.born = now_}};
  if (world_) item.id = world_->give_of_source(s, state.given, now_);
  state.given += item.weight;
  deliver(deliveries_.of_source(s), source.bytes * item.weight, item);
  if (state.given >= state.most) return producer_is_done(deliveries_.of_source(s));
  const double last = std::min(state.given + state.group, state.most) - 1;
  calendar_.enter(start_of_item(s, last), {Event::Kind::source, static_cast<std::uint32_t>(s)});
}

void Engine::keep_span(Span span, std::size_t row) {
  if (!settings_.timeline || spans_[row] >= most_spans) return;
  ++spans_[row];
  result_.timeline.push_back(span);
}

}  // namespace superstep::facility
