#include "superstep/op/move/gather.h"

#include <fmt/format.h>

#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/strided.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/index_map.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

int axis_of(const Attributes& attributes, const Shape& data) {
  return checked_axis(attributes.integer("axis", 0), data.rank(), "attribute 'axis'");
}

std::vector<ValueType> infer_gather(const InferContext& context) {
  const ValueType& data = context.input(0);
  require_min_rank(context, 0, "data", 1);
  require_integer(context, 1, "indices");
  const int axis = axis_of(context.attributes, data.shape);
  Extents extents = data.shape.extents();
  extents.erase(extents.begin() + axis);
  const Shape& indices = context.input(1).shape;
  extents.insert(extents.begin() + axis, indices.begin(), indices.end());
  check_known_indices(context, 1, data.shape[axis]);
  return {{data.element, Shape(extents)}};
}

void evaluate_gather(const EvaluateContext& context) {
  const Tensor& data = context.input(0);
  const int axis = axis_of(context.attributes, data.shape());
  const Extents indices = integers_of(context.input(1));
  const std::size_t block =
      static_cast<std::size_t>(data.shape().row_major_strides()[static_cast<std::size_t>(axis)]) *
      size_in_bytes(data.type());
  const std::int64_t extent = data.shape()[axis];
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= data.shape()[i];
  std::byte* target = context.output(0).bytes();
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t index : indices) {
      const auto slice_number = static_cast<std::size_t>(o * extent + checked_index(index, extent));
      std::memcpy(target, data.bytes() + slice_number * block, block);
      target += block;
    }
}

// The transpose adds slices into zeros: ScatterND on the axis brought to the front.
std::vector<Var> vjp_gather(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>&) {
  const Var data = context.inputs[0], indices = context.inputs[1];
  const int axis = axis_of(context.attributes, data.shape()), rank = data.shape().rank();
  Extents to_front = {axis}, back(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i)
    if (i != axis) to_front.push_back(i);
  for (int i = 0; i < rank; ++i) back[static_cast<std::size_t>(to_front[static_cast<std::size_t>(i)])] = i;
  // Cotangent [outer, indices, inner] as [indices, outer, inner].
  const std::int64_t count = indices.shape().element_count();
  Extents flat = data.shape().extents();
  flat[static_cast<std::size_t>(axis)] = count;
  Var updates = reshape(cotangents[0], Shape(flat));
  if (axis != 0) updates = transpose(updates, to_front);
  const Var zeros =
      constant_of_shape(context.builder, data.element(),
                        Shape(pick(data.shape().extents(), {to_front.begin(), to_front.end()})));
  Var sum = scatter_nd(zeros, reshape(indices, {count, 1}), updates, "add");
  if (axis != 0) sum = transpose(sum, back);
  return {sum, Var()};
}

// Of all three operators: linear in the data.
std::vector<Var> jvp_gather(const DerivativeContext& context, std::span<const Var> tangents,
                            std::string_view op) {
  if (!tangents[0].valid()) return {Var()};
  return {context.builder.node1(op, {tangents[0], context.inputs[1]}, context.attributes)};
}
std::vector<Var> jvp_gather_slices(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_gather(context, tangents, "Gather");
}
std::vector<Var> jvp_gather_elements(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_gather(context, tangents, "GatherElements");
}
std::vector<Var> jvp_gather_nd(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_gather(context, tangents, "GatherND");
}

std::vector<ValueType> infer_gather_elements(const InferContext& context) {
  const ValueType &data = context.input(0), &indices = context.input(1);
  require_min_rank(context, 0, "data", 1);
  require_integer(context, 1, "indices");
  require_rank(context, 1, "indices", data.shape.rank());
  const int axis = axis_of(context.attributes, data.shape);
  for (int i = 0; i < data.shape.rank(); ++i)
    require(i == axis || indices.shape[i] <= data.shape[i],
            fmt::format("input indices has extent {} in axis {}, data only {}", indices.shape[i], i,
                        data.shape[i]));
  check_known_indices(context, 1, data.shape[axis]);
  return {{data.element, indices.shape}};
}

void evaluate_gather_elements(const EvaluateContext& context) {
  const Tensor& data = context.input(0);
  const Extents offsets =
      element_offsets(data.shape(), context.input(1), axis_of(context.attributes, data.shape()));
  dispatch(data.type(), [&]<class T>() {
    const auto from = data.as<T>();
    auto to = context.output(0).as<T>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[static_cast<std::size_t>(offsets[i])];
  });
}

std::vector<Var> vjp_gather_elements(const DerivativeContext& context, std::span<const Var> cotangents,
                                     const std::vector<bool>&) {
  const Var data = context.inputs[0];
  const Var zeros = constant_of_shape(context.builder, data.element(), data.shape());
  return {
      scatter_elements(zeros, context.inputs[1], cotangents[0], context.attributes.integer("axis", 0), "add"),
      Var()};
}

std::vector<ValueType> infer_gather_nd(const InferContext& context) {
  const Shape &data = context.input(0).shape, &indices = context.input(1).shape;
  require_min_rank(context, 0, "data", 1);
  require_min_rank(context, 1, "indices", 1);
  require_integer(context, 1, "indices");
  const std::int64_t batch = context.attributes.integer("batch_dims", 0);
  const std::int64_t depth = indices[indices.rank() - 1];
  require(batch >= 0 && batch < std::min(data.rank(), indices.rank()) && batch + depth <= data.rank(),
          fmt::format("index vectors of length {} after {} batch axes do not fit data of rank {}", depth,
                      batch, data.rank()));
  for (int axis = 0; axis < batch; ++axis)
    require(data[axis] == indices[axis], fmt::format("batch axis {} has extent {} in data and {} in indices",
                                                     axis, data[axis], indices[axis]));
  for (std::int64_t k = 0; k < depth; ++k)
    check_known_indices(context, 1, data[static_cast<int>(batch + k)], k, depth);
  Extents extents(indices.begin(), indices.end() - 1);
  extents.insert(extents.end(), data.begin() + batch + depth, data.end());
  return {{context.input(0).element, Shape(extents)}};
}

void evaluate_gather_nd(const EvaluateContext& context) {
  const Tensor& data = context.input(0);
  const auto batch = static_cast<int>(context.attributes.integer("batch_dims", 0));
  const Extents offsets = slice_offsets(data.shape(), context.input(1), batch);
  const std::size_t size = size_in_bytes(data.type());
  const std::size_t block = offsets.empty() ? 0 : context.output(0).byte_count() / offsets.size();
  for (std::size_t i = 0; i < offsets.size(); ++i)
    std::memcpy(context.output(0).bytes() + i * block,
                data.bytes() + static_cast<std::size_t>(offsets[i]) * size, block);
}

// Batch axes become part of the index vectors of a ScatterND.
Var with_batch_indices(Var indices, std::int64_t batch) {
  if (batch == 0) return indices;
  Builder& builder = indices.builder();
  std::vector<Var> parts;
  Shape lead(Extents(indices.shape().begin(), indices.shape().end() - 1));
  Extents one = lead.extents();
  one.push_back(1);
  for (int axis = 0; axis < batch; ++axis) {
    Extents numbers(static_cast<std::size_t>(lead[axis])), shape(one.size(), 1);
    std::iota(numbers.begin(), numbers.end(), 0);
    shape[static_cast<std::size_t>(axis)] = lead[axis];
    const Var counted = reshape(builder.integers(numbers), Shape(shape));
    Var wide = expand(counted, Shape(one));
    if (indices.element() != wide.element()) indices = builder.node1("CastLike", {indices, wide});
    parts.push_back(wide);
  }
  parts.push_back(indices);
  return concat(parts, -1);
}

std::vector<Var> vjp_gather_nd(const DerivativeContext& context, std::span<const Var> cotangents,
                               const std::vector<bool>&) {
  const Var data = context.inputs[0];
  const Var zeros = constant_of_shape(context.builder, data.element(), data.shape());
  const Var indices = with_batch_indices(context.inputs[1], context.attributes.integer("batch_dims", 0));
  return {scatter_nd(zeros, indices, cotangents[0], "add"), Var()};
}

}  // namespace

Var gather(Var data, Var indices, std::int64_t axis) {
  return data.builder().node1("Gather", {data, indices}, {{"axis", axis}});
}
Var gather_elements(Var data, Var indices, std::int64_t axis) {
  return data.builder().node1("GatherElements", {data, indices}, {{"axis", axis}});
}
Var gather_nd(Var data, Var indices, std::int64_t batch_dims) {
  return data.builder().node1("GatherND", {data, indices}, {{"batch_dims", batch_dims}});
}

std::span<const Definition> gather_operators() {
  static const Definition definitions[] = {
      {.name = "Gather",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::gather,
                  .batch = batch::gather,
                  .attributes = "axis",
                  .precision = Precision::follows_data},
       .infer = infer_gather,
       .flops = no_flops,
       .evaluate = evaluate_gather,
       .vjp = vjp_gather,
       .jvp = jvp_gather_slices},
      {.name = "GatherElements",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::gather,
                  .batch = batch::along_one_axis,
                  .attributes = "axis"},
       .infer = infer_gather_elements,
       .flops = no_flops,
       .evaluate = evaluate_gather_elements,
       .vjp = vjp_gather_elements,
       .jvp = jvp_gather_elements},
      {.name = "GatherND",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any, .work = WorkKind::gather, .attributes = "batch_dims"},
       .infer = infer_gather_nd,
       .flops = no_flops,
       .evaluate = evaluate_gather_nd,
       .vjp = vjp_gather_nd,
       .jvp = jvp_gather_nd},
  };
  return definitions;
}

}  // namespace superstep::op
