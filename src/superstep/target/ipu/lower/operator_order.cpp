// Operands of products put in the order of the plan's vertex by all tiles, before parts receive them.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/integers.h"
#include "superstep/target/ipu/cut/channel_group.h"
#include "superstep/target/ipu/cut/operand_grid.h"
#include "superstep/target/ipu/lower/field_order.h"
#include "superstep/target/ipu/lower/operator_lowering.h"
#include "superstep/target/ipu/lower/vertex.h"

namespace superstep::target::ipu {

void OperatorLowering::order_inputs(Work& work, bsp::Sequence& program, LoweredStep& step) {
  if (!work.choice.product) return;
  const machine::ipu::OrderedFirst& ordered = work.choice.product->ordered;
  if (ordered.left == 0 && ordered.right == 0) return;
  const std::string name = work.name + "/order";
  const bsp::ComputeSet set = device_.add_compute_set(name);
  classes_.clear();
  if (ordered.left > 0) order_input(work, 0, ordered.left, set);
  if (ordered.right > 0) order_input(work, 1, ordered.right, set);
  classes_.clear();
  program.add(bsp::Execute(set, name));
  step.more_compute_sets.push_back(name);
}

// What the order is nobody here asks: the copy has the elements as the operand has them, and takes as long as
// one that moves them.
void OperatorLowering::order_input(Work& work, std::size_t i, std::int64_t atom, bsp::ComputeSet set) {
  const bsp::Tensor from = work.inputs[i];
  const graph::ValueType type{from.element_type(), from.shape()};
  const std::string label = fmt::format("{}, input {} in order", work.name, i);
  const std::int64_t group = field_of(from).second;
  const bsp::Tensor to = group == channel_group && has_channel_groups(type)
                             ? values_.grouped_variable(label, type)
                             : values_.plain_variable(label, type);
  const bsp::Tensor in = in_channel_order(from, group).flatten(), out = in_channel_order(to, group).flatten();
  const std::int64_t all = in.num_elements(), share = ceil_div<std::int64_t>(all, device_.num_tiles()),
                     each = std::max(least_elements, round_up(share, channel_group));
  for (std::int64_t begin = 0, tile = 0; begin < all; begin += each, ++tile) {
    const bsp::Interval range{begin, std::min(all, begin + each)};
    const auto [place, added] = classes_.emplace(
        std::vector<std::int64_t>{range.size(), atom, static_cast<std::int64_t>(type.element)},
        std::string());
    if (added) {
      place->second = fmt::format("Order#{}{}", prefix_, class_count_++);
      OperatorPart part;
      part.definition = &op::get("Identity");
      const Operand operand{true, {type.element, Shape{range.size()}}, std::nullopt, 1};
      part.inputs = {operand};
      part.outputs = {operand};
      const double bytes =
          static_cast<double>(range.size()) * static_cast<double>(size_in_bytes(type.element));
      device_.add_codelets({operator_vertex(
          place->second, std::move(part),
          static_cast<std::uint64_t>(machine::ipu::ordering_cycles(hardware_, bytes, atom)), 0)});
    }
    const bsp::Connection connections[] = {{input_field(0), in.slice(range)},
                                           {output_field(0), out.slice(range)}};
    device_.set_tile_mapping(out.slice(range), static_cast<std::uint32_t>(tile));
    device_.set_tile_mapping(
        device_.add_vertex(set, place->second, std::span<const bsp::Connection>(connections)),
        static_cast<std::uint32_t>(tile));
  }
  work.inputs[i] = to;
}

}  // namespace superstep::target::ipu
