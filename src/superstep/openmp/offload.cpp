#include "superstep/openmp/offload.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "superstep/openmp/place.h"
#include "superstep/openmp/present.h"

namespace superstep::openmp {
namespace {

void put(std::string& key, const void* data, std::size_t bytes) {
  key.append(static_cast<const char*>(data), bytes);
}
void put(std::string& key, std::int64_t number) { put(key, &number, sizeof(number)); }

// Takes the record apart, so that a member more than these does not compile.
void put(std::string& key, const Work& work) {
  const auto& [loads, stores, integers, floats, divisions, roots, exponentials, logarithms, sines, powers,
               inner_loops, vectorised] = work;
  for (const double each : {loads, stores, integers, floats, divisions, roots, exponentials, logarithms,
                            sines, powers, inner_loops})
    put(key, &each, sizeof(each));
  put(key, std::int64_t{vectorised});
}

std::uint64_t hash_of(const std::vector<std::byte>& bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Everything that tells one launch's plan from another's. The values of scalars do not: they are data.
std::string key_of(const Region& region) {
  std::string key = to_string(region.place);
  put(key, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.body)));
  put(key, region.distributed);
  for (const std::size_t count :
       {region.loops.size(), region.arrays.size(), region.accesses.size(), region.reductions.size()})
    put(key, static_cast<std::int64_t>(count));
  for (const Range& loop : region.loops) {
    put(key, loop.begin);
    put(key, loop.end);
  }
  for (const RegionArray& array : region.arrays) {
    put(key, static_cast<std::int64_t>(array.extents.size()));
    for (const std::int64_t extent : array.extents) put(key, extent);
  }
  for (const Access& access : region.accesses) {
    put(key, access.array * 8 + access.gathered * 4 + access.reads * 2 + access.writes);
    for (const Affine& subscript : access.subscripts) {
      put(key, subscript.constant);
      for (std::size_t k = 0; k < region.loops.size(); ++k) put(key, subscript.coefficient(k));
    }
  }
  for (const Reduction& reduction : region.reductions) {
    put(key, reduction.array);
    put(key, static_cast<std::int64_t>(reduction.op));
  }
  put(key, region.work);
  for (const Work& work : region.turns) put(key, work);
  put(key, static_cast<std::int64_t>(region.scalars.size()));
  return key;
}

struct KnownPlan {
  Region region;
  std::vector<DeviceArray*> arrays;
  std::shared_ptr<const Plan> plan;  // made when the queue first runs
  std::uint64_t launches = 0;        // waiting in the queue
  bool scalars_vary = false;         // since a launch had others than the first
  SteeringContents contents;         // of arrays that steer what is gathered
  double weight() const {
    return static_cast<double>(launches) * static_cast<double>(region.iterations().volume()) *
           cycles_of(region.work, widest_float(region));
  }
};

struct Program {
  LoweredQueue queue;
  std::map<std::string, std::uint64_t> launches;  // of one run, by region
};

}  // namespace

class Offload::Implementation {
 public:
  Implementation(bsp::Device device, const OffloadOptions& options)
      : device_(std::move(device)), options_(options) {}

  Command prepare(const Region& region, std::span<void* const> pointers);
  void launch(Command command);
  void transfer(CommandKind kind, PresentArray& there, std::byte* host, std::int64_t begin, std::int64_t end);
  void run();
  Report report() const;
  std::vector<const bsp::Profile*> profiles() const;

  bsp::Device device_;
  OffloadOptions options_;
  PresentTable present_;
  const bsp::Profile* last_ = nullptr;

 private:
  struct Memory {  // of an array, while no program holds it
    std::vector<std::byte> bytes;
    Program* holder = nullptr;  // whose engine has the newest values
  };

  // What is known of an array's values without asking the device again.
  struct Known {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    std::uint64_t hash = 0;
  };

  bool resolve_gathers(Region& region, std::span<DeviceArray* const> arrays, SteeringContents& contents,
                       std::string& key);
  const Known* contents_of(DeviceArray& array);
  void forget(const KnownPlan& plan, std::span<DeviceArray* const> arrays);
  bool stand_in(int plan);
  void check_results(const KnownPlan& known) const;
  Plan plan_of(const KnownPlan& known);
  void place_queue();
  int place_plans();
  void mark_scalars();
  std::string queue_key() const;
  Program& program();
  void write_memory(Program& program);
  void pull(DeviceArray& array);
  std::vector<std::vector<std::byte>> connect(Program& program);

  std::vector<Command> queue_;
  std::map<std::string, int> plan_numbers_;
  std::vector<KnownPlan> plans_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
  std::map<DeviceArray*, Memory> memory_;
  std::map<DeviceArray*, Known> known_;                   // not written since
  std::map<std::string, std::set<std::string>> steered_;  // a place: the keys of what steered its launches
  std::vector<std::string> order_;                        // regions, by first launch
  std::vector<std::string> replaced_;                     // why launches were replaced by those that stood in
  std::uint64_t runs_ = 0;
};

// The values that an array will have when the queue has run. Null: only time is counted, and they are not
// known.
const Offload::Implementation::Known* Offload::Implementation::contents_of(DeviceArray& array) {
  if (const auto known = known_.find(&array); known != known_.end()) return &known->second;
  if (options_.timing_only) return nullptr;
  run();
  pull(array);
  Known known;
  known.bytes = std::make_shared<const std::vector<std::byte>>(memory_[&array].bytes);
  known.hash = hash_of(*known.bytes);
  return &(known_[&array] = std::move(known));
}

// False: every tile is to receive the gathered arrays whole, because what steers is written by the region,
// not known, or never twice the same.
bool Offload::Implementation::resolve_gathers(Region& region, std::span<DeviceArray* const> arrays,
                                              SteeringContents& contents, std::string& key) {
  constexpr std::size_t most_plans = 8;
  contents.resize(arrays.size());
  for (std::size_t slot = 0; slot < arrays.size(); ++slot) {
    if (!region.arrays[slot].steers) continue;
    for (std::size_t other = 0; other < arrays.size(); ++other)
      for (const Access& access : region.accesses)
        if (access.writes && access.array == static_cast<int>(other) && arrays[other] == arrays[slot])
          return false;
    const Known* known = contents_of(*arrays[slot]);
    if (!known) return false;
    contents[slot] = known->bytes;
    put(key, static_cast<std::int64_t>(known->hash));
  }
  put(key, region.scalars.data(), region.scalars.size());
  std::set<std::string>& seen = steered_[to_string(region.place)];
  if (seen.size() >= most_plans && !seen.contains(key)) {
    if (seen.size() == most_plans)
      replaced_.push_back(
          fmt::format("replans: {} has gathered by {} sets of numbers; from now on its tiles "
                      "receive whole arrays",
                      to_string(region.place), most_plans));
    seen.insert(std::string());  // no launch has it: this has been said
    return false;
  }
  seen.insert(key);
  return true;
}

// A command for the region on these arrays, its plan known; nothing waits in the queue yet.
Command Offload::Implementation::prepare(const Region& asked, std::span<void* const> pointers) {
  Region region = asked;
  if (pointers.size() != region.arrays.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} arrays for a region of {}", pointers.size(), region.arrays.size()),
                to_string(region.place), "give every array of the region");
  std::vector<DeviceArray*> arrays;
  for (std::size_t slot = 0; slot < pointers.size(); ++slot) {
    const RegionArray& seen = region.arrays[slot];
    const PresentArray* there = present_.find(pointers[slot]);
    const std::string where = to_string(region.place);
    if (!there)
      refuse("unmapped", fmt::format("{} is not on the device", seen.name), where,
             "map it, or enclose the region in target data");
    if (there->array->type != seen.type || there->array->count != seen.count())
      refuse("unmapped",
             fmt::format("{} is {} elements of {} here, {} of {} are on the device", seen.name, seen.count(),
                         superstep::name_of(seen.type), there->array->count,
                         superstep::name_of(there->array->type)),
             where, "map the section that the region uses");
    arrays.push_back(there->array);
  }
  SteeringContents contents;
  std::string steering;
  if (region.gathers() && !resolve_gathers(region, arrays, contents, steering)) {
    region.receive_whole();
    steering.clear();
  }
  std::string key = key_of(region) + steering;
  for (const DeviceArray* array : arrays) put(key, array->number);
  const auto [place, added] = plan_numbers_.try_emplace(std::move(key), static_cast<int>(plans_.size()));
  if (added) {
    try {
      check_region(region);
      for (const Access& access : region.accesses)
        for (std::size_t slot = 0; slot < arrays.size(); ++slot)
          if (access.writes && arrays[slot] == arrays[static_cast<std::size_t>(access.array)] &&
              slot != static_cast<std::size_t>(access.array))
            refuse("alias",
                   fmt::format("{} and {} are one array", region.arrays[slot].name,
                               region.arrays[static_cast<std::size_t>(access.array)].name),
                   region.where(access), "write to an array of its own");
    } catch (...) {
      plan_numbers_.erase(place);
      throw;
    }
    plans_.push_back({region, arrays, nullptr, 0, false, std::move(contents)});
    if (const std::string where = to_string(region.place); std::ranges::find(order_, where) == order_.end())
      order_.push_back(where);
  }
  KnownPlan& known = plans_[static_cast<std::size_t>(place->second)];
  known.scalars_vary = known.scalars_vary || known.region.scalars != region.scalars;
  Command command;
  command.scalars = region.scalars;
  command.plan = place->second;
  command.arrays = std::move(arrays);
  return command;
}

// What a region writes is not known before it has run.
void Offload::Implementation::forget(const KnownPlan& plan, std::span<DeviceArray* const> arrays) {
  for (const Access& access : plan.region.accesses)
    if (access.writes) known_.erase(arrays[static_cast<std::size_t>(access.array)]);
  for (const Reduction& reduction : plan.region.reductions)
    known_.erase(arrays[static_cast<std::size_t>(reduction.array)]);
}

void Offload::Implementation::launch(Command command) {
  ++plans_[static_cast<std::size_t>(command.plan)].launches;
  for (const Command* each = &command; each; each = each->instead.get())
    forget(plans_[static_cast<std::size_t>(each->plan)], each->arrays);
  queue_.push_back(std::move(command));
}

void Offload::Implementation::transfer(CommandKind kind, PresentArray& there, std::byte* host,
                                       std::int64_t begin, std::int64_t end) {
  if (begin < 0 || end > there.array->count || begin > end)
    refuse("unmapped",
           fmt::format("elements {} to {} of {}, which has {}", begin, end, there.array->name,
                       there.array->count),
           {}, "update what is mapped");
  if (begin == end) return;
  Command command;
  command.kind = kind;
  command.arrays = {there.array};
  command.begin = begin;
  command.end = end;
  const std::size_t size = size_in_bytes(there.array->type);
  std::byte* first = host + static_cast<std::size_t>(begin) * size;
  if (kind == CommandKind::from_device) command.host = first;
  if (kind == CommandKind::to_device) {
    known_.erase(there.array);
    // Numbers may steer what is gathered, which decides what is counted.
    if (begin == 0 && end == there.array->count && !is_floating(there.array->type)) {
      Known known;
      known.bytes =
          std::make_shared<const std::vector<std::byte>>(first, first + static_cast<std::size_t>(end) * size);
      known.hash = hash_of(*known.bytes);
      known_[there.array] = std::move(known);
    }
  }
  if (kind == CommandKind::to_device && !options_.timing_only)
    command.data.assign(first, first + static_cast<std::size_t>(end - begin) * size);
  queue_.push_back(std::move(command));
}

// Launches of a plan that cannot be dealt become those of the table that was given to stand in for it.
// False: there is none.
bool Offload::Implementation::stand_in(int plan) {
  bool any = false;
  for (Command& command : queue_) {
    if (command.kind != CommandKind::launch || command.plan != plan) continue;
    if (!command.instead) return false;
    const std::shared_ptr<Command> instead = command.instead;
    command = *instead;
    ++plans_[static_cast<std::size_t>(command.plan)].launches;
    any = true;
  }
  plans_[static_cast<std::size_t>(plan)].launches = 0;
  return any;
}

// Results of reductions lie on one tile.
void Offload::Implementation::check_results(const KnownPlan& known) const {
  for (const Reduction& reduction : known.region.reductions) {
    const auto slot = static_cast<std::size_t>(reduction.array);
    const std::int64_t cells = known.arrays[slot]->placement->cells.count();
    if (cells > 1)
      refuse("reduction",
             fmt::format("the result {} is spread over {} tiles", known.region.arrays[slot].name, cells),
             to_string(known.region.place), "reduce into an array that no other region is dealt by");
  }
}

// Regions that weigh most are placed first, and with them their arrays.
void Offload::Implementation::place_queue() {
  while (true) {
    const int refused = place_plans();
    if (refused < 0) break;
  }
  for (KnownPlan& known : plans_) known.launches = 0;
  for (const Command& command : queue_)
    for (DeviceArray* array : command.arrays)
      if (!array->placement) place_evenly(*array, device_);
}

// The region placed, with its arrays.
Plan Offload::Implementation::plan_of(const KnownPlan& known) {
  std::vector<double> weights;
  if (known.region.gathers() && known.region.distributed == 1)
    weights = Inspector(known.region, known.contents).weights();
  const Cells cells = place_region(known.region, known.arrays, device_, weights);
  check_results(known);
  Plan plan = make_plan(known.region, cells, device_.workers, known.contents);
  place_gathered(plan, known.arrays);
  return plan;
}

// Makes the plans that the queue needs. Gives the number of one that had to be replaced in the queue, or -1.
int Offload::Implementation::place_plans() {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < plans_.size(); ++i)
    if (plans_[i].launches > 0 && !plans_[i].plan) waiting.push_back(i);
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](std::size_t a, std::size_t b) { return plans_[a].weight() > plans_[b].weight(); });
  for (const std::size_t i : waiting) {
    KnownPlan& known = plans_[i];
    try {
      known.plan = std::make_shared<const Plan>(plan_of(known));
    } catch (const Error& error) {
      if (!stand_in(static_cast<int>(i))) {
        for (KnownPlan& each : plans_) each.launches = 0;
        throw;
      }
      replaced_.push_back(error.what());
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Scalars that vary are sent with the first launch of a queue and whenever they are others than before.
void Offload::Implementation::mark_scalars() {
  std::map<int, const Command*> last;
  for (Command& command : queue_) {
    if (command.kind != CommandKind::launch) continue;
    const Command*& before = last[command.plan];
    command.scalars_vary = plans_[static_cast<std::size_t>(command.plan)].scalars_vary;
    command.sends_scalars = command.scalars_vary && (!before || before->scalars != command.scalars);
    before = &command;
  }
}

std::string Offload::Implementation::queue_key() const {
  std::string key;
  for (const Command& command : queue_) {
    put(key, static_cast<std::int64_t>(command.kind) * 1'000'000'000 + command.plan);
    for (const DeviceArray* array : command.arrays) put(key, array->number);
    put(key, command.begin);
    put(key, command.end);
    put(key, command.scalars_vary * 2 + command.sends_scalars);
  }
  return key;
}

Program& Offload::Implementation::program() {
  std::unique_ptr<Program>& known = programs_[queue_key()];
  if (known) return *known;
  try {
    std::vector<std::shared_ptr<const Plan>> plans;
    for (const KnownPlan& plan : plans_) plans.push_back(plan.plan);
    auto made = std::make_unique<Program>();
    made->queue = lower_queue(device_, queue_, plans,
                              {options_.threads, options_.timing_only, options_.withhold_halo_element});
    for (const Command& command : queue_)
      if (command.kind == CommandKind::launch)
        ++made->launches[to_string(plans_[static_cast<std::size_t>(command.plan)].region.place)];
    known = std::move(made);
  } catch (...) {
    programs_.erase(queue_key());
    throw;
  }
  return *known;
}

void Offload::Implementation::pull(DeviceArray& array) {
  Memory& memory = memory_[&array];
  const std::size_t size = size_in_bytes(array.type);
  memory.bytes.resize(static_cast<std::size_t>(array.count) * size);
  if (!memory.holder) return;
  for (const LoweredQueue::Image& image : memory.holder->queue.images) {
    if (image.array != &array) continue;
    std::vector<std::byte> packed(memory.bytes.size());
    memory.holder->queue.engine->read_tensor(image.handle, packed.data(), packed.size());
    unpack(image.boxes, array.placement->extents, size, 0, packed.data(), memory.bytes.data());
  }
  memory.holder = nullptr;
}

void Offload::Implementation::write_memory(Program& program) {
  for (const LoweredQueue::Image& image : program.queue.images) {
    if (memory_[image.array].holder == &program) continue;
    pull(*image.array);
    Memory& memory = memory_[image.array];
    std::vector<std::byte> packed(memory.bytes.size());
    pack(image.boxes, image.array->placement->extents, size_in_bytes(image.array->type), 0,
         memory.bytes.data(), packed.data());
    program.queue.engine->write_tensor(image.handle, packed.data(), packed.size());
    memory = {{}, &program};
  }
}

std::vector<std::vector<std::byte>> Offload::Implementation::connect(Program& program) {
  std::vector<std::vector<std::byte>> buffers;
  for (const LoweredQueue::Transfer& transfer : program.queue.transfers) {
    const Command& command = queue_[transfer.command];
    const DeviceArray& array = *command.arrays[0];
    const std::size_t size = size_in_bytes(array.type);
    std::vector<std::byte>& buffer = buffers.emplace_back();
    buffer.resize(options_.timing_only ? size : static_cast<std::size_t>(command.end - command.begin) * size);
    if (options_.timing_only) continue;
    if (command.kind == CommandKind::to_device)
      pack(transfer.boxes, array.placement->extents, size, command.begin, command.data.data(), buffer.data());
    program.queue.engine->connect_stream(transfer.handle, buffer.data(), buffer.data() + buffer.size());
  }
  for (const LoweredQueue::ScalarStream& stream : program.queue.scalars) {
    if (options_.timing_only) break;
    std::vector<std::byte>& buffer = buffers.emplace_back(stream.bytes * stream.commands.size());
    for (std::size_t i = 0; i < stream.commands.size(); ++i)
      std::ranges::copy(queue_[stream.commands[i]].scalars, buffer.data() + i * stream.bytes);
    program.queue.engine->connect_stream(stream.handle, buffer.data(), buffer.data() + buffer.size());
  }
  return buffers;
}

void Offload::Implementation::run() {
  if (queue_.empty()) return;
  struct Emptied {
    std::vector<Command>& queue;
    ~Emptied() { queue.clear(); }
  } emptied{queue_};
  place_queue();
  mark_scalars();
  Program& now = program();
  if (!options_.timing_only) write_memory(now);
  const std::vector<std::vector<std::byte>> buffers = connect(now);
  now.queue.engine->run();
  ++runs_;
  last_ = &now.queue.engine->profile();
  if (options_.timing_only) return;
  for (std::size_t i = 0; i < now.queue.transfers.size(); ++i) {
    const LoweredQueue::Transfer& transfer = now.queue.transfers[i];
    const Command& command = queue_[transfer.command];
    if (command.kind != CommandKind::from_device) continue;
    const DeviceArray& array = *command.arrays[0];
    unpack(transfer.boxes, array.placement->extents, size_in_bytes(array.type), command.begin,
           buffers[i].data(), command.host);
  }
}

namespace {

void add(ReportRow& row, const bsp::StepProfile& step, std::uint64_t times) {
  row.compute += step.cost.compute * times;
  row.exchange += (step.cost.exchange + step.cost.global_exchange) * times;
  row.sync += step.cost.sync * times;
  row.host += step.cost.host_exchange * times;
  row.control += step.cost.control * times;
  row.exchanged_bytes += step.exchanged_bytes * times;
  row.host_bytes += step.host_bytes * times;
  row.flops += step.flops * times;
  row.tiles = std::max(row.tiles, step.compute_tiles);
}

void add(std::vector<ReportStep>& steps, const std::string& region, const std::string& what,
         const bsp::StepProfile& step, std::uint64_t times) {
  auto place = std::ranges::find_if(
      steps, [&](const ReportStep& known) { return known.region == region && known.what == what; });
  if (place == steps.end()) place = steps.insert(steps.end(), {region, what});
  place->times += times;
  place->cycles += step.cost.total() * times;
  place->exchanged_bytes += step.exchanged_bytes * times;
  place->host_bytes += step.host_bytes * times;
  place->tiles = std::max(place->tiles, step.compute_tiles);
}

}  // namespace

Report Offload::Implementation::report() const {
  Report report;
  report.device = device_.name;
  report.clock_hz = device_.clock_hz;
  report.bytes_per_tile = device_.bytes_per_tile;
  report.programs = programs_.size();
  report.runs = runs_;
  report.replaced = replaced_;
  for (const std::string& place : order_) report.rows.push_back({.what = place});
  report.rows.push_back({.what = "transfers, loops"});
  for (const auto& [key, program] : programs_) {
    const bsp::Profile& profile = program->queue.engine->profile();
    report.cycles += profile.total_cycles();
    if (!program->queue.captured.empty()) report.captured.push_back(program->queue.captured);
    for (const bsp::TileMemory& tile : profile.compilation.tiles)
      report.fullest_tile_bytes = std::max(report.fullest_tile_bytes, tile.including_gaps());
    for (std::size_t i = 0; i < profile.total.times.size(); ++i) {
      const bsp::StepProfile& step = profile.compilation.steps[i];
      auto row = std::ranges::find_if(report.rows, [&](const ReportRow& candidate) {
        return step.name.starts_with(candidate.what + " ");
      });
      if (profile.total.times[i] == 0) continue;
      const bool found = row != report.rows.end();
      add(found ? *row : report.rows.back(), step, profile.total.times[i]);
      add(report.steps, found ? row->what : report.rows.back().what,
          found ? step.name.substr(row->what.size() + 1) : step.name, step, profile.total.times[i]);
    }
    for (ReportRow& row : report.rows)
      if (const auto found = program->launches.find(row.what); found != program->launches.end())
        row.launches += found->second * profile.run_count;
  }
  return report;
}

std::vector<const bsp::Profile*> Offload::Implementation::profiles() const {
  std::vector<const bsp::Profile*> result;
  for (const auto& [key, program] : programs_) result.push_back(&program->queue.engine->profile());
  return result;
}

Offload::Offload(bsp::Device device, const OffloadOptions& options)
    : implementation_(std::make_unique<Implementation>(std::move(device), options)) {}
Offload::~Offload() = default;

void Offload::enter(void* host, const std::string& name, ElementType type, std::int64_t count, Enter how) {
  PresentArray& there = implementation_->present_.add(host, name, type, count);
  if (there.references++ == 0 && how == Enter::to)
    implementation_->transfer(CommandKind::to_device, there, there.host, 0, count);
}

void Offload::leave(void* host, Leave how) {
  const Departure departure{host, how};
  leave(std::span(&departure, 1));
}

void Offload::leave(std::span<const Departure> departures) {
  std::vector<void*> gone;
  bool read = false;
  for (const Departure& departure : departures) {
    PresentArray& there = implementation_->present_.get(departure.host, "an array that is to leave");
    if (departure.how == Leave::remove) there.references = 1;
    if (there.references == 0 || --there.references > 0) continue;
    gone.push_back(there.host);
    if (departure.how != Leave::from) continue;
    implementation_->transfer(CommandKind::from_device, there, there.host, 0, there.array->count);
    read = true;
  }
  if (read) finish();
  for (void* host : gone) implementation_->present_.remove(host);
}

std::optional<Offload::Mapped> Offload::mapped(const void* byte) const {
  const PresentArray* there = implementation_->present_.containing(byte);
  if (!there) return std::nullopt;
  return Mapped{there->host, there->array->name, there->array->type, there->array->count};
}

std::vector<Offload::Mapped> Offload::all_mapped() const {
  std::vector<Mapped> result;
  for (const auto& [begin, there] : implementation_->present_.all())
    result.push_back({there.host, there.array->name, there.array->type, there.array->count});
  return result;
}

bool Offload::present(const void* host) const { return implementation_->present_.find(host) != nullptr; }

void Offload::update_to(const void* host, std::int64_t begin, std::int64_t end) {
  PresentArray& there = implementation_->present_.get(host, "an array to update");
  implementation_->transfer(CommandKind::to_device, there, there.host, begin, end);
}

void Offload::update_from(void* host, std::int64_t begin, std::int64_t end) {
  PresentArray& there = implementation_->present_.get(host, "an array to update");
  implementation_->transfer(CommandKind::from_device, there, there.host, begin, end);
  finish();
}

void Offload::ask_for(void* host, std::int64_t begin, std::int64_t end) {
  PresentArray& there = implementation_->present_.get(host, "an array to update");
  implementation_->transfer(CommandKind::from_device, there, there.host, begin, end);
}

void Offload::launch(const Region& region, std::span<void* const> arrays) {
  implementation_->launch(implementation_->prepare(region, arrays));
}

void Offload::launch(const Region& region, std::span<void* const> arrays, const Region& instead,
                     std::span<void* const> instead_arrays) {
  Command command = implementation_->prepare(region, arrays);
  command.instead = std::make_shared<Command>(implementation_->prepare(instead, instead_arrays));
  implementation_->launch(std::move(command));
}

void Offload::finish() { implementation_->run(); }

const bsp::Device& Offload::device() const { return implementation_->device_; }

Report Offload::report() const { return implementation_->report(); }

std::vector<const bsp::Profile*> Offload::profiles() const { return implementation_->profiles(); }

const bsp::Profile* Offload::last_profile() const { return implementation_->last_; }

}  // namespace superstep::openmp
