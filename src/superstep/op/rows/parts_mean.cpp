#include "superstep/op/rows/parts_mean.h"

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"

namespace superstep::op {
namespace {

std::vector<ValueType> infer_parts_mean(const InferContext& context) {
  require_floating(context, 0, "X");
  return {context.input(0)};
}

std::vector<Var> decompose_parts_mean(const DerivativeContext& context) {
  return {identity(context.inputs[0])};
}

std::vector<Var> vjp_parts_mean(const DerivativeContext&, std::span<const Var> cotangents,
                                const std::vector<bool>&) {
  return {parts_mean(cotangents[0])};
}

std::vector<Var> jvp_parts_mean(const DerivativeContext&, std::span<const Var> tangents) {
  return {parts_mean(tangents[0])};
}

Definition parts_mean_definition() {
  Definition definition =
      composite<decompose_parts_mean>({"superstep.PartsMean", 0, 1, 1}, infer_parts_mean,
                                      {.elements = Elements::floating, .work = WorkKind::elementwise});
  definition.vjp = vjp_parts_mean;
  definition.jvp = jvp_parts_mean;
  return definition;
}

}  // namespace

Var parts_mean(Var x) { return x.builder().node1("superstep.PartsMean", {x}); }

Var parts_mean_in_f32(Var x) { return cast(parts_mean(cast(x, ElementType::f32)), x.element()); }

std::span<const Definition> parts_mean_operators() {
  static const Definition definitions[] = {parts_mean_definition()};
  return definitions;
}

}  // namespace superstep::op
