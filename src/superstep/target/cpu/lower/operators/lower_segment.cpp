// Rows of packs by number, and their sums: what graphs hand along their edges.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "superstep/target/cpu/kernels/move/segment.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

// From the indices of a pack to those of the next: they lie in lines, or one of several tensors that lie side
// by side in another. 0 where they are dense.
std::optional<std::int64_t> stride_of_packs(const Lowering& lowering, ValueId indices) {
  if (lowering.is_row_major(indices)) return 0;
  const Shape& shape = lowering.shape(indices);
  const Strides& strides = lowering.view(indices).strides;
  if (shape.rank() != 2 || strides[0] < shape[1] || (shape[1] > 1 && strides[1] != 1)) return std::nullopt;
  return strides[0];
}

// data [packs..., rows, width], index [packs..., entries], result [packs..., count, width].
std::expected<kernels::PackedRows, Refusal> packed_of(const Lowering& lowering, const Node& node,
                                                      const char* what) {
  std::vector<ValueId> rows{node.inputs[0], node.outputs[0]};
  if (node.inputs.size() > 3) rows.push_back(node.inputs[3]);  // weights
  if (!std::ranges::all_of(rows, [&](ValueId id) { return lowering.is_row_major(id); }))
    return refuse(what, "a tensor is not row-major");
  const auto index_stride = stride_of_packs(lowering, node.inputs[1]);
  const auto target_stride =
      node.inputs.size() > 2 ? stride_of_packs(lowering, node.inputs[2]) : std::optional<std::int64_t>(0);
  if (!index_stride || !target_stride) return refuse(what, "the indices of a pack do not lie in a line");
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
                             .index_type = lowering.element_in_memory(node.inputs[1]),
                             .index_stride = *index_stride,
                             .target_stride = *target_stride};
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
