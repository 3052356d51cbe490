#include <fmt/format.h>

#include <cstring>

#include "superstep/openmp/offload_implementation.h"
#include "superstep/openmp/plan_key.h"

namespace superstep::openmp {

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

CompiledQueue& Offload::Implementation::program() {
  std::unique_ptr<CompiledQueue>& known = programs_[queue_key()];
  if (known) return *known;
  try {
    std::vector<std::shared_ptr<const Plan>> plans;
    for (const KnownPlan& plan : plans_) plans.push_back(plan.plan);
    auto made = std::make_unique<CompiledQueue>();
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

void Offload::Implementation::write_memory(CompiledQueue& program) {
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

std::vector<std::vector<std::byte>> Offload::Implementation::connect(CompiledQueue& program) {
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
  CompiledQueue& now = program();
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

}  // namespace superstep::openmp
