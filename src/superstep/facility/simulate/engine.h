// The engine of simulations, and of runs by the clock: the state of tasks, channels and pools that a calendar
// of events moves on. Its parts: engine.cpp (events), movement.cpp (items on links), firings.cpp (tasks at
// work), by_the_clock.cpp (a world in which work is done).
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "superstep/facility/simulate/calendar.h"
#include "superstep/facility/simulate/channel.h"
#include "superstep/facility/simulate/deliveries.h"
#include "superstep/facility/simulate/pool.h"
#include "superstep/facility/simulate/world.h"

namespace superstep::facility {

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
class Engine {
 public:
  Engine(const Plan& plan, const SimulationSettings& settings, World* world = nullptr);
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
  double until_tick(std::size_t t);  // s to the next time that a task by time fires
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

}  // namespace superstep::facility
