// Pictures read at points between their elements.
#include "superstep/target/cpu/lower/operators/lower_grid_sample.h"

#include "superstep/target/cpu/kernels/move/grid_sample.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

using kernels::GridSample;

// Linear and nearest, as two operator sets call them.
bool is_linear(std::string_view mode) { return mode == "linear" || mode == "bilinear"; }

// [N, C, rows, columns].
GridSample::Places places_of(const Lowering& lowering, ValueId id) {
  const Strides& s = lowering.view(id).strides;
  return {.batch = s[0], .channel = s[1], .row = s[2], .column = s[3]};
}

Lowered lower_grid_sample(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], grid = node.inputs[1], y = node.outputs[0];
  for (const ValueId value : {x, grid})
    if (lowering.element_in_memory(value) != ElementType::f32)
      return refuse("grid sample", "not all tensors are f32");
  const Shape &picture = lowering.shape(x), &points = lowering.shape(grid);
  const Strides& s = lowering.view(grid).strides;
  const std::string padding = node.attributes.text("padding_mode", "zeros");
  using Padding = GridSample::Padding;
  auto kernel =
      kernels::prepare(GridSample{.batch = picture[0],
                                  .channels = picture[1],
                                  .height = picture[2],
                                  .width = picture[3],
                                  .rows = points[1],
                                  .columns = points[2],
                                  .x = places_of(lowering, x),
                                  .grid = {.batch = s[0], .channel = s[3], .row = s[1], .column = s[2]},
                                  .y = places_of(lowering, y),
                                  .nearest = !is_linear(node.attributes.text("mode", "linear")),
                                  .align_corners = node.attributes.integer("align_corners", 0) != 0,
                                  .padding = padding == "zeros"    ? Padding::zeros
                                             : padding == "border" ? Padding::border
                                                                   : Padding::reflection});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(x), lowering.read(grid)},
                {lowering.write(y)});
  return {};
}

constexpr Lowerer lowerers[] = {{"GridSample", "grid sample", lower_grid_sample}};

}  // namespace

extern constinit const LowererFamily grid_sample_lowerers{lowerers, Halves::in_f32};

bool has_grid_sample_kernel(const Graph& graph, const Node& node) {
  const std::string mode = node.attributes.text("mode", "linear");
  return graph.updates().empty() && graph.type(node.inputs[0]).shape.rank() == 4 &&
         (is_linear(mode) || mode == "nearest") && graph.type(node.inputs[0]).element == ElementType::f32 &&
         graph.type(node.inputs[1]).element == ElementType::f32;
}

}  // namespace superstep::target::cpu
