#include "superstep/facility/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/facility/simulate/calendar.h"
#include "superstep/facility/simulate/channel.h"
#include "superstep/facility/simulate/deliveries.h"
#include "superstep/facility/simulate/pool.h"
#include "superstep/facility/simulate/world.h"

namespace superstep::facility {
namespace {

constexpr std::uint64_t most_events = 100'000'000;  // some minutes of work
constexpr double normal_p90 = 1.2815515655446004;   // of the standard normal distribution
constexpr double longest_start = 0.9;               // of the time that a job may run
constexpr double whole = 1e-9;                      // sums of fractions of items that are a whole one

struct Item {
  double weight = 1, cut = 0, arrived = 0;  // items in it; when its task was triggered; here
  Course course;
  ItemId id = no_item;  // in the world
};

struct Inbox {
  std::deque<Item> items;
  double weight = 0;
  bool closed = false;
};

struct Firing {
  int task = 0;
  double factor = 1, cut = 0, asked = 0, begun = 0, left = 0, worked = 0;
  enum class Ending { done, allotted, failed } ending = Ending::done;
  bool started = false;
  Course course;
  std::vector<Taken> taken;  // in the world
};

struct Transfer {
  std::size_t producer = 0, group = 0, hop = 0;
  double bytes = 0, begun = 0;
  Item item;
};

struct Event {
  enum class Kind : std::uint8_t {
    source,
    tick,
    granted,
    stop,
    channel,
    arrive,
    open,
    close,
    broken,
    mended
  } kind;
  std::uint32_t index = 0, version = 0;
};

// A state of tasks, channels and pools that its calendar moves on.
class Simulation {
 public:
  Simulation(const Plan& plan, const SimulationSettings& settings, World* world = nullptr);
  Simulated run();

 private:
  const Task& task_at(std::size_t t) const { return plan_.workflow->tasks[t]; }
  const Place& place(std::size_t t) const { return plan_.places[t]; }
  const Partition& partition(std::size_t t) const {
    return plan_.facility->partitions[static_cast<std::size_t>(place(t).partition)];
  }
  // A service on a partition with a queue is given its devices once, for itself.
  bool reserves(std::size_t t) const { return !task_at(t).job && !partition(t).queue.empty(); }
  std::int64_t reserved(std::size_t t) const {
    return std::int64_t{std::max(1, task_at(t).copies)} * place(t).devices;
  }
  Pool& pool(std::size_t t) {
    return own_pools_[t] ? *own_pools_[t] : pools_[static_cast<std::size_t>(place(t).partition)];
  }
  double drawn(const Amount& amount, RandomStream& random) const;
  double wait_of(std::size_t t);
  double start_of(std::size_t t) const { return starts_[static_cast<std::size_t>(place(t).partition)]; }

  void make_channels();
  void make_pools();
  void begin();
  void handle(const Event& event);
  void ask(std::uint32_t firing);
  void channel_is_due(const Event& event);
  void tick(const Event& event);
  void open_service(std::uint32_t task);
  void close_service(std::uint32_t task);
  void set_broken(std::uint32_t link, bool broken);
  void emit_of_source(std::size_t s);
  void deliver(std::size_t producer, double bytes, const Item& item);
  void move_on(std::uint32_t transfer);
  void arrive(std::uint32_t transfer);
  void reschedule(std::size_t channel);
  void receive(std::size_t t, std::size_t input, Item item);
  void try_items(std::size_t t);
  void take_for(std::size_t t, double firings, Item& newest, std::vector<Taken>& taken);
  bool take_all(std::size_t t, Item& newest, std::vector<Taken>& taken);
  void fire(std::size_t t, double factor, const Item& newest, std::vector<Taken> taken);
  void enqueue(std::uint32_t f);
  void start_what_can(Pool& from);
  void start(std::uint32_t f);
  void stop(std::uint32_t f);
  void finish_firing(std::uint32_t f);
  void close_input(std::size_t t, std::size_t input);
  void when_closed(std::size_t t);
  void finish_if_idle(std::size_t t);
  void producer_is_done(std::size_t producer);
  void keep_span(Span span, std::size_t row);
  std::uint32_t new_firing();
  double start_of_item(std::size_t s, double index) const;

  void restore();
  void command_ended(std::uint32_t firing);
  bool wait_for_next_event();

  const Plan& plan_;
  const SimulationSettings settings_;
  World* const world_;  // null: nothing is done for real
  RandomStream times_, waits_, failures_;
  Deliveries deliveries_;
  Calendar<Event> calendar_;
  double now_ = 0;
  Simulated result_;
  std::vector<Channel> channels_;  // of links forward and back, then of sites
  std::vector<Pool> pools_;        // of partitions
  std::vector<std::unique_ptr<Pool>> own_pools_;
  std::vector<double> factors_, opened_;  // of tasks
  std::vector<double> starts_;            // of partitions
  std::vector<std::vector<Inbox>> inboxes_;
  std::vector<std::size_t> pending_;
  std::vector<bool> finished_;
  std::size_t unfinished_ = 0;
  std::vector<double> copies_running_;
  struct Used {
    bool there = false;
    double cut = 0;
    ItemId id = no_item;
  };
  std::vector<std::vector<Used>> used_;
  struct SourceState {
    double given = 0, group = 1, most = 0;
  };
  std::vector<SourceState> sources_;
  std::vector<Firing> firings_;
  std::vector<std::uint32_t> free_firings_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_transfers_;
  std::vector<std::size_t> spans_;
  std::vector<std::deque<std::uint32_t>> held_back_;  // firings of tasks with as many copies as they may have
};

Simulation::Simulation(const Plan& plan, const SimulationSettings& settings, World* world)
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
double Simulation::drawn(const Amount& amount, RandomStream& random) const {
  const double z = random.normal();
  if (settings_.draw == 0 || amount.exact()) return amount.value;
  const double side = z < 0 ? amount.value / amount.low : amount.high / amount.value;
  return amount.value * std::exp(z * std::log(side) / normal_p90);
}

double Simulation::wait_of(std::size_t t) {
  const Wait& wait = partition(t).wait;
  if (plan_.no_queues || wait.none()) return 0;
  return settings_.draw == 0 ? wait.usual() : wait.draw(waits_);
}

void Simulation::make_channels() {
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

void Simulation::make_pools() {
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

double Simulation::start_of_item(std::size_t s, double index) const {
  const double rate = plan_.workflow->sources[s].rate;
  return rate > 0 ? index / rate : 0;
}

void Simulation::begin() {
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
      calendar_.enter(now_ + task_at(t).period, {Event::Kind::tick, index});
  }
  if (settings_.draw == 0) return;
  for (std::size_t l = 0; l < plan_.facility->links.size(); ++l) {
    const Failures& fails = plan_.facility->links[l].fails;
    if (!fails.none())
      calendar_.enter(-std::log1p(-failures_.uniform()) * fails.every,
                      {Event::Kind::broken, static_cast<std::uint32_t>(l)});
  }
}

Simulated Simulation::run() {
  begin();
  while (unfinished_ > 0) {
    if (calendar_.empty() && !world_)
      throw Error(ErrorCode::internal, "the simulation has nothing left to do, and tasks that are not done");
    if (calendar_.entered() > most_events)
      throw Error(ErrorCode::unsupported, "the simulation does not come to an end within 100 million events",
                  plan_.workflow->file, "fewer items, or fewer firings of each");
    if (calendar_.entered() % 4096 == 0)
      if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while simulating");
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

void Simulation::handle(const Event& event) {
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

void Simulation::ask(std::uint32_t f) {
  const auto t = static_cast<std::size_t>(firings_[f].task);
  firings_[f].asked = now_;
  pool(t).ask(f, place(t).devices);
  start_what_can(pool(t));
}

void Simulation::channel_is_due(const Event& event) {
  if (event.version != channels_[event.index].version) return;  // something has joined or left since
  const std::uint32_t through = channels_[event.index].leave(now_);
  reschedule(event.index);
  move_on(through);
}

void Simulation::tick(const Event& event) {
  const std::size_t t = event.index;
  if (finished_[t]) return;
  Item newest;
  std::vector<Taken> taken;
  if (take_all(t, newest, taken)) fire(t, 1, newest, std::move(taken));
  const bool random = task_at(t).trigger == Trigger::drift && settings_.draw > 0;
  calendar_.enter(now_ + task_at(t).period * (random ? -std::log1p(-times_.uniform()) : 1), event);
}

void Simulation::open_service(std::uint32_t t) {
  if (finished_[t]) return;
  if (opened_[t] < 0) opened_[t] = now_;
  own_pools_[t]->set_open(true);
  const double longest = partition(t).longest;
  if (longest > 0) calendar_.enter(now_ + longest, {Event::Kind::close, t});
  start_what_can(*own_pools_[t]);
}

// Its successor was handed in when it started itself.
void Simulation::close_service(std::uint32_t t) {
  if (finished_[t]) return;
  own_pools_[t]->set_open(false);
  ++result_.tasks[t].restarts;
  const double gap = std::max(0.0, wait_of(t) - partition(t).longest);
  calendar_.enter(now_ + gap + start_of(t), {Event::Kind::open, t});
}

void Simulation::set_broken(std::uint32_t link, bool broken) {
  const Failures& fails = plan_.facility->links[link].fails;
  for (const std::size_t way : {0, 1}) {
    channels_[2 * link + way].set_broken(now_, broken);
    reschedule(2 * link + way);
  }
  calendar_.enter(now_ + (broken ? fails.lasts : -std::log1p(-failures_.uniform()) * fails.every),
                  {broken ? Event::Kind::mended : Event::Kind::broken, link});
}

void Simulation::emit_of_source(std::size_t s) {
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

void Simulation::deliver(std::size_t producer, double bytes, const Item& item) {
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

void Simulation::reschedule(std::size_t channel) {
  const double at = channels_[channel].next();
  if (std::isfinite(at))
    calendar_.enter(std::max(at, now_),
                    {Event::Kind::channel, static_cast<std::uint32_t>(channel), channels_[channel].version});
}

// Through one channel: onto the next, after the latency of the one that it comes from.
void Simulation::move_on(std::uint32_t index) {
  Transfer& transfer = transfers_[index];
  const auto& route = deliveries_.groups(transfer.producer)[transfer.group].channels;
  const std::size_t channel = route[transfer.hop];
  keep_span({.link = true, .what = static_cast<int>(channel), .begin = transfer.begun, .end = now_},
            result_.tasks.size() + channel);
  ++transfer.hop;
  calendar_.enter(now_ + deliveries_.latency(channel), {Event::Kind::arrive, index});
}

void Simulation::arrive(std::uint32_t index) {
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

void Simulation::receive(std::size_t t, std::size_t input, Item item) {
  Inbox& inbox = inboxes_[t][input];
  inbox.weight += item.weight;
  inbox.items.push_back(std::move(item));
  if (task_at(t).trigger == Trigger::items) try_items(t);
}

void Simulation::try_items(std::size_t t) {
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

void Simulation::take_for(std::size_t t, double firings, Item& newest, std::vector<Taken>& taken) {
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
bool Simulation::take_all(std::size_t t, Item& newest, std::vector<Taken>& taken) {
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

std::uint32_t Simulation::new_firing() {
  if (free_firings_.empty()) {
    firings_.emplace_back();
    return static_cast<std::uint32_t>(firings_.size() - 1);
  }
  const std::uint32_t index = free_firings_.back();
  free_firings_.pop_back();
  firings_[index] = {};
  return index;
}

void Simulation::fire(std::size_t t, double factor, const Item& newest, std::vector<Taken> taken) {
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
void Simulation::enqueue(std::uint32_t f) {
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

void Simulation::start_what_can(Pool& from) {
  while (from.can_start()) start(from.start());
}

void Simulation::start(std::uint32_t f) {
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

// A command has ended; of a machine that is not here its work goes on until its simulated time is over.
void Simulation::command_ended(std::uint32_t f) {
  const auto t = static_cast<std::size_t>(firings_[f].task);
  firings_[f].ending = Firing::Ending::done;
  const double until = firings_[f].begun + (task_at(t).job ? start_of(t) : 0) + firings_[f].left;
  if (world_->paced(t) && until > now_) return calendar_.enter(until, {Event::Kind::stop, f});
  stop(f);
}

// Whether a command has ended before the next event; else that is due.
bool Simulation::wait_for_next_event() {
  const double until = calendar_.empty() ? std::numeric_limits<double>::infinity() : calendar_.next_time();
  const std::optional<std::uint32_t> ended = world_->wait(until);
  if (!ended) return false;
  now_ = std::max(now_, world_->now());
  command_ended(*ended);
  return true;
}

// Items that no firing has taken are where they were going; sources go on after their last one.
void Simulation::restore() {
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

void Simulation::stop(std::uint32_t f) {
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

void Simulation::finish_firing(std::uint32_t f) {
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

void Simulation::close_input(std::size_t t, std::size_t input) {
  inboxes_[t][input].closed = true;
  if (std::ranges::all_of(inboxes_[t], [](const Inbox& inbox) { return inbox.closed; })) when_closed(t);
}

// All that is left is taken in one more firing, as long as any other.
void Simulation::when_closed(std::size_t t) {
  Item newest;
  std::vector<Taken> taken;
  if (take_all(t, newest, taken)) fire(t, 1, newest, std::move(taken));
  finish_if_idle(t);
}

void Simulation::finish_if_idle(std::size_t t) {
  const bool closed = std::ranges::all_of(inboxes_[t], [](const Inbox& inbox) { return inbox.closed; });
  if (finished_[t] || !closed || pending_[t] > 0) return;
  finished_[t] = true;
  --unfinished_;
  if (reserves(t) && opened_[t] >= 0)
    result_.cost += (now_ - opened_[t]) / 3600 * partition(t).price * static_cast<double>(reserved(t));
  producer_is_done(deliveries_.of_task(t));
}

void Simulation::producer_is_done(std::size_t producer) {
  for (auto& group : deliveries_.groups(producer)) {
    group.producer_done = true;
    if (group.under_way > 0) continue;
    for (const auto& [t, input] : group.takers) close_input(t, input);
  }
}

void Simulation::keep_span(Span span, std::size_t row) {
  if (!settings_.timeline || spans_[row] >= most_spans) return;
  ++spans_[row];
  result_.timeline.push_back(span);
}

// It and all before it work on items as they come.
bool item_by_item(const Workflow& workflow, std::size_t t) {
  const Task& task = workflow.tasks[t];
  return task.trigger == Trigger::items && std::ranges::all_of(task.inputs, [&](const Input& input) {
           return input.of_source || item_by_item(workflow, static_cast<std::size_t>(input.from));
         });
}

// Whether times grow from the third tenth of the items to the last: chosen to be past the start, and by more
// than queues that come and go make of it.
bool falls_behind(const std::vector<float>& latencies) {
  const std::size_t tenth = latencies.size() / 10;
  if (tenth == 0) return false;
  const auto sum_from = [&](std::size_t first) {
    return std::accumulate(latencies.begin() + static_cast<std::ptrdiff_t>(first),
                           latencies.begin() + static_cast<std::ptrdiff_t>(first + tenth), 0.0);
  };
  return sum_from(latencies.size() - tenth) > 1.5 * sum_from(2 * tenth);
}

double percentile(std::vector<float> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const std::vector<double> sorted(values.begin(), values.end());
  return nearest_rank(sorted, share);
}

}  // namespace

Simulated simulate(const Plan& plan, const SimulationSettings& settings) {
  return Simulation(plan, settings).run();
}

Simulated run_in(World& world, const Plan& plan, const SimulationSettings& settings) {
  return Simulation(plan, settings, &world).run();
}

Simulated simulate_whole_and_head(const Plan& plan, const SimulationSettings& settings) {
  Simulated whole = simulate(plan, settings);
  const bool grouped = std::ranges::any_of(
      plan.workflow->sources, [&](const Source& source) { return source.count > settings.most_items; });
  if (!grouped) return whole;
  SimulationSettings of_head = settings;
  of_head.head = true;
  of_head.timeline = false;
  Simulated head = simulate(plan, of_head);
  for (const int at : plan.workflow->order) {
    const auto t = static_cast<std::size_t>(at);
    if (!item_by_item(*plan.workflow, t) || falls_behind(whole.tasks[t].latencies)) continue;
    whole.tasks[t].latencies = std::move(head.tasks[t].latencies);
    whole.tasks[t].slowest = head.tasks[t].slowest;
  }
  return whole;
}

double figure_of(const Target& target, const Simulated& simulated) {
  switch (target.wish) {
    case Wish::latency:
      return percentile(simulated.tasks[static_cast<std::size_t>(target.task)].latencies, target.share);
    case Wish::age:
      return percentile(simulated.tasks[static_cast<std::size_t>(target.task)].ages, target.share);
    case Wish::end: return simulated.end;
    case Wish::cost: return simulated.cost;
    case Wish::energy:
      return simulated.energy_known ? simulated.energy : std::numeric_limits<double>::quiet_NaN();
  }
  return 0;
}

}  // namespace superstep::facility
