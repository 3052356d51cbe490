#include "superstep/op/window/rearrange.h"

#include <fmt/format.h>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::int64_t block_of(const Attributes& attributes) {
  const std::int64_t block = attributes.integer("blocksize");
  require(block >= 1 && block < 1 << 20, fmt::format("attribute 'blocksize' is {}", block));
  return block;
}

bool columns_first(const Attributes& attributes) {
  const std::string mode = attributes.text("mode", "DCR");
  require(mode == "DCR" || mode == "CRD", fmt::format("attribute 'mode' is '{}', expected DCR or CRD", mode));
  return mode == "CRD";
}

std::vector<ValueType> infer_to_space(const InferContext& context) {
  require_rank(context, 0, "input", 4);
  const std::int64_t b = block_of(context.attributes);
  columns_first(context.attributes);
  const Shape& x = context.input(0).shape;
  require(x[1] % (b * b) == 0, fmt::format("{} channels are not a multiple of {}", x[1], b * b));
  return {{context.input(0).element, Shape{x[0], x[1] / (b * b), x[2] * b, x[3] * b}}};
}

std::vector<ValueType> infer_to_depth(const InferContext& context) {
  require_rank(context, 0, "input", 4);
  const std::int64_t b = block_of(context.attributes);
  columns_first(context.attributes);
  const Shape& x = context.input(0).shape;
  require(x[2] % b == 0 && x[3] % b == 0,
          fmt::format("the extents {} and {} are not multiples of {}", x[2], x[3], b));
  return {{context.input(0).element, Shape{x[0], x[1] * b * b, x[2] / b, x[3] / b}}};
}

std::vector<Var> decompose_to_space(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const std::int64_t b = block_of(context.attributes), n = x.shape()[0], h = x.shape()[2], w = x.shape()[3];
  const std::int64_t channels = x.shape()[1] / (b * b);
  const Var apart = columns_first(context.attributes)
                        ? transpose(reshape(x, {n, channels, b, b, h, w}), {0, 1, 4, 2, 5, 3})
                        : transpose(reshape(x, {n, b, b, channels, h, w}), {0, 3, 4, 1, 5, 2});
  return {reshape(apart, {n, channels, h * b, w * b})};
}

std::vector<Var> decompose_to_depth(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const std::int64_t b = block_of(context.attributes), n = x.shape()[0], c = x.shape()[1];
  const std::int64_t h = x.shape()[2] / b, w = x.shape()[3] / b;
  const Extents order =
      columns_first(context.attributes) ? Extents{0, 1, 3, 5, 2, 4} : Extents{0, 3, 5, 1, 2, 4};
  return {reshape(transpose(reshape(x, {n, c, h, b, w, b}), order), {n, c * b * b, h, w})};
}

}  // namespace

Var depth_to_space(Var x, std::int64_t block, bool crd) {
  return x.builder().node1("DepthToSpace", {x},
                           {{"blocksize", block}, {"mode", std::string(crd ? "CRD" : "DCR")}});
}
Var space_to_depth(Var x, std::int64_t block, bool crd) {
  return x.builder().node1("SpaceToDepth", {x},
                           {{"blocksize", block}, {"mode", std::string(crd ? "CRD" : "DCR")}});
}

std::span<const Definition> rearrange_operators() {
  static const Definition definitions[] = {
      composite<decompose_to_space>({"DepthToSpace", 13}, infer_to_space,
                                    {.elements = Elements::any,
                                     .work = WorkKind::movement,
                                     .batch = batch::windowed,
                                     .attributes = "blocksize mode",
                                     .precision = Precision::follows,
                                     .moves_bytes = true}),
      composite<decompose_to_depth>({"SpaceToDepth", 13}, infer_to_depth,
                                    {.elements = Elements::any,
                                     .work = WorkKind::movement,
                                     .batch = batch::windowed,
                                     .attributes = "blocksize mode",
                                     .precision = Precision::follows}),
  };
  return definitions;
}

}  // namespace superstep::op
