// Fourier transforms: DFT of numbers whose parts lie side by side, and superstep.Fourier of parts apart.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/core/checks.h"
#include "superstep/op/product/spectral.h"
#include "superstep/target/cpu/kernels/fourier/fourier.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

using kernels::ComplexForm;
using kernels::Fourier;

// What is transformed along all axes at once: it should stay in the second-level cache, and there should be
// enough of it to share. Otherwise the outermost axis comes last, in a step of its own.
constexpr std::int64_t block_numbers = 64 * 1024, least_blocks = 8, small_numbers = 4096;

// Of so few numbers the sums of the definition, in f64, take some microseconds, and are as near as f32 comes.
constexpr std::int64_t few_numbers = 256;

bool holds_f32(const Lowering& lowering, ValueId id) {
  return lowering.element_in_memory(id) == ElementType::f32 && lowering.type(id).element == ElementType::f32;
}

// A tensor in memory.
struct Place {
  DraftOperand memory;
  Strides strides;
  ElementType type;
};

Lowered emit_copy(Lowering& lowering, const Node& node, const Shape& shape, const Place& from,
                  const Place& to) {
  auto copy = kernels::prepare(kernels::StridedCopy{.extents = shape.extents(),
                                                    .x_strides = from.strides,
                                                    .y_strides = to.strides,
                                                    .x_type = from.type,
                                                    .y_type = to.type});
  if (!copy) return std::unexpected(copy.error());
  lowering.emit("copy", node.name, std::move(*copy), {from.memory}, {to.memory});
  return {};
}

Place f32_place(Lowering& lowering, const Shape& shape, const Strides& strides) {
  return {lowering.temporary(static_cast<std::size_t>(shape.element_count()) * sizeof(float)), strides,
          ElementType::f32};
}

// A value's memory in the order of `strides`, of f32: its own, or a copy.
std::expected<DraftOperand, Refusal> read_in_order(Lowering& lowering, const Node& node, ValueId id,
                                                   const Strides& strides) {
  const Place own{lowering.read(id), lowering.view(id).strides, lowering.element_in_memory(id)};
  if (own.strides == strides && own.type == ElementType::f32) return own.memory;
  const Place copy = f32_place(lowering, lowering.shape(id), strides);
  if (Lowered done = emit_copy(lowering, node, lowering.shape(id), own, copy); !done)
    return std::unexpected(done.error());
  return copy.memory;
}

// ---- parts apart ------------------------------------------------------------------------------------------

int outermost(const Fourier& f) {
  return *std::ranges::max_element(f.axes, {},
                                   [&](int axis) { return f.x_strides[static_cast<std::size_t>(axis)]; });
}

bool is_in_blocks(const Fourier& f) {
  const std::int64_t largest = f.x_strides[static_cast<std::size_t>(outermost(f))];
  std::int64_t blocks = 1, all = 1;
  for (std::size_t i = 0; i < f.extents.size(); ++i) {
    all *= f.extents[i];
    const bool transformed = std::ranges::find(f.axes, static_cast<int>(i)) != f.axes.end();
    if (!transformed && f.x_strides[i] > largest) blocks *= f.extents[i];
  }
  return f.axes.size() == 1 || all <= small_numbers ||
         (blocks >= least_blocks && all / blocks <= block_numbers);
}

Lowered emit_whole(Lowering& lowering, const Node& node, const Fourier& f, std::vector<DraftOperand> inputs,
                   std::vector<DraftOperand> outputs) {
  auto kernel = kernels::prepare(f);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), std::move(outputs));
  return {};
}

// All axes but the outermost of x to y, then the outermost within y.
Lowered emit_divided(Lowering& lowering, const Node& node, const Fourier& f, std::vector<DraftOperand> inputs,
                     const std::vector<DraftOperand>& outputs) {
  Fourier inner = f, outer = f;
  std::erase(inner.axes, outermost(f));
  inner.scale = 1;
  outer.axes = {outermost(f)};
  outer.x_strides = f.y_strides;
  outer.x_form = f.y_form;
  if (Lowered done = emit_whole(lowering, node, inner, std::move(inputs), outputs); !done) return done;
  return emit_whole(lowering, node, outer, outputs, outputs);
}

Lowered lower_fourier(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId re = node.inputs[0];
  const bool complex = node.inputs.size() > 1 && node.inputs[1].valid();
  if (node.outputs.size() < 2 || !node.outputs[1].valid())
    return refuse("Fourier transform", "one of its parts is not asked for");
  for (ValueId value : {re, complex ? node.inputs[1] : re, node.outputs[0], node.outputs[1]})
    if (!holds_f32(lowering, value)) return refuse("Fourier transform", "only f32 is transformed");
  const Shape& shape = lowering.shape(re);
  if (lowering.view(node.outputs[0]).strides != lowering.view(node.outputs[1]).strides)
    return refuse("Fourier transform", "the parts of the result lie in different orders");
  Fourier f{.extents = shape.extents(),
            .x_strides = lowering.view(re).strides,
            .y_strides = lowering.view(node.outputs[0]).strides,
            .axes = op::checked_axes(node.attributes.integers("axes"), shape.rank()),
            .inverse = node.attributes.integer("inverse", 0) != 0,
            .scale = static_cast<float>(node.attributes.number("scale", 1)),
            .x_form = complex ? ComplexForm::separate : ComplexForm::real};
  std::vector<DraftOperand> inputs{lowering.read(re)};
  if (complex) {
    auto im = read_in_order(lowering, node, node.inputs[1], f.x_strides);
    if (!im) return std::unexpected(im.error());
    inputs.push_back(*im);
  }
  const std::vector<DraftOperand> outputs{lowering.write(node.outputs[0]), lowering.write(node.outputs[1])};
  return is_in_blocks(f) ? emit_whole(lowering, node, f, std::move(inputs), outputs)
                         : emit_divided(lowering, node, f, std::move(inputs), outputs);
}

// ---- parts side by side -----------------------------------------------------------------------------------

std::expected<std::optional<std::int64_t>, Refusal> constant_of(const Lowering& lowering, const Node& node,
                                                                std::size_t input) {
  if (node.inputs.size() <= input || !node.inputs[input].valid()) return std::nullopt;
  const graph::Value& value = lowering.graph().value(node.inputs[input]);
  if (value.kind != graph::ValueKind::constant)
    return refuse("Fourier transform", "length or axis is not constant");
  return op::integer_of(value.data);
}

// Strides of [..., 1 or 2] without the last axis, where pairs lie side by side.
std::optional<Strides> strides_of_pairs(const Shape& shape, const Strides& strides) {
  const bool pairs = shape[shape.rank() - 1] == 2;
  if (pairs && strides.back() != 1) return std::nullopt;
  return Strides(strides.begin(), strides.end() - 1);
}

ComplexForm form_of(const Shape& shape) {
  return shape[shape.rank() - 1] == 2 ? ComplexForm::interleaved : ComplexForm::real;
}

std::expected<Fourier, Refusal> describe_dft(const Lowering& lowering, const Node& node,
                                             const Strides& x_strides, const Strides& y_strides) {
  const auto length = constant_of(lowering, node, 1), axis = constant_of(lowering, node, 2);
  if (!length) return std::unexpected(length.error());
  if (!axis) return std::unexpected(axis.error());
  const Shape &x = lowering.shape(node.inputs[0]), &y = lowering.shape(node.outputs[0]);
  const op::DftGeometry g =
      op::dft_geometry(node.attributes, x, *length ? &**length : nullptr, *axis ? &**axis : nullptr);
  const auto from = strides_of_pairs(x, x_strides), to = strides_of_pairs(y, y_strides);
  if (!from || !to) return refuse("Fourier transform", "real and imaginary parts do not lie side by side");
  std::vector<std::int64_t> extents = x.extents();
  extents.pop_back();
  return Fourier{.extents = std::move(extents),
                 .x_strides = *from,
                 .y_strides = *to,
                 .axes = {g.axis},
                 .inverse = g.inverse,
                 .scale = g.inverse ? 1.0f / static_cast<float>(g.length) : 1.0f,
                 .x_form = form_of(x),
                 .y_form = form_of(y),
                 .length = g.length,
                 .results = g.bins,
                 .half = g.real};
}

// The strides of a value where pairs lie side by side in it, else those of a copy.
Strides strides_for_pairs(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  const Strides& own = lowering.view(id).strides;
  return strides_of_pairs(shape, own) ? own : shape.row_major_strides();
}

bool is_transformed(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

Lowered lower_dft(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  if (!is_transformed(lowering.element_in_memory(x)) || !is_transformed(lowering.type(y).element))
    return refuse("Fourier transform", "only f32 and bf16 are transformed");
  if (lowering.shape(x).element_count() <= few_numbers)
    return refuse("Fourier transform", fmt::format("at most {} numbers are summed in f64", few_numbers));
  const Strides x_strides = strides_for_pairs(lowering, x), y_strides = strides_for_pairs(lowering, y);
  auto f = describe_dft(lowering, node, x_strides, y_strides);
  if (!f) return std::unexpected(f.error());
  auto kernel = kernels::prepare(*f);
  if (!kernel) return std::unexpected(kernel.error());
  const auto source = read_in_order(lowering, node, x, x_strides);
  if (!source) return std::unexpected(source.error());
  const Place own{lowering.write(y), lowering.view(y).strides, lowering.type(y).element};
  const bool in_place = own.strides == y_strides && own.type == ElementType::f32;
  const Place result = in_place ? own : f32_place(lowering, lowering.shape(y), y_strides);
  lowering.emit(node.op, node.name, std::move(*kernel), {*source}, {result.memory});
  if (in_place) return {};
  return emit_copy(lowering, node, lowering.shape(y), result, own);
}

constexpr Lowerer lowerers[] = {{"DFT", "Fourier transform", lower_dft},
                                {"superstep.Fourier", "Fourier transform", lower_fourier}};

}  // namespace

extern constinit const LowererFamily fourier_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
