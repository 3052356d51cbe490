#include "superstep/target/ipu/cut/part.h"

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/target/ipu/cut/fused.h"
#include "superstep/target/ipu/cut/window_range.h"

namespace superstep::target::ipu {
namespace {

// Ranges of all spatial axes, those that are not cut being whole.
std::vector<bsp::Interval> window_positions(const Cuts& cuts, const Part& part) {
  std::vector<bsp::Interval> positions;
  for (const op::Window& window : cuts.windows)
    positions.push_back({0, cuts.form == WindowForm::transposed ? window.input : window.output});
  for (std::size_t a = 0; a < cuts.axes.size(); ++a)
    if (cuts.axes[a].window >= 0) positions[static_cast<std::size_t>(cuts.axes[a].window)] = part.range[a];
  return positions;
}

// Whether the part has a range along one of the cuts that `follows` takes.
template <class Follows>
bool is_part_of(const Cuts& cuts, const Part& part, Follows&& follows) {
  for (std::size_t a = 0; a < cuts.axes.size(); ++a)
    if (follows(cuts.axes[a]) && part.range[a].size() < cuts.axes[a].units) return true;
  return false;
}
bool cuts_windows(const Cuts& cuts, const Part& part) {
  return is_part_of(cuts, part, [](const Cut& cut) { return cut.window >= 0; });
}
bool cuts_kernel(const Cuts& cuts, const Part& part) {
  return is_part_of(cuts, part, [](const Cut& cut) { return cut.taps >= 0; });
}

// Of every spatial axis, for a part of the kernel.
std::vector<PartWindow> windows_of(const Cuts& cuts, const Part& part) {
  const std::vector<bsp::Interval> positions = window_positions(cuts, part);
  std::vector<bsp::Interval> taps;
  for (const op::Window& window : cuts.windows) taps.push_back({0, window.kernel});
  for (std::size_t a = 0; a < cuts.axes.size(); ++a)
    if (cuts.axes[a].taps >= 0) taps[static_cast<std::size_t>(cuts.axes[a].taps)] = part.range[a];
  std::vector<PartWindow> windows;
  for (std::size_t axis = 0; axis < cuts.windows.size(); ++axis)
    windows.push_back(cuts.form == WindowForm::transposed
                          ? transposed_window(cuts.windows[axis], positions[axis], taps[axis])
                          : forward_window(cuts.windows[axis], positions[axis], taps[axis]));
  return windows;
}

WindowRange window_range(const Cuts& cuts, std::size_t axis, const bsp::Interval& positions) {
  return cuts.form == WindowForm::transposed ? transposed_range(cuts.windows[axis], positions)
                                             : forward_range(cuts.windows[axis], positions);
}

// The part has windows of its own: everything about them is said explicitly.
void set_window_attributes(graph::Attributes& attributes, const Cuts& cuts, const Part& part) {
  const std::vector<bsp::Interval> positions = window_positions(cuts, part);
  std::vector<std::int64_t> begins, ends, strides, dilations, output_padding;
  for (std::size_t axis = 0; axis < cuts.windows.size(); ++axis) {
    const WindowRange range = window_range(cuts, axis, positions[axis]);
    begins.push_back(range.pad_begin);
    ends.push_back(range.pad_end);
    output_padding.push_back(range.output_padding);
    strides.push_back(cuts.windows[axis].stride);
    dilations.push_back(cuts.windows[axis].dilation);
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  attributes.set("pads", begins);
  attributes.set("strides", strides);
  attributes.set("dilations", dilations);
  for (const char* name : {"auto_pad", "ceil_mode", "output_shape", "output_padding"}) attributes.erase(name);
  if (cuts.form == WindowForm::transposed) attributes.set("output_padding", output_padding);
}

Shape sliced(const Shape& shape, const std::vector<AxisRange>& ranges) {
  std::vector<std::int64_t> extents = shape.extents();
  for (const AxisRange& range : ranges) extents[static_cast<std::size_t>(range.axis)] = range.range.size();
  return Shape(std::move(extents));
}

bool left_out(const Cuts& cuts, const Part& part, std::size_t input) {
  for (std::size_t a = 0; a < cuts.axes.size(); ++a)
    if (cuts.axes[a].summed && part.range[a].begin > 0)
      for (const std::size_t once : cuts.axes[a].once)
        if (once == input) return true;
  return false;
}

std::vector<std::int64_t> window_numbers(const graph::Attributes& attributes) {
  std::vector<std::int64_t> numbers = attributes.integers("pads", {});
  for (const std::int64_t value : attributes.integers("output_padding", {})) numbers.push_back(value);
  return numbers;
}

// Its windows lie on what it reads as no attribute says.
void set_kernel_part(const Operation& operation, const Cuts& cuts, const Part& part, PartShape& shape) {
  for (const PartWindow& window : windows_of(cuts, part)) {
    shape.windows.push_back(window.window);
    shape.place.push_back(window.window.pad_begin);
  }
  const op::ProductKind kind = op::traits_of(operation.node->op).product_kind;
  shape.evaluate = [kind, geometry = geometry_of(kind, shape)](const op::EvaluateContext& context) {
    op::evaluate_convolution(kind, geometry, context);
  };
}

}  // namespace

bsp::Interval CutOperand::of(const bsp::Interval& units) const {
  if (!reads) return {units.begin * chunk, units.end * chunk};
  bsp::Interval hull = (*reads)[static_cast<std::size_t>(units.begin)];
  for (std::int64_t unit = units.begin + 1; unit < units.end; ++unit) {
    const bsp::Interval& one = (*reads)[static_cast<std::size_t>(unit)];
    hull = {std::min(hull.begin, one.begin), std::max(hull.end, one.end)};
  }
  return hull;
}

Bounds even_bounds(std::int64_t extent, std::int64_t parts, std::int64_t grain) {
  const std::int64_t grains = (extent + grain - 1) / grain,
                     count = std::clamp<std::int64_t>(parts, 1, grains);
  Bounds bounds{0};
  for (std::int64_t k = 1; k <= count; ++k) bounds.push_back(std::min(extent, k * grains / count * grain));
  return bounds;
}

std::int64_t Partition::count() const {
  std::int64_t count = 1;
  for (const Bounds& along : bounds) count *= static_cast<std::int64_t>(along.size()) - 1;
  return count;
}

std::int64_t Partition::partials() const {
  std::int64_t count = 1;
  for (std::size_t a = 0; a < bounds.size(); ++a)
    if (cuts.axes[a].summed) count *= static_cast<std::int64_t>(bounds[a].size()) - 1;
  return count;
}

bool Partition::summed(std::size_t output) const {
  for (std::size_t a = 0; a < bounds.size(); ++a)
    if (cuts.axes[a].summed && bounds[a].size() > 2 && cuts.axes[a].outputs[output].axis < 0) return true;
  return false;
}

Partition whole_partition() { return {}; }

Part part_of(const Partition& partition, std::int64_t number) {
  const std::size_t cuts = partition.bounds.size();
  Part part{std::vector<std::int64_t>(cuts), std::vector<bsp::Interval>(cuts)};
  std::int64_t scale = 1;
  for (std::size_t a = cuts; a-- > 0;) {
    const Bounds& along = partition.bounds[a];
    const auto parts = static_cast<std::int64_t>(along.size()) - 1;
    const auto k = static_cast<std::size_t>(number % parts);
    number /= parts;
    part.index[a] = static_cast<std::int64_t>(k);
    part.range[a] = {along[k], along[k + 1]};
    if (!partition.cuts.axes[a].summed) continue;
    part.partial += static_cast<std::int64_t>(k) * scale;
    scale *= parts;
  }
  if (partition.turns > 1) part.turn = part.index[partition.turn_cut] % partition.turns;
  return part;
}

std::vector<AxisRange> operand_ranges(const Cuts& cuts, const Part& part, bool input, std::size_t i) {
  std::vector<AxisRange> ranges;
  for (std::size_t a = 0; a < cuts.axes.size(); ++a) {
    const CutOperand& operand = input ? cuts.axes[a].inputs[i] : cuts.axes[a].outputs[i];
    if (operand.axis >= 0 && part.range[a].size() < cuts.axes[a].units)
      ranges.push_back({operand.axis, operand.of(part.range[a])});
  }
  if (!input || i != 0) return ranges;
  if (cuts_kernel(cuts, part)) {
    int axis = 2;
    for (const PartWindow& window : windows_of(cuts, part)) ranges.push_back({axis++, window.read});
    return ranges;
  }
  if (!cuts_windows(cuts, part)) return ranges;
  const std::vector<bsp::Interval> positions = window_positions(cuts, part);
  for (std::size_t axis = 0; axis < cuts.windows.size(); ++axis)
    ranges.push_back({static_cast<int>(axis) + 2, window_range(cuts, axis, positions[axis]).read});
  return ranges;
}

PartShape part_shape(const op::Definition& definition, const Operation& operation, const Partition& partition,
                     const Part& part) {
  const Cuts& cuts = partition.cuts;
  PartShape shape{*operation.attributes, {}, {}, {}};
  for (std::size_t a = 0; a < cuts.axes.size(); ++a)
    if (!cuts.axes[a].attribute.empty()) shape.attributes.set(cuts.axes[a].attribute, part.range[a].size());
  if (cuts_windows(cuts, part) && !cuts_kernel(cuts, part))
    set_window_attributes(shape.attributes, cuts, part);
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    std::optional<Shape>& input = shape.inputs.emplace_back();
    if (operation.inputs[i] && !left_out(cuts, part, i))
      input = sliced(operation.input(i), operand_ranges(cuts, part, true, i));
  }
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    std::optional<Shape>& output = shape.outputs.emplace_back();
    if (operation.outputs[i]) output = sliced(operation.output(i), operand_ranges(cuts, part, false, i));
  }
  if (shape.attributes.has("input_shape"))  // of a gradient: the result's
    shape.attributes.set("input_shape", shape.outputs[0]->extents());
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    std::optional<Tensor>& known = shape.known.emplace_back();
    if (shape.inputs[i] && operation.constants[i] && i < 32 && (definition.shape_inputs >> i & 1u))
      known = *operation.constants[i];
  }
  if (cuts_kernel(cuts, part)) set_kernel_part(operation, cuts, part, shape);
  if (cuts.adapt) cuts.adapt(operation, cuts, part, shape);
  if (operation.fused)
    shape.evaluate = [fused = operation.fused](const op::EvaluateContext& context) {
      evaluate(*fused, context);
    };
  return shape;
}

op::ConvGeometry geometry_of(op::ProductKind kind, const PartShape& part) {
  const Shape& kernel = kind == op::ProductKind::weight_gradient ? *part.outputs[0] : *part.inputs[1];
  const std::int64_t group = part.attributes.integer("group", 1);
  return {(*part.inputs[0])[0], group, kernel[1], kernel[0] / group, part.windows};
}

bool agrees(const op::Definition& definition, const Operation& operation, const PartShape& part) {
  if (part.evaluate) return true;
  std::vector<graph::ValueType> types(operation.inputs.size());
  op::InferContext context{part.attributes, {}, {}, operation.outputs.size()};
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    if (part.inputs[i]) types[i] = {operation.inputs[i]->element, *part.inputs[i]};
    context.inputs.push_back(part.inputs[i] ? &types[i] : nullptr);
    context.constants.push_back(part.known[i] ? &*part.known[i] : operation.constants[i]);
  }
  try {
    const std::vector<graph::ValueType> inferred = definition.infer(context);
    for (std::size_t i = 0; i < operation.outputs.size(); ++i)
      if (operation.outputs[i] &&
          (i >= inferred.size() ||
           inferred[i] != graph::ValueType{operation.outputs[i]->element, *part.outputs[i]}))
        return false;
    return true;
  } catch (const Error&) {
    return false;
  }
}

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

}  // namespace superstep::target::ipu
