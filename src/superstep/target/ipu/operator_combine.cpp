// Partial results made one, in one compute set or, where many tiles have one each, in two.
#include <fmt/format.h>

#include <cmath>

#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/machine/ipu/vertex_cycles.h"
#include "superstep/target/ipu/channel_group.h"
#include "superstep/target/ipu/combine.h"
#include "superstep/target/ipu/operand_grid.h"
#include "superstep/target/ipu/operator_lowering.h"

namespace superstep::target::ipu {
namespace {

constexpr double worth_a_stage = 0.8;  // more code and one more rounding want some gain
constexpr double fragment_cycles = 4;  // of an exchange, as bsp/target.cpp has it

// Elements that stand behind each partial result: of the ranges that are summed.
std::vector<double> weights_of(const Partition& partition, std::span<const Part> parts) {
  std::vector<double> weights(static_cast<std::size_t>(partition.partials()), 1);
  for (const Part& part : parts) {
    double weight = 1;
    for (std::size_t c = 0; c < partition.bounds.size(); ++c)
      if (partition.cuts.axes[c].summed) weight *= static_cast<double>(part.range[c].size());
    weights[static_cast<std::size_t>(part.partial)] = weight;
  }
  return weights;
}

// A compute set whose tiles each make `elements` results of `depth` partial ones.
double combine_cycles(const machine::ipu::Hardware& hardware, double elements, std::int64_t depth) {
  const auto count = static_cast<std::int64_t>(std::ceil(elements));
  const double deep = static_cast<double>(depth);
  return machine::ipu::superstep_cycles(hardware,
                                        static_cast<double>(machine::ipu::reduce_strided_cycles(
                                            hardware, count, depth, ElementType::f32)),
                                        4 * elements * deep)
             .total() +
         fragment_cycles * deep;
}

// How many partial results are combined first: all, or as many as make two stages quickest.
std::int64_t group_size(const machine::ipu::Hardware& hardware, const std::vector<Bounds>& bounds,
                        std::int64_t partials) {
  double box = 1;
  for (const Bounds& along : bounds) box *= static_cast<double>(along[1] - along[0]);
  const auto stage = [&](std::int64_t sharers, std::int64_t depth) {
    return combine_cycles(hardware, box / static_cast<double>(pieces_of(bounds, sharers)), depth);
  };
  const auto group = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(partials))));
  const std::int64_t groups = (partials + group - 1) / group;
const double two = stage(group, group) + stage(partials, groups);
  return two < worth_a_stage * stage(partials, partials) ? group : partials;
}

}  // namespace

void OperatorLowering::combine(Work& work, bsp::Sequence& program, LoweredStep& step) {
  const Partition& partition = work.choice.partition;
  std::vector<Part> parts;
  for (const Placed& placed : work.parts) parts.push_back(placed.part);
  Partials partials{work.partials, weights_of(partition, parts)};
  const auto run = [&](const std::string& name, const auto& fill) {
    const bsp::ComputeSet set = device_.add_compute_set(name);
    classes_.clear();
    for (std::size_t i = 0; i < (has_moments(work) ? 1 : work.results.size()); ++i)
      if (work.results[i].valid()) fill(set, i);
    program.add(bsp::Execute(set, name));
    step.more_compute_sets.push_back(name);
  };
  std::int64_t size = partition.partials();
  for (std::size_t i = 0; i < work.results.size(); ++i)
    if (work.results[i].valid())
      size = std::min(
          size, group_size(hardware_, OperandGrid(partition, work.results[i].shape(), false, i).bounds(),
                           partition.partials()));
  if (size < partition.partials()) {
    Partials sums = grouped_partials(work, partials, size);
    run(work.name + "/combine groups", [&](bsp::ComputeSet set, std::size_t i) {
      for (std::int64_t group = 0; group * size < partition.partials(); ++group)
        combine_some(work, partials, {group * size, std::min(partition.partials(), (group + 1) * size)}, set,
                     i, results_of(sums, group));
    });
    partials = std::move(sums);
  }
  run(work.name + "/combine", [&](bsp::ComputeSet set, std::size_t i) {
    Spread spread = combine_some(work, partials, {0, static_cast<std::int64_t>(partials.weights.size())}, set,
                                 i, work.results);
    if (has_moments(work)) values_.set_spread(work.node.outputs[1], spread);
    values_.set_spread(work.node.outputs[i], std::move(spread));
  });
}

bool OperatorLowering::has_moments(const Work& work) {
  return work.choice.partition.cuts.combine == Combine::moments;
}

// Room for what groups of `size` partial results make.
OperatorLowering::Partials OperatorLowering::grouped_partials(const Work& work, const Partials& partials,
                                                              std::int64_t size) {
  Partials sums;
  for (std::size_t begin = 0; begin < partials.weights.size(); begin += static_cast<std::size_t>(size)) {
    sums.weights.push_back(0);
    for (std::size_t p = begin; p < std::min(partials.weights.size(), begin + static_cast<std::size_t>(size));
         ++p)
      sums.weights.back() += partials.weights[p];
  }
  for (std::size_t i = 0; i < partials.tensors.size(); ++i) {
    sums.tensors.emplace_back();
    if (!partials.tensors[i].valid()) continue;
    std::vector<std::int64_t> extents = partials.tensors[i].shape().extents();
    extents[0] = static_cast<std::int64_t>(sums.weights.size());
    sums.tensors.back() = values_.plain_variable(graph_.value(work.node.outputs[i]).name + "/groups",
                                                 {partials.tensors[i].element_type(), Shape(extents)});
  }
  return sums;
}

std::vector<bsp::Tensor> OperatorLowering::results_of(const Partials& sums, std::int64_t group) {
  std::vector<bsp::Tensor> results;
  for (const bsp::Tensor& tensor : sums.tensors) results.push_back(tensor.valid() ? tensor[group] : tensor);
  return results;
}

// The tiles that have partial results of a box share its results among them: those of the parts in `which`
// while there are as many partial results as parts make, else all.
Spread OperatorLowering::combined_spread(const Work& work, const Partials& partials, bsp::Interval which,
                                         std::size_t i) const {
  const Partition& partition = work.choice.partition;
  const OperandGrid grid(partition, work.results[i].shape(), false, i);
  const bool first = static_cast<std::int64_t>(partials.weights.size()) == partition.partials();
  std::vector<std::vector<std::uint32_t>> sharers(grid.boxes());
  for (const Placed& placed : work.parts)
    if (!first || (placed.part.partial >= which.begin && placed.part.partial < which.end))
      sharers[grid.box_of(placed.part)].push_back(placed.tile);
  const bool grouped = in_channel_groups(graph_.type(work.node.outputs[i]), partition, i);
  return shared_grid(work.flat.flattening(), grid.bounds(), std::move(sharers), grouped ? channel_group : 1);
}

// The partial results in `which`, of output i, made one in `results`; moments have two tensors.
Spread OperatorLowering::combine_some(const Work& work, const Partials& partials, bsp::Interval which,
                                      bsp::ComputeSet set, std::size_t i,
                                      const std::vector<bsp::Tensor>& results) {
  const ElementType element = work.operation.outputs[i]->element;
  const std::vector<double> weights(partials.weights.begin() + which.begin,
                                    partials.weights.begin() + which.end);
  const bool moments = has_moments(work);
  Spread spread = combined_spread(work, partials, which, i);
  for_each_box(spread, [&](const std::vector<AxisRange>& ranges, std::uint32_t tile) {
    std::vector<AxisRange> behind{{0, which}};  // of the partial results: they are numbered first
    for (const AxisRange& range : ranges) behind.push_back({range.axis + 1, range.range});
    const bsp::Tensor out = sliced(results[i], ranges);
    const std::int64_t count = out.num_elements();
    const auto [place, added] =
        classes_.emplace(std::vector<std::int64_t>{count, which.begin, which.end}, std::string());
    if (added) {
      place->second = fmt::format("{}/combine#{}{}", work.node.op, prefix_, class_count_++);
      device_.add_codelets({combine_vertex(place->second, work.choice.partition.cuts.combine, element, count,
                                           weights, hardware_)});
    }
    std::vector<bsp::Connection> connections{{"in0", sliced(partials.tensors[i], behind)}};
    if (moments) connections.emplace_back("in1", sliced(partials.tensors[1], behind));
    connections.emplace_back("out0", out);
    device_.set_tile_mapping(out, tile);
    if (moments) {
      const bsp::Tensor variance = sliced(results[1], ranges);
      device_.set_tile_mapping(variance, tile);
      connections.emplace_back("out1", variance);
    }
    device_.set_tile_mapping(
        device_.add_vertex(set, place->second, std::span<const bsp::Connection>(connections)), tile);
  });
  return spread;
}

}  // namespace superstep::target::ipu
