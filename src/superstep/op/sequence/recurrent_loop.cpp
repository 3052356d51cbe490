#include "superstep/op/sequence/recurrent_loop.h"

#include <fmt/format.h>

#include "superstep/op/core/derivative.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/sequence/recurrent_step.h"

namespace superstep::op {
namespace {

using namespace recurrent;  // NOLINT: of this family

using Types = std::vector<ValueType>;

std::vector<Var> inputs_of(Builder& builder, const Types& types, const char* name) {
  std::vector<Var> result;
  for (const ValueType& type : types)
    result.push_back(builder.input(fmt::format("{}{}", name, result.size()), type.element, type.shape));
  return result;
}

void add_outputs(Builder& builder, std::span<const Var> values) {
  for (std::size_t i = 0; i < values.size(); ++i) builder.output(fmt::format("result{}", i), values[i]);
}

Types types_of(std::span<const Var> values) {
  Types types;
  for (Var value : values) types.push_back(value.type());
  return types;
}

// The outputs of `graph`: the cotangents of `wanted` by those of `made`, which are inputs; zeros where there
// is no way.
void add_cotangents(Builder& builder, std::span<const Var> made, std::span<const Var> wanted) {
  const std::vector<Var> cotangents = inputs_of(builder, types_of(made), "cotangent");
  std::vector<Var> found = reverse(builder, 0, made, cotangents, wanted);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].valid()) found[i] = constant_of_shape(builder, wanted[i].element(), wanted[i].shape());
  add_outputs(builder, found);
}

class LoopOfDirection {
 public:
  LoopOfDirection(std::string_view op, const Attributes& attributes,
                  const std::vector<std::optional<ValueType>>& inputs, int number)
      : cell_(cell_of(op)),
        attributes_(attributes),
        inputs_(inputs),
        number_(number),
        sizes_(sizes_of(attributes, inputs[x_input]->shape, inputs[r_input]->shape)) {
    inputs_.resize(p_input + 1);
  }

  RecurrentLoop make() {
    loop_.has_cell = cell_.has_cell;
    loop_.has_lengths = inputs_[lengths_input].has_value();
    make_before();
    make_step();
    make_in_order();
    return std::move(loop_);
  }

 private:
  // Of each of the direction's values that steps read, its place there.
  std::vector<Var Direction::*> members() const {
    std::vector<Var Direction::*> all = {&Direction::r};
    if (cell_.adds_input_bias) all.push_back(&Direction::bias_w);
    all.insert(all.end(), {&Direction::bias_r, &Direction::peephole});
    return all;
  }

  struct Before {
    DerivativeContext context;
    Direction direction;
    std::vector<Var> made;  // rows, states, what stays the same
  };
  Before before_in(Builder& builder) {
    Before before{{builder, attributes_, {}, {}}, {}, {}};
    for (const auto& type : inputs_) {
      const std::string name = fmt::format("input{}", before.context.inputs.size());
      before.context.inputs.push_back(type ? builder.input(name, type->element, type->shape) : Var());
    }
    Direction& d = before.direction = direction_of(before.context, cell_, number_, sizes_);
    const Var x = before.context.inputs[x_input], lengths = lengths_of(before.context, sizes_);
    const Var rows =
        rows_of_inputs(cell_, d, in_order(d, sizes_.batch_first ? swap_axes(x, 0, 1) : x, lengths), sizes_);
    before.made = {reshape(rows, {sizes_.steps, sizes_.batch, rows.shape()[1]}), d.h};
    if (cell_.has_cell) before.made.push_back(d.c);
    const std::size_t first = before.made.size();
    for (const auto member : members())
      if ((d.*member).valid()) before.made.push_back(d.*member);
    loop_.kept_floats = before.made.size() - first;
    if (lengths.valid()) before.made.push_back(lengths);
    loop_.kept = before.made.size() - first;
    return before;
  }

  void make_before() {
    Builder builder(loop_.before);
    const Before before = before_in(builder);
    add_outputs(builder, before.made);
    made_ = types_of(before.made);
    loop_.backwards = before.direction.reversed && !loop_.has_lengths;
    known_ = before.direction;  // which values there are; not these
    Builder back(loop_.before_back);
    const Before again = before_in(back);
    std::vector<Var> wanted;
    for (Var input : again.context.inputs)
      if (input.valid() && is_floating(input.element())) wanted.push_back(input);
    const std::size_t floats = again.made.size() - (loop_.has_lengths ? 1 : 0);
    add_cotangents(back, std::span(again.made).first(floats), wanted);
  }

  struct Step {
    std::vector<Var> floats;  // row, state, what stays the same
    std::vector<Var> made;    // y, next state
  };
  Step step_in(Builder& builder) {
    const Var number = builder.input("step", ElementType::i64, {});
    Types types = made_;
    types[0].shape = {sizes_.batch, made_[0].shape[2]};
    std::vector<Var> given = inputs_of(builder, types, "value");
    Direction d = known_;
    std::size_t next = loop_.has_cell ? 3 : 2;
    for (const auto member : members())
      if ((d.*member).valid()) d.*member = given[next++];
    const Var lengths = loop_.has_lengths ? given.back() : Var();
    const Var now = lengths.valid() ? cast(number, lengths.element()) : Var();
    const DerivativeContext context{builder, attributes_, {}, {}};
    const Stepped after =
        stepped(context, cell_, d, given[0], {given[1], loop_.has_cell ? given[2] : Var()}, lengths, now);
    Step step{given, {after.y, after.next.h}};
    if (loop_.has_lengths) step.floats.pop_back();
    if (loop_.has_cell) step.made.push_back(after.next.c);
    return step;
  }

  void make_step() {
    Builder builder(loop_.step);
    add_outputs(builder, step_in(builder).made);
    Builder back(loop_.step_back);
    const Step step = step_in(back);
    add_cotangents(back, step.made, step.floats);
  }

  void make_in_order() {
    Builder builder(loop_.in_order);
    const Var y = builder.input("y", made_[0].element, {sizes_.steps, sizes_.batch, sizes_.hidden});
    const Var lengths =
        loop_.has_lengths ? builder.input("lengths", made_.back().element, made_.back().shape) : Var();
    builder.output("in order", recurrent::in_order(known_, y, lengths));
  }

  const Cell& cell_;
  const Attributes& attributes_;
  std::vector<std::optional<ValueType>> inputs_;
  int number_;
  Sizes sizes_;
  RecurrentLoop loop_;
  Types made_;       // of what `before` makes
  Direction known_;  // its functions and sense, and which values there are
};

}  // namespace

RecurrentLoop recurrent_loop(std::string_view op, const Attributes& attributes,
                             const std::vector<std::optional<ValueType>>& inputs, int direction) {
  return LoopOfDirection(op, attributes, inputs, direction).make();
}

}  // namespace superstep::op
