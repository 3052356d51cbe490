#include "superstep/target/ipu/partition.h"

#include <algorithm>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/target/ipu/cycles.h"

namespace superstep::target::ipu {
namespace {

constexpr double working_share = 0.4;  // of a tile's memory that one operator's operands may take

Shape cut_shape(const Shape& shape, bool flat, const Cuts& cuts, const PartRange& range, bool input,
                std::size_t i) {
  std::vector<std::int64_t> extents = shape.extents();
  for (std::size_t a = 0; a < cuts.axes.size(); ++a) {
    const CutOperand& operand = input ? cuts.axes[a].inputs[i] : cuts.axes[a].outputs[i];
    if (operand.axis < 0) continue;
    const std::int64_t extent = range[a].size() * operand.chunk;
    if (flat) return Shape{extent};
    extents[static_cast<std::size_t>(operand.axis)] = extent;
  }
  return Shape(std::move(extents));
}

PartTypes types_of(const Operation& operation, const PartShape& shape) {
  PartTypes types{shape.attributes, {}, {}};
  for (std::size_t i = 0; i < operation.inputs.size(); ++i)
    types.inputs.push_back(operation.inputs[i]
                               ? graph::ValueType{operation.inputs[i]->element, shape.inputs[i]}
                               : graph::ValueType{ElementType::f32, {0}});
  for (std::size_t i = 0; i < operation.outputs.size(); ++i)
    types.outputs.push_back(operation.outputs[i]
                                ? graph::ValueType{operation.outputs[i]->element, shape.outputs[i]}
                                : graph::ValueType{ElementType::f32, {0}});
  return types;
}

double bytes_of(const std::vector<graph::ValueType>& types) {
  double bytes = 0;
  for (const graph::ValueType& type : types)
    bytes +=
        static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
  return bytes;
}

// The largest part comes first: ranges differ by one unit at most, and part 0 may be a small one.
PartRange largest_range(const Partition& partition) {
  PartRange range;
  for (std::size_t a = 0; a < partition.parts.size(); ++a)
    range.push_back({0, machine::ipu::ceil_div(partition.cuts.axes[a].units, partition.parts[a])});
  return range;
}

double seconds_like_cost(const machine::ipu::Hardware& hardware, const Operation& operation,
                         const Partition& partition) {
  const PartShape shape = part_shape(operation, partition, largest_range(partition));
  const PartTypes types = types_of(operation, shape);
  const double in = bytes_of(types.inputs), out = bytes_of(types.outputs);
  const double working = working_share * static_cast<double>(hardware.tile_bytes);
  const double overflow = std::max(0.0, in + out - working) * 1e3;  // rather many parts than a tile too full
  return static_cast<double>(part_cycles(hardware, operation.node->op, types)) +
         in / static_cast<double>(hardware.exchange_rate) + overflow;
}

std::vector<std::int64_t> candidates(std::int64_t units, std::int64_t tiles) {
  std::vector<std::int64_t> list{1};
  for (std::int64_t p = 2; p < std::min(units, tiles); p *= 2) list.push_back(p);
  for (const std::int64_t p : {units, units / 2, units / 3, tiles})
    if (p > 1 && p <= units && p <= tiles) list.push_back(p);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

class Search {
 public:
  Search(const machine::ipu::Hardware& hardware, const Operation& operation, Cuts cuts, std::int64_t tiles)
      : hardware_(hardware), operation_(operation), tiles_(tiles) {
    best_.cuts = std::move(cuts);
    best_.parts.assign(best_.cuts.axes.size(), 1);
    current_ = best_;
    if (best_.cuts.flat) keep_rows_together();
  }

  Partition run() {
    descend(0, 1);
    return best_;
  }

 private:
  // Whole vectors of elements to a tile, rather than single ones.
  void keep_rows_together() {
    tiles_ = std::max<std::int64_t>(
        1, std::min(tiles_, best_.cuts.axes.empty() ? 1 : best_.cuts.axes[0].units / 4));
  }

  void descend(std::size_t axis, std::int64_t parts) {
    if (axis == current_.parts.size()) {
      const double cost = seconds_like_cost(hardware_, operation_, current_);
      if (cost < cost_) {
        cost_ = cost;
        best_.parts = current_.parts;
      }
      return;
    }
    for (const std::int64_t p : candidates(current_.cuts.axes[axis].units, tiles_ / parts)) {
      current_.parts[axis] = p;
      descend(axis + 1, parts * p);
    }
    current_.parts[axis] = 1;
  }

  const machine::ipu::Hardware& hardware_;
  const Operation& operation_;
  std::int64_t tiles_;
  Partition best_, current_;
  double cost_ = std::numeric_limits<double>::infinity();
};

// Does the operator's own shape rule give the part's results?
bool agrees(const op::Definition& definition, const Operation& operation, const PartShape& shape) {
  const PartTypes types = types_of(operation, shape);
  op::InferContext context{shape.attributes, {}, operation.constants, operation.outputs.size()};
  for (std::size_t i = 0; i < operation.inputs.size(); ++i)
    context.inputs.push_back(operation.inputs[i] ? &types.inputs[i] : nullptr);
  try {
    const std::vector<graph::ValueType> inferred = definition.infer(context);
    for (std::size_t i = 0; i < operation.outputs.size(); ++i)
      if (operation.outputs[i] && (i >= inferred.size() || inferred[i] != types.outputs[i])) return false;
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::int64_t Partition::count() const {
  std::int64_t count = 1;
  for (const std::int64_t p : parts) count *= p;
  return count;
}

PartRange part_range(const Partition& partition, std::int64_t part) {
  PartRange range(partition.parts.size());
  for (std::size_t a = partition.parts.size(); a-- > 0;) {
    const std::int64_t units = partition.cuts.axes[a].units, parts = partition.parts[a], k = part % parts;
    part /= parts;
    range[a] = {k * units / parts, (k + 1) * units / parts};
  }
  return range;
}

PartShape part_shape(const Operation& operation, const Partition& partition, const PartRange& range) {
  PartShape shape{operation.node->attributes, {}, {}};
  const Cuts& cuts = partition.cuts;
  for (std::size_t a = 0; a < cuts.axes.size(); ++a)
    if (!cuts.axes[a].attribute.empty()) shape.attributes.set(cuts.axes[a].attribute, range[a].size());
  for (std::size_t i = 0; i < operation.inputs.size(); ++i)
    shape.inputs.push_back(
        operation.inputs[i] ? cut_shape(operation.input(i), cuts.flat, cuts, range, true, i) : Shape{0});
  for (std::size_t i = 0; i < operation.outputs.size(); ++i)
    shape.outputs.push_back(
        operation.outputs[i] ? cut_shape(operation.output(i), cuts.flat, cuts, range, false, i) : Shape{0});
  return shape;
}

std::uint64_t cycles_of(const machine::ipu::Hardware& hardware, const Operation& operation,
                        const PartShape& shape) {
  return part_cycles(hardware, operation.node->op, types_of(operation, shape));
}

Partition choose_partition(const machine::ipu::Hardware& hardware, const op::Definition& definition,
                           const Operation& operation, std::int64_t tiles) {
  Partition partition = Search(hardware, operation, cuts_of(operation), tiles).run();
  for (const std::int64_t part : {std::int64_t{0}, partition.count() - 1})
    if (!agrees(definition, operation, part_shape(operation, partition, part_range(partition, part))))
      return {};
  return partition;
}

}  // namespace superstep::target::ipu
