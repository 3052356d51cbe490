// Partial results of an operator's parts, added up or averaged: neighbours first where there are many.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/target/ipu/cut/channel_group.h"
#include "superstep/target/ipu/cut/combining.h"
#include "superstep/target/ipu/cut/operand_grid.h"
#include "superstep/target/ipu/lower/combine.h"
#include "superstep/target/ipu/lower/field_order.h"
#include "superstep/target/ipu/lower/operator_lowering.h"

namespace superstep::target::ipu {

// The tiles that have partial results of a box share its results among them: the more there are to add, the
// fewer elements are worth a tile.
Spread OperatorLowering::combined_spread(const Work& work, std::size_t i, bsp::Interval partials) const {
  const OperandGrid grid(work.choice.partition, work.results[i].shape(), false, i);
  std::vector<std::vector<std::uint32_t>> sharers(grid.boxes());
  for (const Placed& placed : work.parts)
    if (placed.part.partial >= partials.begin && placed.part.partial < partials.end)
      sharers[grid.box_of(placed.part)].push_back(placed.tile);
  const bool grouped = in_channel_groups(graph_.type(work.node.outputs[i]), work.choice.partition, i);
  return shared_grid(work.flat.flattening(), grid.bounds(), std::move(sharers), grouped ? channel_group : 1,
                     least_combined(partials.size()));
}

bsp::ComputeSet OperatorLowering::combine_groups(Work& work, const std::string& name) {
  const bsp::ComputeSet set = device_.add_compute_set(name);
  classes_.clear();
  const auto all = static_cast<std::int64_t>(work.weights.size());
  const std::int64_t groups = combined_groups(all);
  const Bounds bounds = even_bounds(all, groups);
  const bool pairs = combines_pairs(work.choice.partition.cuts.combine);
  std::vector<bsp::Tensor> sums(work.partials.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!work.partials[i].valid()) continue;
    sums[i] = stacked(work, i, groups, name);
  }
  std::vector<double> weights;
  for (std::int64_t group = 0; group < groups; ++group) {
    const bsp::Interval range{bounds[static_cast<std::size_t>(group)],
                              bounds[static_cast<std::size_t>(group) + 1]};
    weights.push_back(
        std::accumulate(work.weights.begin() + range.begin, work.weights.begin() + range.end, 0.0));
    for (std::size_t i = 0; i < (pairs ? 1 : sums.size()); ++i)
      if (sums[i].valid())
        combine_output(work, set, i, range, combined_spread(work, i, range), sums[i][group],
                       pairs ? sums[1][group] : bsp::Tensor());
  }
  work.partials = std::move(sums);
  work.weights = std::move(weights);
  return set;
}

bsp::ComputeSet OperatorLowering::combine(Work& work, const std::string& name) {
  const bsp::ComputeSet set = device_.add_compute_set(name);
  classes_.clear();
  const bool pairs = combines_pairs(work.choice.partition.cuts.combine);
  const auto all = static_cast<std::int64_t>(work.weights.size());
  for (std::size_t i = 0; i < (pairs ? 1 : work.results.size()); ++i) {
    if (!work.partials[i].valid()) continue;
    Spread spread = combined_spread(work, i, {0, work.choice.partition.partials()});
    combine_output(work, set, i, {0, all}, spread, work.results[i], pairs ? work.results[1] : bsp::Tensor());
    if (pairs) values_.set_spread(work.node.outputs[1], spread);
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
  // Vertices are of one class where they add as many elements of the same weights.
  const bool weighted = work.choice.partition.cuts.combine == Combine::mean || second.valid();
  for_each_box(spread, [&](const std::vector<AxisRange>& ranges, std::uint32_t tile) {
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
    // All in the order of memory, where that is the same one.
    std::int64_t group = field_of(out).second;
    if (field_of(sliced(work.partials[i][partials.begin], ranges)).second != group) group = 1;
    const auto each = [&](const bsp::Tensor& all) {  // they are numbered first
      std::vector<bsp::Tensor> list;
      for (std::int64_t s = partials.begin; s < partials.end; ++s)
        list.push_back(in_channel_order(sliced(all[s], ranges), group).flatten());
      return list;
    };
    std::vector<bsp::Connection> connections{{"in0", each(work.partials[i])}};
    if (second.valid()) connections.emplace_back("in1", each(work.partials[1]));
    connections.emplace_back("out0", in_channel_order(out, group));
    device_.set_tile_mapping(out, tile);
    if (second.valid()) {
      const bsp::Tensor with = sliced(second, ranges);
      device_.set_tile_mapping(with, tile);
      connections.emplace_back("out1", in_channel_order(with, group));
    }
    device_.set_tile_mapping(
        device_.add_vertex(set, place->second, std::span<const bsp::Connection>(connections)), tile);
  });
}

}  // namespace superstep::target::ipu
