#include "superstep/openmp/lower.h"

#include "superstep/openmp/body_vertex.h"
#include "superstep/openmp/lowering.h"

namespace superstep::openmp {
namespace {

// The arrays of more elements than a tile should have around its cell: a padded cell of more than four times
// the cell is received apart instead. Both chosen.
constexpr std::int64_t padding_limit = 4, padding_free = 64;

}  // namespace

// The tiles' boxes of an array reach as far as its direct readers do, unless that is too far.
void Lowering::widen(const Command& command, std::map<DeviceArray*, Halo>& halos) const {
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  for (std::size_t slot = 0; slot < command.arrays.size(); ++slot) {
    DeviceArray* array = command.arrays[slot];
    if (plan.region.arrays[slot].extents != array->placement->extents || plan.region.gathers(slot)) continue;
    std::map<std::uint32_t, Box> cells;
    std::int64_t largest = 0;
    array->placement->cells.for_each([&](std::uint32_t tile, const Box& cell) {
      cells[tile] = cell;
      largest = std::max(largest, cell.volume());
    });
    Halo halo = halos[array];
    std::int64_t padded = 0;
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
      const Box& reached = plan.uses[slot].reached[i];
      if (reached.empty()) continue;
      const auto cell = cells.find(plan.parts[i].tile);
      if (cell == cells.end() || cell->second.empty()) return;
      for (std::size_t axis = 0; axis < reached.rank(); ++axis) {
        halo.low[axis] = std::max(halo.low[axis], cell->second.begin[axis] - reached.begin[axis]);
        halo.high[axis] = std::max(halo.high[axis], reached.end[axis] - cell->second.end[axis]);
      }
    }
    for (const auto& [tile, cell] : cells) {
      std::int64_t volume = 1;
      for (std::size_t axis = 0; axis < cell.rank(); ++axis)
        volume *=
            std::min(array->placement->extents[axis], cell.extent(axis) + halo.low[axis] + halo.high[axis]);
      padded = std::max(padded, volume);
    }
    if (padded <= padding_limit * largest + padding_free) halos[array] = halo;
  }
}

void Lowering::make_storage() {
  std::map<DeviceArray*, Halo> halos;
  std::vector<DeviceArray*> order;
  for (const Command& command : commands_)
    for (DeviceArray* array : command.arrays)
      if (!halos.contains(array)) {
        const std::vector<std::int64_t> none(array->placement->extents.size(), 0);
        halos[array] = {none, none};
        order.push_back(array);
      }
  std::set<Binding> seen;
  for (const Command& command : commands_)
    if (command.kind == CommandKind::launch && seen.insert({command.plan, command.arrays}).second)
      widen(command, halos);
  for (DeviceArray* array : order) {
    storage_[array] = std::make_unique<Storage>(graph_, *array, halos[array]);
    const Storage& storage = *storage_[array];
    LoweredQueue::Image image{array, fmt::format("image {}", array->number), storage.owned(0, array->count)};
    const bsp::Tensor tensor = storage.tensor(image.boxes);
    graph_.create_host_write(image.handle, tensor);
    graph_.create_host_read(image.handle, tensor);
    result_.images.push_back(std::move(image));
  }
}

// The scalars of a plan on each of its tiles.
const bsp::Tensor& Lowering::scalars_of(const Plan& plan, int number) {
  const auto [place, added] = scalars_.try_emplace(number);
  if (!added) return place->second;
  const bsp::Tensor tensor = graph_.add_variable(
      ElementType::u64, {static_cast<std::int64_t>(plan.parts.size()), scalar_words(plan.region)},
      name(plan, "scalars"));
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    graph_.set_tile_mapping(tensor[static_cast<std::int64_t>(i)], plan.parts[i].tile);
  return place->second = tensor;
}

// From the host to the first tile, and from there to all.
void Lowering::send_scalars(std::size_t index) {
  const Command& command = commands_[index];
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  const std::int64_t words = scalar_words(plan.region);
  const std::string handle = fmt::format("scalars {}", command.plan);
  auto known = std::ranges::find(result_.scalars, handle, &LoweredQueue::ScalarStream::handle);
  if (known == result_.scalars.end()) {
    const std::string what = name(plan, "scalars");
    const bsp::Tensor& all = scalars_of(plan, command.plan);
    const bsp::DataStream stream = graph_.add_host_to_device_fifo(handle, ElementType::u64, words);
    bsp::Sequence program;
    program.add(bsp::Copy(stream, all[0], what));
    if (plan.parts.size() > 1) {
      const auto others = static_cast<std::int64_t>(plan.parts.size());
      program.add(bsp::Copy(all.slice(0, 1).broadcast(others - 1, 0), all.slice(1, others), what));
    }
    sends_.emplace(command.plan, program);
    result_.scalars.push_back({handle, static_cast<std::size_t>(words) * sizeof(std::uint64_t), {}});
    known = std::prev(result_.scalars.end());
  }
  known->commands.push_back(index);
  add_step(handle, sends_.at(command.plan));
}

bsp::Program Lowering::make_compute(const Binding& binding, const std::vector<Operand>& operands,
                                    bool scalars_vary) {
  const std::shared_ptr<const Plan>& plan = plans_[static_cast<std::size_t>(binding.first)];
  const std::string class_name = fmt::format("{}#{}", to_string(plan->region.place), binding.first);
  if (!graph_.has_codelet(class_name))
    graph_.add_codelets({body_class(plan, class_name, device_.workers, scalars_vary)});
  std::vector<std::vector<bsp::Tensor>> partials;
  for (std::size_t r = 0; r < plan->region.reductions.size(); ++r) partials.push_back(add_partials(*plan, r));
  const bsp::ComputeSet set = graph_.add_compute_set(name(*plan, "compute"));
  for (std::size_t i = 0; i < plan->parts.size(); ++i) {
    const bsp::VertexRef vertex = graph_.add_vertex(set, class_name);
    graph_.set_tile_mapping(vertex, plan->parts[i].tile);
    std::vector<Box> local(operands.size());
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
      if (!operands[slot].used) continue;
      graph_.connect(bsp::field(vertex, fmt::format("array {}", slot)), operands[slot].tensors[i]);
      local[slot] = operands[slot].boxes[i];
    }
    for (std::size_t r = 0; r < partials.size(); ++r)
      graph_.connect(bsp::field(vertex, fmt::format("reduction {}", r)), partials[r][i]);
    if (scalars_vary)
      graph_.connect(bsp::field(vertex, "scalars"),
                     scalars_of(*plan, binding.first)[static_cast<std::int64_t>(i)]);
    set_body_state(graph_, vertex, *plan, plan->parts[i], local);
    const bsp::PerfEstimate cost = cost_of_part(*plan, plan->parts[i], device_);
    graph_.set_perf_estimate(vertex, cost.cycles, cost.flops);
  }
  bsp::Sequence program;
  program.add(bsp::Execute(set, name(*plan, "compute")));
  for (std::size_t r = 0; r < partials.size(); ++r) {
    std::vector<bsp::Tensor> rows;
    for (const bsp::Tensor& tensor : partials[r]) rows.push_back(tensor.expand({0}));
    add_combining(binding, r, bsp::concat(rows), program);
  }
  return program;
}

Bound& Lowering::bound(const Command& command) {
  const Binding binding{command.plan, command.arrays};
  const auto [place, added] = bound_.try_emplace(binding);
  if (!added) return place->second;
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  Bound& result = place->second;
  for (std::size_t slot = 0; slot < command.arrays.size(); ++slot)
    result.operands.push_back(make_operand(plan, slot, *storage_.at(command.arrays[slot])));
  if (!plan.parts.empty()) result.compute = make_compute(binding, result.operands, command.scalars_vary);
  return result;
}

void Lowering::add_step(const std::string& key, const bsp::Program& program) {
  const auto [place, added] = step_numbers_.try_emplace(key, static_cast<int>(steps_.size()));
  if (added) steps_.push_back(program);
  row_.push_back(place->second);
}

void Lowering::add_launch(std::size_t index) {
  const Command& command = commands_[index];
  Bound& launch = bound(command);
  if (!launch.compute) return;  // no iterations
  if (command.sends_scalars) send_scalars(index);
  const Plan& plan = *plans_[static_cast<std::size_t>(command.plan)];
  bsp::Sequence program;
  std::string key = fmt::format("launch {}", command.plan);
  for (std::size_t slot = 0; slot < launch.operands.size(); ++slot) {
    const Operand& operand = launch.operands[slot];
    DeviceArray* array = command.arrays[slot];
    const bool stale = operand.used && operand.refresh && fresh_[array].insert(operand.signature).second;
    key += fmt::format(" {}{}", array->number, stale ? "*" : "");
    if (stale) program.add(*operand.refresh);
  }
  program.add(*launch.compute);
  for (std::size_t slot = 0; slot < launch.operands.size(); ++slot) {
    if (launch.operands[slot].write_back) program.add(*launch.operands[slot].write_back);
    if (plan.uses[slot].writes) fresh_[command.arrays[slot]].clear();
  }
  for (const Reduction& reduction : plan.region.reductions)
    fresh_[command.arrays[static_cast<std::size_t>(reduction.array)]].clear();
  add_step(key, program);
}

void Lowering::add_transfer(std::size_t index) {
  const Command& command = commands_[index];
  DeviceArray* array = command.arrays[0];
  const Storage& storage = *storage_.at(array);
  const bool in = command.kind == CommandKind::to_device;
  LoweredQueue::Transfer transfer{fmt::format("{} {}", in ? "to" : "from", index), index,
                                  storage.owned(command.begin, command.end)};
  if (transfer.boxes.empty()) return;
  const bsp::Tensor tensor = storage.tensor(transfer.boxes);
  const std::string what = fmt::format("{} {} {}", array->name, in ? "from" : "to", "the host");
  if (in) {
    const bsp::DataStream stream =
        graph_.add_host_to_device_fifo(transfer.handle, tensor.element_type(), tensor.num_elements());
    add_step(transfer.handle, bsp::Copy(stream, tensor, what));
    fresh_[array].clear();
  } else {
    const bsp::DataStream stream =
        graph_.add_device_to_host_fifo(transfer.handle, tensor.element_type(), tensor.num_elements());
    add_step(transfer.handle, bsp::Copy(tensor, stream, what));
  }
  result_.transfers.push_back(std::move(transfer));
}

LoweredQueue Lowering::finish() {
  bsp::Sequence main;
  for (const Turns& turns : find_turns(row_)) {
    bsp::Sequence body;
    for (std::size_t i = 0; i < turns.period; ++i)
      body.add(steps_[static_cast<std::size_t>(row_[turns.begin + i])]);
    if (turns.count == 1) {
      main.add(body);
      continue;
    }
    main.add(bsp::Repeat(turns.count, body));
    result_.captured += fmt::format("{}{} x ({} step{})", result_.captured.empty() ? "" : ", ", turns.count,
                                    turns.period, turns.period == 1 ? "" : "s");
  }
  const bsp::Program programs[] = {main};
  bsp::CompileOptions compile;
  compile.allow_undefined_reads = true;  // map(alloc) gives memory that holds anything
  compile.timing_only = options_.timing_only;
  result_.engine = std::make_unique<bsp::Engine>(
      graph_, programs, bsp::EngineOptions{.threads = options_.threads, .timing_only = options_.timing_only},
      compile);
  return std::move(result_);
}

LoweredQueue lower_queue(const bsp::Device& device, std::span<const Command> commands,
                         std::span<const std::shared_ptr<const Plan>> plans, const LowerOptions& options) {
  return Lowering(device, commands, plans, options).run();
}

}  // namespace superstep::openmp
