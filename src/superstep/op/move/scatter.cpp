#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/index_map.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::string reduction_of(const Attributes& attributes) {
  const std::string reduction = attributes.text("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"})
    if (reduction == known) return reduction;
  refuse(fmt::format("attribute 'reduction' is '{}', expected none, add, mul, max or min", reduction));
}

int axis_of(const Attributes& attributes, const Shape& data) {
  return checked_axis(attributes.integer("axis", 0), data.rank(), "attribute 'axis'");
}

std::vector<ValueType> infer_scatter_elements(const InferContext& context) {
  const ValueType &data = context.input(0), &indices = context.input(1);
  reduction_of(context.attributes);
  require_min_rank(context, 0, "data", 1);
  require_integer(context, 1, "indices");
  require_rank(context, 1, "indices", data.shape.rank());
  require_shape(context, 2, "updates", indices.shape);
  require_same_element(context, 2, "updates", 0, "data");
  const int axis = axis_of(context.attributes, data.shape);
  for (int i = 0; i < data.shape.rank(); ++i)
    require(i == axis || indices.shape[i] <= data.shape[i],
            fmt::format("input indices has extent {} in axis {}, data only {}", indices.shape[i], i,
                        data.shape[i]));
  check_known_indices(context, 1, data.shape[axis]);
  return {data};
}

std::vector<ValueType> infer_scatter_nd(const InferContext& context) {
  const Shape &data = context.input(0).shape, &indices = context.input(1).shape;
  reduction_of(context.attributes);
  require_min_rank(context, 0, "data", 1);
  require_min_rank(context, 1, "indices", 1);
  require_integer(context, 1, "indices");
  require_same_element(context, 2, "updates", 0, "data");
  const std::int64_t depth = indices[indices.rank() - 1];
  require(depth <= data.rank(),
          fmt::format("index vectors of length {} do not fit data of rank {}", depth, data.rank()));
  for (std::int64_t k = 0; k < depth; ++k)
    check_known_indices(context, 1, data[static_cast<int>(k)], k, depth);
  Extents extents(indices.begin(), indices.end() - 1);
  extents.insert(extents.end(), data.begin() + depth, data.end());
  require_shape(context, 2, "updates", Shape(extents));
  return {context.input(0)};
}

template <class W>
using Combine = W (*)(W, W);

template <class W>
Combine<W> combination(const std::string& reduction) {
  if (reduction == "add") return [](W old, W update) { return old + update; };
  if (reduction == "mul") return [](W old, W update) { return old * update; };
  // NaN stays, and so does one that is an update.
  if (reduction == "max")
    return [](W old, W update) { return update > old || update != update ? update : old; };
  if (reduction == "min")
    return [](W old, W update) { return update < old || update != update ? update : old; };
  return [](W, W update) { return update; };
}

// Combines runs of `length` updates into the data at `offsets`.
void scatter(const EvaluateContext& context, const Extents& offsets, std::int64_t length) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const Combine<W> combine = combination<W>(reduction_of(context.attributes));
    std::vector<W> y = widen<W>(context.input(0));
    const std::vector<W> updates = widen<W>(context.input(2));
    auto update = updates.begin();
    for (std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < length; ++i) {
        W& place = y[static_cast<std::size_t>(offset + i)];
        place = combine(place, *update++);
      }
    narrow(y, context.output(0));
  });
}

void evaluate_scatter_elements(const EvaluateContext& context) {
  const Shape& data = context.input(0).shape();
  scatter(context, element_offsets(data, context.input(1), axis_of(context.attributes, data)), 1);
}

void evaluate_scatter_nd(const EvaluateContext& context) {
  const Extents offsets = slice_offsets(context.input(0).shape(), context.input(1), 0);
  const auto count = static_cast<std::int64_t>(offsets.size());
  scatter(context, offsets, count ? context.input(2).element_count() / count : 0);
}

[[noreturn]] void refuse_reduction(const std::string& reduction) {
  throw Error(ErrorCode::unsupported,
              fmt::format("scattering with reduction '{}' has no derivative rule", reduction));
}

Var rescatter(const DerivativeContext& context, Var data, Var updates, std::string_view op) {
  return context.builder.node1(op, {data, context.inputs[1], updates}, context.attributes);
}

Var zeros(const DerivativeContext& context, Var like) {
  return constant_of_shape(context.builder, like.element(), like.shape());
}

// "add": the data's cotangent is the result's. "none": without the places that were overwritten.
std::vector<Var> vjp_scatter(const DerivativeContext& context, Var t, const std::vector<bool>& wanted,
                             std::string_view op, Var gathered) {
  const std::string reduction = reduction_of(context.attributes);
  if (reduction != "none" && reduction != "add") refuse_reduction(reduction);
  std::vector<Var> result(3);
  if (wanted[0])
    result[0] = reduction == "add" ? t : rescatter(context, t, zeros(context, context.inputs[2]), op);
  if (wanted[2]) result[2] = gathered;
  return result;
}

std::vector<Var> vjp_scatter_elements(const DerivativeContext& context, std::span<const Var> cotangents,
                                      const std::vector<bool>& wanted) {
  const std::int64_t axis = context.attributes.integer("axis", 0);
  const Var gathered = wanted[2] ? gather_elements(cotangents[0], context.inputs[1], axis) : Var();
  return vjp_scatter(context, cotangents[0], wanted, "ScatterElements", gathered);
}

std::vector<Var> vjp_scatter_nd(const DerivativeContext& context, std::span<const Var> cotangents,
                                const std::vector<bool>& wanted) {
  const Var gathered = wanted[2] ? gather_nd(cotangents[0], context.inputs[1]) : Var();
  return vjp_scatter(context, cotangents[0], wanted, "ScatterND", gathered);
}

std::vector<Var> jvp_scatter(const DerivativeContext& context, std::span<const Var> tangents,
                             std::string_view op) {
  const std::string reduction = reduction_of(context.attributes);
  if (reduction != "none" && reduction != "add") refuse_reduction(reduction);
  const Var data = tangents[0].valid() ? tangents[0] : zeros(context, context.inputs[0]);
  const Var updates = tangents[2].valid() ? tangents[2] : zeros(context, context.inputs[2]);
  return {rescatter(context, data, updates, op)};
}
std::vector<Var> jvp_scatter_elements(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_scatter(context, tangents, "ScatterElements");
}
std::vector<Var> jvp_scatter_nd(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_scatter(context, tangents, "ScatterND");
}

double scatter_flops(const Attributes& attributes, std::span<const ValueType> inputs,
                     std::span<const ValueType>) {
  return attributes.text("reduction", "none") == "none"
             ? 0
             : static_cast<double>(inputs[2].shape.element_count());
}

}  // namespace

Var scatter_elements(Var data, Var indices, Var updates, std::int64_t axis, const std::string& reduction) {
  return data.builder().node1("ScatterElements", {data, indices, updates},
                              {{"axis", axis}, {"reduction", reduction}});
}
Var scatter_nd(Var data, Var indices, Var updates, const std::string& reduction) {
  return data.builder().node1("ScatterND", {data, indices, updates}, {{"reduction", reduction}});
}

std::span<const Definition> scatter_operators() {
  static const Definition definitions[] = {
      {.name = "ScatterElements",
       .since_opset = 18,
       .min_inputs = 3,
       .max_inputs = 3,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::scatter,
                  .batch = batch::along_one_axis,
                  .attributes = "axis reduction"},
       .infer = infer_scatter_elements,
       .flops = scatter_flops,
       .evaluate = evaluate_scatter_elements,
       .vjp = vjp_scatter_elements,
       .jvp = jvp_scatter_elements},
      {.name = "ScatterND",
       .since_opset = 18,
       .min_inputs = 3,
       .max_inputs = 3,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::scatter,
                  .batch = batch::scatter_rows,
                  .attributes = "reduction"},
       .infer = infer_scatter_nd,
       .flops = scatter_flops,
       .evaluate = evaluate_scatter_nd,
       .vjp = vjp_scatter_nd,
       .jvp = jvp_scatter_nd},
  };
  return definitions;
}

}  // namespace superstep::op
