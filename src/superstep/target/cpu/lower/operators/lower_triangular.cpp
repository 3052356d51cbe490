// Cholesky factors and triangular systems: stacks of dense row-major matrices.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/product/triangular.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

// The element type in memory of all of them, where they are dense and of one type.
std::expected<ElementType, Refusal> type_of(const Lowering& lowering, const char* what,
                                            std::initializer_list<ValueId> values) {
  const ElementType type = lowering.type(*values.begin()).element;
  for (ValueId id : values) {
    if (!lowering.is_row_major(id)) return refuse(what, "a matrix is not dense in rows");
    if (lowering.element_in_memory(id) != type || lowering.type(id).element != type)
      return refuse(what, fmt::format("a matrix is not in memory as {}", name_of(type)));
  }
  return type;
}

std::int64_t stack_of(const Shape& shape) {
  std::int64_t matrices = 1;
  for (int axis = 0; axis + 2 < shape.rank(); ++axis) matrices *= shape[axis];
  return matrices;
}

Lowered lower_cholesky(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto type = type_of(lowering, "Cholesky", {node.inputs[0], node.outputs[0]});
  if (!type) return std::unexpected(type.error());
  const Shape& shape = lowering.shape(node.inputs[0]);
  auto kernel = kernels::prepare(kernels::CholeskyFactor{stack_of(shape), shape[shape.rank() - 1], *type});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(node.inputs[0])},
                {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_triangular_solve(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto type = type_of(lowering, "triangular system", {node.inputs[0], node.inputs[1], node.outputs[0]});
  if (!type) return std::unexpected(type.error());
  const Shape& shape = lowering.shape(node.inputs[1]);
  auto kernel = kernels::prepare(
      kernels::TriangularSystem{stack_of(shape), shape[shape.rank() - 2], shape[shape.rank() - 1],
                                node.attributes.integer("transposed", 0) != 0, *type});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[0]), lowering.read(node.inputs[1])},
                {lowering.write(node.outputs[0])});
  return {};
}

constexpr Lowerer lowerers[] = {{"superstep.Cholesky", "Cholesky", lower_cholesky},
                                {"superstep.TriangularSolve", "triangular system", lower_triangular_solve}};

}  // namespace

extern constinit const LowererFamily triangular_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
