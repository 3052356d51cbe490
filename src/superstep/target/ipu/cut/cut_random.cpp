// Cuts of random numbers. Each depends on its place in the whole, so that parts draw the bits that the whole
// operator draws.
#include "superstep/op/core/box.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

// Evaluates the box of the result that a part has.
void at_its_place(const Operation& operation, const Cuts& cuts, const Part& part, PartShape& shape) {
  op::Box box = op::whole_box(operation.output());
  for (const AxisRange& range : operand_ranges(cuts, part, false, 0))
    box.begin[static_cast<std::size_t>(range.axis)] = range.range.begin;
  shape.place = box.begin;
  shape.evaluate = [box, draw = op::get(operation.node->op).evaluate_box](
                       const op::EvaluateContext& context) { draw(context, box); };
}

// The axes of the result; an input of its shape follows, others (a counter, a ratio) are whole.
Cuts drawn(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  cuts.adapt = at_its_place;
  for (int axis = 0; axis < op.output().rank(); ++axis) {
    std::vector<std::int64_t> inputs;
    for (const graph::ValueType* type : op.inputs)
      inputs.push_back(type && type->shape == op.output() ? axis : -1);
    add_cut(cuts, op, op.output()[axis], inputs, std::vector<std::int64_t>(op.outputs.size(), axis));
  }
  return cuts;
}

// Rows of scores [N, classes] give rows of classes [N, samples].
Cuts multinomial(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  cuts.adapt = at_its_place;
  add_cut(cuts, op, op.output()[0], {0}, {0});
  return cuts;
}

}  // namespace

std::span<const CutRule> random_cut_rules() {
  static const CutRule rules[] = {
      {drawn,
       {"superstep.RandomMask", "superstep.RandomNormal", "Dropout", "Bernoulli", "RandomUniform",
        "RandomUniformLike", "RandomNormal", "RandomNormalLike"}},
      {multinomial, {"Multinomial"}}};
  return rules;
}

}  // namespace superstep::target::ipu
