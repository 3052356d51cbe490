#include "superstep/target/ipu/operator_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/base/text.h"
#include "superstep/target/ipu/channel_group.h"
#include "superstep/target/ipu/combine.h"
#include "superstep/target/ipu/vertex.h"

namespace superstep::target::ipu {
namespace {

constexpr std::int64_t least_elements = 32;  // of a value on a tile that shares it with others
constexpr std::size_t most_partials = 32;    // that are added in one step

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
  key.insert(key.end(), shape.place.begin(), shape.place.end());
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

// Of the tiles that share a box, those that take a piece of it.
std::vector<std::uint32_t> thinned(std::vector<std::uint32_t> tiles, std::int64_t count) {
  std::vector<std::uint32_t> kept;
  const auto all = static_cast<std::int64_t>(tiles.size());
  for (std::int64_t k = 0; k < count; ++k) kept.push_back(tiles[static_cast<std::size_t>(k * all / count)]);
  return kept;
}

std::int64_t elements_of(const std::vector<Bounds>& bounds) {
  std::int64_t count = 1;
  for (const Bounds& along : bounds) {
    std::int64_t least = along[1];
    for (std::size_t i = 0; i + 1 < along.size(); ++i) least = std::min(least, along[i + 1] - along[i]);
    count *= least;
  }
  return count;
}

// A grid over some axes of an operand, whose boxes several parts share.
Spread shared_grid(Flattening flattening, const std::vector<Bounds>& bounds,
                   std::vector<std::vector<std::uint32_t>> sharers, std::int64_t grain,
                   std::int64_t least_here = least_elements) {
  auto least = static_cast<std::int64_t>(sharers[0].size());
  for (std::vector<std::uint32_t>& tiles : sharers) {
    std::sort(tiles.begin(), tiles.end());
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    least = std::min(least, static_cast<std::int64_t>(tiles.size()));
  }
  const std::int64_t count =
      std::clamp<std::int64_t>(elements_of(bounds) / least_here, 1, std::max<std::int64_t>(least, 1));
  for (std::vector<std::uint32_t>& tiles : sharers) tiles = thinned(std::move(tiles), count);
  return subdivided(flattening, bounds, sharers, grain);
}

// The grid that the cuts make of an operand's axes, and the box of it that a part has.
class OperandGrid {
 public:
  OperandGrid(const Partition& partition, const Shape& shape, bool input, std::size_t i)
      : axis_of_(partition.bounds.size(), -1) {
    for (int axis = 0; axis < shape.rank(); ++axis) bounds_.push_back({0, shape[axis]});
    for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
      const Cut& cut = partition.cuts.axes[c];
      const CutOperand& operand = input ? cut.inputs[i] : cut.outputs[i];
      if (operand.axis < 0 || partition.bounds[c].size() == 2) continue;
      Bounds& along = bounds_[static_cast<std::size_t>(operand.axis)];
      valid_ = valid_ && along.size() == 2 && !operand.reads;
      along = partition.bounds[c];
      for (std::int64_t& bound : along) bound *= operand.chunk;
      axis_of_[c] = operand.axis;
    }
  }

  bool valid() const { return valid_; }
  const std::vector<Bounds>& bounds() const { return bounds_; }
  std::size_t boxes() const {
    std::size_t count = 1;
    for (const Bounds& along : bounds_) count *= along.size() - 1;
    return count;
  }
  std::size_t box_of(const Part& part) const {
    std::vector<std::size_t> index(bounds_.size(), 0);
    for (std::size_t c = 0; c < axis_of_.size(); ++c)
      if (axis_of_[c] >= 0)
        index[static_cast<std::size_t>(axis_of_[c])] = static_cast<std::size_t>(part.index[c]);
    std::size_t box = 0;
    for (std::size_t axis = 0; axis < bounds_.size(); ++axis)
      box = box * (bounds_[axis].size() - 1) + index[axis];
    return box;
  }

 private:
  std::vector<int> axis_of_;  // of each cut
  std::vector<Bounds> bounds_;
  bool valid_ = true;  // no two cuts go along one axis
};

// Can the value lie in groups of channels? It can when every part has whole ones.
bool in_channel_groups(const graph::ValueType& type, const Partition& partition, std::size_t output) {
  if (!has_channel_groups(type)) return false;
  for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
    const CutOperand& operand = partition.cuts.axes[c].outputs[output];
    if (operand.axis != 1) continue;
    for (const std::int64_t bound : partition.bounds[c])
      if (bound * operand.chunk % channel_group != 0) return false;
  }
  return true;
}

bool reads_through_windows(const Partition& partition, std::size_t i) {
  if (i != 0) return false;
  for (std::size_t c = 0; c < partition.bounds.size(); ++c)
    if (partition.cuts.axes[c].window >= 0 && partition.bounds[c].size() > 2) return true;
  return false;
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
  const op::Cost cost = op::cost(graph_, node);
  Work work{node, definition, seen, *flat, choice, std::move(*parts), {}, {}, {}, {}, name, cost.flops};
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
  if (work.weights.size() > most_partials) {
    const std::string name = work.name + "/combine neighbours";
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
    if (partition.summed(i)) {
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
        sliced(partition.summed(i) ? work.partials[i][placed.part.partial] : work.results[i], ranges);
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
  OperatorPart part;
  part.definition = &work.definition;
  part.attributes = placed.shape.attributes;
  part.places = places;
  part.evaluate = placed.shape.evaluate;
  std::size_t field = 0;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    Operand operand;
    if (placed.shape.inputs[i]) {
      operand = {true, {operation.inputs[i]->element, *placed.shape.inputs[i]}, placed.shape.known[i], 1};
      if (!operand.known) operand.channel_group = groups[field++];
    }
    part.inputs.push_back(std::move(operand));
  }
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    Operand operand;
    if (placed.shape.outputs[i])
      operand = {
          true, {operation.outputs[i]->element, *placed.shape.outputs[i]}, std::nullopt, groups[field++]};
    part.outputs.push_back(std::move(operand));
  }
  double flops = work.flops;  // in the share that the part has of every dimension
  const Partition& partition = work.choice.partition;
  for (std::size_t c = 0; c < partition.bounds.size(); ++c)
    flops *=
        static_cast<double>(placed.part.range[c].size()) / static_cast<double>(partition.cuts.axes[c].units);
  device_.add_codelets({operator_vertex(place->second, std::move(part),
                                        cycles_of(hardware_, work.choice, operation, placed.shape),
                                        static_cast<std::uint64_t>(flops))});
  return place->second;
}

// --- partial results
// ----------------------------------------------------------------------------------------

// The tiles that have partial results of a box share its results among them: the more there are to add, the
// fewer elements are worth a tile.
Spread OperatorLowering::combined_spread(const Work& work, std::size_t i, bsp::Interval partials) const {
  const OperandGrid grid(work.choice.partition, work.results[i].shape(), false, i);
  std::vector<std::vector<std::uint32_t>> sharers(grid.boxes());
  for (const Placed& placed : work.parts)
    if (placed.part.partial >= partials.begin && placed.part.partial < partials.end)
      sharers[grid.box_of(placed.part)].push_back(placed.tile);
  const bool grouped = in_channel_groups(graph_.type(work.node.outputs[i]), work.choice.partition, i);
  const std::int64_t least =
      std::max<std::int64_t>(4, least_elements / std::max<std::int64_t>(1, partials.size() / 4));
  return shared_grid(work.flat.flattening(), grid.bounds(), std::move(sharers), grouped ? channel_group : 1,
                     least);
}

bsp::ComputeSet OperatorLowering::combine_groups(Work& work, const std::string& name) {
  const bsp::ComputeSet set = device_.add_compute_set(name);
  classes_.clear();
  const auto all = static_cast<std::int64_t>(work.weights.size());
  const auto groups = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(all))));
  const Bounds bounds = even_bounds(all, groups);
  const bool moments = work.choice.partition.cuts.combine == Combine::moments;
  std::vector<bsp::Tensor> sums(work.partials.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!work.partials[i].valid()) continue;
    std::vector<std::int64_t> extents = work.partials[i].shape().extents();
    extents[0] = groups;
    sums[i] = device_.add_variable(work.partials[i].element_type(), Shape(extents), name);
  }
  std::vector<double> weights;
  for (std::int64_t group = 0; group < groups; ++group) {
    const bsp::Interval range{bounds[static_cast<std::size_t>(group)],
                              bounds[static_cast<std::size_t>(group) + 1]};
    weights.push_back(
        std::accumulate(work.weights.begin() + range.begin, work.weights.begin() + range.end, 0.0));
    for (std::size_t i = 0; i < (moments ? 1 : sums.size()); ++i)
      if (sums[i].valid())
        combine_output(work, set, i, range, combined_spread(work, i, range), sums[i][group],
                       moments ? sums[1][group] : bsp::Tensor());
  }
  work.partials = std::move(sums);
  work.weights = std::move(weights);
  return set;
}

bsp::ComputeSet OperatorLowering::combine(Work& work, const std::string& name) {
  const bsp::ComputeSet set = device_.add_compute_set(name);
  classes_.clear();
  const bool moments = work.choice.partition.cuts.combine == Combine::moments;
  const auto all = static_cast<std::int64_t>(work.weights.size());
  for (std::size_t i = 0; i < (moments ? 1 : work.results.size()); ++i) {
    if (!work.partials[i].valid()) continue;
    Spread spread = combined_spread(work, i, {0, work.choice.partition.partials()});
    combine_output(work, set, i, {0, all}, spread, work.results[i],
                   moments ? work.results[1] : bsp::Tensor());
    if (moments) values_.set_spread(work.node.outputs[1], spread);
    values_.set_spread(work.node.outputs[i], std::move(spread));
  }
  return set;
}

void OperatorLowering::combine_output(Work& work, bsp::ComputeSet set, std::size_t i, bsp::Interval partials,
                                      const Spread& spread, const bsp::Tensor& result,
                                      const bsp::Tensor& second) {
  const std::vector<double> weights(work.weights.begin() + partials.begin,
                                    work.weights.begin() + partials.end);
  const ElementType element = work.operation.outputs[i]->element;
  const bsp::Tensor first = work.partials[i].slice(partials, 0);
  // Vertices are of one class where they add as many elements of the same weights.
  const bool weighted = work.choice.partition.cuts.combine == Combine::mean || second.valid();
  for_each_box(spread, [&](const std::vector<AxisRange>& ranges, std::uint32_t tile) {
    std::vector<AxisRange> behind = ranges;
    for (AxisRange& range : behind) ++range.axis;  // of the partial results: they are numbered first
    const bsp::Tensor out = sliced(result, ranges);
    const std::int64_t count = out.num_elements();
    std::vector<std::int64_t> key{count, static_cast<std::int64_t>(element), partials.size()};
    if (weighted) key.push_back(partials.begin);
    const auto [place, added] = classes_.emplace(std::move(key), std::string());
    if (added) {
      place->second = fmt::format("{}/combine#{}{}", work.node.op, prefix_, class_count_++);
      device_.add_codelets({combine_vertex(place->second, work.choice.partition.cuts.combine, element, count,
                                           weights, hardware_)});
    }
    std::vector<bsp::Connection> connections{{"in0", sliced(first, behind)}};
    if (second.valid()) connections.emplace_back("in1", sliced(work.partials[1].slice(partials, 0), behind));
    connections.emplace_back("out0", out);
    device_.set_tile_mapping(out, tile);
    if (second.valid()) {
      const bsp::Tensor variance = sliced(second, ranges);
      device_.set_tile_mapping(variance, tile);
      connections.emplace_back("out1", variance);
    }
    device_.set_tile_mapping(
        device_.add_vertex(set, place->second, std::span<const bsp::Connection>(connections)), tile);
  });
}

}  // namespace superstep::target::ipu
