// Rows of packs by number, and their sums: what graphs hand along their edges.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/move/segment.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

// data [packs..., rows, width], index [packs..., entries], result [packs..., count, width].
std::expected<kernels::PackedRows, Refusal> packed_of(const Lowering& lowering, const Node& node,
                                                      const char* what) {
  const auto dense = [&](ValueId id) { return lowering.is_row_major(id); };
  if (!std::ranges::all_of(node.inputs, dense) || !dense(node.outputs[0]))
    return refuse(what, "a tensor is not row-major");
  const ElementType type = lowering.element_in_memory(node.inputs[0]);
  if (lowering.element_in_memory(node.outputs[0]) != type)
    return refuse(what, fmt::format("rows of {} make rows of {}", name_of(type),
                                    name_of(lowering.element_in_memory(node.outputs[0]))));
  const Shape &data = lowering.shape(node.inputs[0]), &index = lowering.shape(node.inputs[1]),
              &result = lowering.shape(node.outputs[0]);
  const int last = index.rank() - 1;
  kernels::PackedRows packed{.rows = data[last],
                             .entries = index[last],
                             .width = data[last + 1],
                             .count = result[last],
                             .type = type,
                             .index_type = lowering.element_in_memory(node.inputs[1])};
  for (int axis = 0; axis < last; ++axis) packed.packs *= index[axis];
  return packed;
}

Lowered emit_packed(Lowering& lowering, const Node& node, kernels::Prepared kernel) {
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs;
  for (ValueId id : node.inputs) inputs.push_back(lowering.read(id));
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_gather_rows(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto packed = packed_of(lowering, node, "rows of packs");
  if (!packed) return std::unexpected(packed.error());
  return emit_packed(lowering, node, kernels::prepare_gather_packed(*packed));
}

Lowered lower_segment_sum(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto packed = packed_of(lowering, node, "segment sum");
  if (!packed) return std::unexpected(packed.error());
  return emit_packed(lowering, node, kernels::prepare_segment_sum(*packed));
}

Lowered lower_sparse_product(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto packed = packed_of(lowering, node, "sparse product");
  if (!packed) return std::unexpected(packed.error());
  if (lowering.element_in_memory(node.inputs[2]) != packed->index_type)
    return refuse("sparse product", "sources and targets are of two types");
  if (lowering.element_in_memory(node.inputs[3]) != packed->type)
    return refuse("sparse product", "weights are not of the type of the rows");
  return emit_packed(lowering, node, kernels::prepare_sparse_product(*packed));
}

constexpr Lowerer lowerers[] = {
    {"superstep.GatherRows", "rows of packs", lower_gather_rows},
    {"superstep.SegmentSum", "segment sum", lower_segment_sum},
    {"superstep.SparseProduct", "sparse product", lower_sparse_product},
};

}  // namespace

extern constinit const LowererFamily segment_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
