// The parts of an operator as vertices: their fields in the order of memory, their classes.
#include <fmt/format.h>

#include "superstep/target/ipu/lower/field_order.h"
#include "superstep/target/ipu/lower/operator_lowering.h"
#include "superstep/target/ipu/lower/vertex.h"

namespace superstep::target::ipu {
namespace {

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

}  // namespace

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
    if (!work.in_place[i]) device_.set_tile_mapping(out, placed.tile);
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
  part.node = operation.node->name.empty() ? operation.node->op
                                           : fmt::format("{} '{}'", operation.node->op, operation.node->name);
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

}  // namespace superstep::target::ipu
