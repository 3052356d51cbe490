#include "superstep/target/ipu/operator_lowering.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/target/ipu/channel_group.h"
#include "superstep/target/ipu/operand_grid.h"
#include "superstep/target/ipu/vertex.h"

namespace superstep::target::ipu {
namespace {

std::vector<std::int64_t> window_numbers(const graph::Attributes& attributes) {
  std::vector<std::int64_t> numbers = attributes.integers("pads", {});
  for (const std::int64_t value : attributes.integers("output_padding", {})) numbers.push_back(value);
  return numbers;
}

// What tells parts of a node apart: shapes, padding, places.
std::vector<std::int64_t> key_of(const PartShape& shape) {
  std::vector<std::int64_t> key;
  for (const auto* list : {&shape.inputs, &shape.outputs})
    for (const std::optional<Shape>& one : *list) {
      key.push_back(one ? one->rank() : -1);
      if (one) key.insert(key.end(), one->begin(), one->end());
    }
  for (const std::int64_t number : window_numbers(shape.attributes)) key.push_back(number);
  return key;
}

// Where a part of a max-pooling that deals in places begins.
std::optional<PlaceBox> places_of(const Operation& operation, const Cuts& cuts, const Part& part,
                                  const PartShape& shape) {
  const bool gradient = operation.node->op == "superstep.MaxPoolGradient";
  if (!gradient && (operation.node->op != "MaxPool" || operation.outputs.size() < 2 || !operation.outputs[1]))
    return std::nullopt;
  const Shape& whole = gradient ? operation.output() : operation.input(0);
  PlaceBox box;
  box.begin.assign(static_cast<std::size_t>(whole.rank()), 0);
  box.whole = whole.extents();
  box.part = (gradient ? *shape.outputs[0] : *shape.inputs[0]).extents();
  for (const AxisRange& range : operand_ranges(cuts, part, !gradient, 0))
    box.begin[static_cast<std::size_t>(range.axis)] = range.range.begin;
  return box;
}

bool is_in_order(const bsp::Tensor& tensor) {
  const auto regions = tensor.view().regions();
  return regions.empty() || regions[0].loops.empty() || regions[0].loops.back().element_stride == 1;
}

// [N, C, positions] as [N, C / g, positions, g].
bsp::Tensor grouped(const bsp::Tensor& tensor, std::int64_t g) {
  const Shape& shape = tensor.shape();
  std::vector<std::int64_t> extents{shape[0], shape[1] / g, g};
  std::vector<int> order{0, 1};
  for (int axis = 2; axis < shape.rank(); ++axis) {
    extents.push_back(shape[axis]);
    order.push_back(axis + 1);
  }
  order.push_back(2);
  return tensor.reshape(Shape(extents)).dim_shuffle(order);
}

// A field in the order in which the elements lie, and its channel group.
std::pair<bsp::Tensor, std::int64_t> field_of(const bsp::Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() < 3 || tensor.num_elements() == 0 || is_in_order(tensor)) return {tensor, 1};
  for (std::int64_t g = channel_group; g > 1; g /= 2) {
    if (shape[1] % g != 0) continue;
    bsp::Tensor field = grouped(tensor, g);
    if (is_in_order(field)) return {std::move(field), g};
    break;
  }
  return {tensor, 1};
}

bool reads_through_windows(const Partition& partition, std::size_t i) {
  if (i != 0) return false;
  for (std::size_t c = 0; c < partition.bounds.size(); ++c)
    if (partition.cuts.axes[c].window >= 0 && partition.bounds[c].size() > 2) return true;
  return false;
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
  const op::Cost cost = op::cost(graph_, node);
  Work work{node, definition, seen, *flat, choice, std::move(*parts), {}, {}, {}, name, cost.flops};
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
    return {"parts on many tiles: there is no rule that cuts this operator"};
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
  if (!work.choice.partition.summed()) return;
  combine(work, program, step);
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
  const Partition& partition = work.choice.partition;
  const std::vector<std::uint32_t> tiles = tiles_of(work);
  for (std::size_t i = 0; i < work.node.outputs.size(); ++i) {
    work.results.emplace_back();
    work.partials.emplace_back();
    if (!work.operation.outputs[i]) continue;
    const graph::ValueId id = work.node.outputs[i];
    const bool grouped =
        work.flat.flattening() != Flattening::all && in_channel_groups(graph_.type(id), partition, i);
    const bsp::Tensor tensor = grouped ? values_.grouped_variable(graph_.value(id).name, graph_.type(id))
                                       : values_.plain_variable(graph_.value(id).name, graph_.type(id));
    values_.set(id, tensor);
    work.results[i] = work.flat.output(i, tensor);
    if (tensor.num_elements() == 0) device_.set_tile_mapping(tensor, 0);
    if (partition.summed()) {
      // A partial result after the other, each as the result lies.
      std::vector<std::int64_t> extents = work.results[i].shape().extents(), stacked = extents;
      if (extents.empty()) stacked = extents = {1};
      stacked[0] *= partition.partials();
      const graph::ValueType type{tensor.element_type(), Shape(stacked)};
      const std::string name = graph_.value(id).name + "/partials";
      const bsp::Tensor partials = grouped && has_channel_groups(type) ? values_.grouped_variable(name, type)
                                                                       : values_.plain_variable(name, type);
      extents = work.results[i].shape().extents();
      extents.insert(extents.begin(), partition.partials());
      work.partials[i] = partials.reshape(Shape(extents));
    } else if (std::optional<Spread> spread =
                   spread_of_output(partition, work.flat.flattening(), work.results[i].shape(), i, tiles)) {
      values_.set_spread(id, std::move(*spread));
    }
  }
}

std::vector<std::uint32_t> OperatorLowering::tiles_of(const Work& work) const {
  std::vector<std::uint32_t> tiles;
  for (const Placed& placed : work.parts) tiles.push_back(placed.tile);
  return tiles;
}

void OperatorLowering::add_part(const Work& work, const Placed& placed, bsp::ComputeSet set) {
  const Partition& partition = work.choice.partition;
  std::vector<bsp::Connection> connections;
  std::vector<std::int64_t> groups;
  for (std::size_t i = 0; i < work.inputs.size(); ++i) {
    if (!work.inputs[i].valid() || !placed.shape.inputs[i]) continue;
    auto [field, group] =
        field_of(sliced(work.inputs[i], operand_ranges(partition.cuts, placed.part, true, i)));
    connections.emplace_back(input_field(i), std::move(field));
    groups.push_back(group);
  }
  for (std::size_t i = 0; i < work.results.size(); ++i) {
    if (!work.results[i].valid()) continue;
    const std::vector<AxisRange> ranges = operand_ranges(partition.cuts, placed.part, false, i);
    const bsp::Tensor out =
        sliced(partition.summed() ? work.partials[i][placed.part.partial] : work.results[i], ranges);
    device_.set_tile_mapping(out, placed.tile);
    auto [field, group] = field_of(out);
    connections.emplace_back(output_field(i), std::move(field));
    groups.push_back(group);
  }
  device_.set_tile_mapping(
      device_.add_vertex(set, class_of(work, placed, groups), std::span<const bsp::Connection>(connections)),
      placed.tile);
}

// One class for all parts of a node that have the same shape.
const std::string& OperatorLowering::class_of(const Work& work, const Placed& placed,
                                              const std::vector<std::int64_t>& groups) {
  const Operation& operation = work.operation;
  const std::optional<PlaceBox> places =
      places_of(operation, work.choice.partition.cuts, placed.part, placed.shape);
  std::vector<std::int64_t> key = key_of(placed.shape);
  key.insert(key.end(), groups.begin(), groups.end());
  if (places) key.insert(key.end(), places->begin.begin(), places->begin.end());
  const auto [place, added] = classes_.emplace(std::move(key), std::string());
  if (!added) return place->second;
  place->second = fmt::format("{}#{}{}", operation.node->op, prefix_, class_count_++);
  auto part = std::make_shared<OperatorPart>();
  part->definition = &work.definition;
  part->attributes = placed.shape.attributes;
  part->places = places;
  std::size_t field = 0;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    Operand operand;
    if (placed.shape.inputs[i]) {
      operand = {true, {operation.inputs[i]->element, *placed.shape.inputs[i]}, placed.shape.known[i], 1};
      if (!operand.known) operand.channel_group = groups[field++];
    }
    part->inputs.push_back(std::move(operand));
  }
  double elements = 0, whole = 0;
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    Operand operand;
    if (placed.shape.outputs[i]) {
      operand = {
          true, {operation.outputs[i]->element, *placed.shape.outputs[i]}, std::nullopt, groups[field++]};
      elements += static_cast<double>(placed.shape.outputs[i]->element_count());
      whole += static_cast<double>(operation.output(i).element_count());
    }
    part->outputs.push_back(std::move(operand));
  }
  const double share = static_cast<double>(work.choice.partition.partials());
  const double flops = whole > 0 ? work.flops * elements / whole / share : 0;
  device_.add_codelets({operator_vertex(place->second, std::move(part),
                                        cycles_of(hardware_, work.choice, operation, placed.shape),
                                        static_cast<std::uint64_t>(flops))});
  return place->second;
}

}  // namespace superstep::target::ipu
