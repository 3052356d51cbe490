#include "superstep/target/ipu/lower/operator_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "superstep/base/text.h"
#include "superstep/target/ipu/cut/channel_group.h"
#include "superstep/target/ipu/cut/combining.h"
#include "superstep/target/ipu/cut/fused.h"
#include "superstep/target/ipu/cut/operand_grid.h"

namespace superstep::target::ipu {
namespace {

bool reads_through_windows(const Partition& partition, std::size_t i) {
  if (i != 0) return false;
  for (std::size_t c = 0; c < partition.bounds.size(); ++c)
    if (partition.cuts.axes[c].moves_windows() && partition.bounds[c].size() > 2) return true;
  return false;
}

// Every part has the same range of input k as of output i: no other part reads what it writes.
bool reads_what_it_writes(const Partition& partition, std::size_t k, std::size_t i) {
  if (reads_through_windows(partition, k)) return false;
  for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
    if (partition.bounds[c].size() == 2) continue;
    const CutOperand &in = partition.cuts.axes[c].inputs[k], &out = partition.cuts.axes[c].outputs[i];
    if (in.axis < 0 || in.axis != out.axis || in.chunk != out.chunk || in.reads || out.reads) return false;
  }
  return true;
}

// Elements that stand behind each partial result: of the ranges that are summed.
template <class PlacedParts>
std::vector<double> weights_of(const Partition& partition, const PlacedParts& parts) {
  std::vector<double> weights(static_cast<std::size_t>(partition.partials()), 1);
  for (const auto& placed : parts) {
    const Part& part = placed.part;
    double weight = 1;
    for (std::size_t c = 0; c < partition.bounds.size(); ++c)
      if (partition.cuts.axes[c].summed) weight *= static_cast<double>(part.range[c].size());
    weights[static_cast<std::size_t>(part.partial)] = weight;
  }
  return weights;
}

}  // namespace

LoweredStep OperatorLowering::lower(const graph::Node& node, const Operation& operation,
                                    const std::string& name, bsp::Sequence& program) {
  const op::Definition& definition = op::get(node.op);
  Spreads spreads;
  for (const graph::ValueId id : node.inputs) spreads.push_back(id.valid() ? values_.spread(id) : nullptr);
  spreads.resize(operation.inputs.size());
  Choice choice = choose(hardware_, operation, spreads);
  std::optional<FlatOperation> flat = FlatOperation::make(operation, choice.flattening);
  Operation seen = flat->operation();
  std::optional<std::vector<Placed>> parts = parts_of(definition, seen, choice);
  if (!parts) {  // the operator's own shape rule does not take the parts
    choice = {};
    flat.emplace(*FlatOperation::make(operation, Flattening::none));
    seen = flat->operation();
    parts = parts_of(definition, seen, choice);
  }
  classes_.clear();
  const op::Cost cost = operation.fused ? operation.fused->cost : op::cost(graph_, node);
  Work work{node, definition, seen, *flat, choice, std::move(*parts), {}, {}, {}, {}, {}, name, cost.flops};
  const auto count = static_cast<std::int64_t>(work.parts.size());
  LoweredStep step{
      {.node = node.name,
       .op = node.op,
       .kernel = count == 1 ? std::string("one vertex")
                            : fmt::format("{} vertices", format_count(static_cast<double>(count))),
       .refusals = refusals(work),
       .flops = cost.flops,
       .bytes = cost.bytes},
      name,
      {}};
  if (choice.product) step.plan.kernel += fmt::format(" ({})", choice.product->plan.plan.partition);
  emit(work, program, step);
  return step;
}

std::vector<std::string> OperatorLowering::refusals(const Work& work) {
  std::int64_t elements = 0;
  for (const graph::ValueType* type : work.operation.outputs)
    elements = std::max(elements, type ? type->shape.element_count() : 0);
  if (work.parts.size() > 1 || elements <= 1) return {};
  if (work.choice.partition.cuts.axes.empty())
    return {fmt::format("parts on many tiles: {}", why_whole(work.node.op))};
  return {"parts on many tiles: one is not slower"};
}

std::optional<std::vector<OperatorLowering::Placed>> OperatorLowering::parts_of(
    const op::Definition& definition, const Operation& operation, const Choice& choice) const {
  const Partition& partition = choice.partition;
  const std::int64_t count = partition.count();
  std::vector<Placed> parts;
  std::set<std::vector<std::int64_t>> checked;
  for (std::int64_t number = 0; number < count; ++number) {
    Placed placed{part_of(partition, number), {}, 0};
    placed.shape = part_shape(definition, operation, partition, placed.part);
    placed.tile = tile_of(partition, placed.part, number);
    if (count > 1 && checked.insert(key_of(placed.shape)).second &&
        !agrees(definition, operation, placed.shape))
      return std::nullopt;
    parts.push_back(std::move(placed));
  }
  return parts;
}

// Parts of one turn lie evenly over all tiles; those of the next turn on the same ones.
std::uint32_t OperatorLowering::tile_of(const Partition& partition, const Part& part,
                                        std::int64_t number) const {
  if (!partition.tiles.empty()) return partition.tiles[static_cast<std::size_t>(number)];
  const std::int64_t count = partition.count() / partition.turns;
  if (partition.turns > 1) {
    number = 0;
    for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
      const std::int64_t turns = c == partition.turn_cut ? partition.turns : 1;
      const std::int64_t along = (static_cast<std::int64_t>(partition.bounds[c].size()) - 1) / turns;
      number = number * along + part.index[c] / turns;
    }
  }
  const auto tiles = static_cast<std::int64_t>(device_.num_tiles());
  return static_cast<std::uint32_t>(count <= tiles ? number * (tiles / count) : number % tiles);
}

void OperatorLowering::emit(Work& work, bsp::Sequence& program, LoweredStep& step) {
  for (std::size_t i = 0; i < work.node.inputs.size(); ++i) {
    const bool needed = work.operation.inputs[i] && !work.parts[0].shape.known[i];
    work.inputs.push_back(needed ? work.flat.input(i, values_.tensor(work.node.inputs[i])) : bsp::Tensor());
  }
  place_inputs(work);
  order_inputs(work, program, step);
  make_outputs(work);
  const std::int64_t turns = work.choice.partition.turns;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    const std::string name = turns == 1 ? work.name : fmt::format("{}/turn {}", work.name, turn);
    const bsp::ComputeSet set = device_.add_compute_set(name);
    for (const Placed& placed : work.parts)
      if (placed.part.turn == turn) add_part(work, placed, set);
    program.add(bsp::Execute(set, name));
    if (turns > 1) step.more_compute_sets.push_back(name);
  }
  if (std::ranges::none_of(work.partials, &bsp::Tensor::valid)) return;
  work.weights = weights_of(work.choice.partition, work.parts);
  const auto add = [&](const std::string& name, bsp::ComputeSet set) {
    program.add(bsp::Execute(set, name));
    step.more_compute_sets.push_back(name);
  };
  if (work.choice.partition.partials() > most_partials) {
    const std::string name = work.name + "/combine neighbors";
    add(name, combine_groups(work, name));
  }
  const std::string name = work.name + "/combine";
  add(name, combine(work, name));
}

// Values without a place go where the parts that read them are.
void OperatorLowering::place_inputs(Work& work) {
  for (std::size_t i = 0; i < work.inputs.size(); ++i)
    if (work.inputs[i].valid() && values_.is_waiting(work.node.inputs[i])) place_input(work, i);
}

void OperatorLowering::place_input(Work& work, std::size_t i) {
  const graph::ValueId id = work.node.inputs[i];
  const bsp::Tensor& flat = work.inputs[i];
  const OperandGrid grid(work.choice.partition, flat.shape(), true, i);
  if (!grid.valid() || flat.num_elements() == 0 || reads_through_windows(work.choice.partition, i) ||
      flat.num_elements() != values_.tensor(id).num_elements())
    return values_.place_evenly(id);
  std::vector<std::vector<std::uint32_t>> sharers(grid.boxes());
  for (const Placed& placed : work.parts)
    if (placed.shape.inputs[i]) sharers[grid.box_of(placed.part)].push_back(placed.tile);
  values_.place(id, flat, shared_grid(work.flat.flattening(), grid.bounds(), std::move(sharers), 1));
}

void OperatorLowering::make_outputs(Work& work) {
  const std::vector<std::uint32_t> tiles = tiles_of(work);
  for (std::size_t i = 0; i < work.node.outputs.size(); ++i) {
    work.results.emplace_back();
    work.partials.emplace_back();
    work.in_place.push_back(false);
    if (work.operation.outputs[i]) make_output(work, i, tiles);
  }
}

void OperatorLowering::make_output(Work& work, std::size_t i, const std::vector<std::uint32_t>& tiles) {
  const Partition& partition = work.choice.partition;
  const graph::ValueId id = work.node.outputs[i];
  if (const std::optional<graph::ValueId> state = replaced_state(work, i)) {
    work.in_place[i] = true;
    values_.set(id, values_.tensor(*state));
    work.results[i] = work.flat.output(i, values_.tensor(*state));
    if (const Spread* spread = values_.spread(*state)) values_.set_spread(id, *spread);
    return;
  }
  const std::string label = label_of(graph_.value(id), work.name);
  const bool grouped =
      work.flat.flattening() != Flattening::all && in_channel_groups(graph_.type(id), partition, i);
  const bsp::Tensor tensor = grouped ? values_.grouped_variable(label, graph_.type(id))
                                     : values_.plain_variable(label, graph_.type(id));
  values_.set(id, tensor);
  work.results[i] = work.flat.output(i, tensor);
  if (tensor.num_elements() == 0) device_.set_tile_mapping(tensor, 0);
  if (partition.summed(i)) {
    work.partials[i] = stacked(work, i, partition.partials(), label + ", partial");
  } else if (std::optional<Spread> spread =
                 spread_of_output(partition, work.flat.flattening(), work.results[i].shape(), i, tiles)) {
    values_.set_spread(id, std::move(*spread));
  }
}

std::optional<graph::ValueId> OperatorLowering::replaced_state(const Work& work, std::size_t i) {
  const std::optional<graph::ValueId> state = values_.replaced_by(work.node.outputs[i]);
  if (!state || values_.is_waiting(*state) || work.choice.partition.summed(i)) return std::nullopt;
  if (graph_.type(*state).shape.element_count() == 0) return std::nullopt;
  for (std::size_t k = 0; k < work.node.inputs.size(); ++k) {
    const graph::ValueId input = work.node.inputs[k];
    if (!input.valid() || !work.inputs[k].valid() || !values_.shares_variable(input, *state)) continue;
    if (input != *state || !reads_what_it_writes(work.choice.partition, k, i)) return std::nullopt;
  }
  return state;
}

// One after the other, each as the result lies.
bsp::Tensor OperatorLowering::stacked(const Work& work, std::size_t i, std::int64_t count,
                                      const std::string& name) {
  const bool grouped = work.flat.flattening() != Flattening::all &&
                       in_channel_groups(graph_.type(work.node.outputs[i]), work.choice.partition, i);
  std::vector<std::int64_t> extents = work.results[i].shape().extents(), all = extents;
  if (extents.empty()) all = {1};
  all[0] *= count;
  const graph::ValueType type{work.results[i].element_type(), Shape(all)};
  const bsp::Tensor made = grouped && has_channel_groups(type) ? values_.grouped_variable(name, type)
                                                               : values_.plain_variable(name, type);
  extents.insert(extents.begin(), count);
  return made.reshape(Shape(extents));
}

std::vector<std::uint32_t> OperatorLowering::tiles_of(const Work& work) const {
  std::vector<std::uint32_t> tiles;
  for (const Placed& placed : work.parts) tiles.push_back(placed.tile);
  return tiles;
}

}  // namespace superstep::target::ipu
