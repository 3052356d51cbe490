#include "superstep/target/cpu/kernels/elementwise/vector_program_simplify.h"

#include <optional>
#include <vector>

namespace superstep::kernels {

namespace {

using Value = VectorProgram::Value;
using Kind = VectorProgram::Kind;
using Instruction = VectorProgram::Instruction;

// Questions about the values of a program.
class Values {
 public:
  explicit Values(const VectorProgram& program) : program_(program) {}

  const Instruction* made_by(Value value, VectorOp op) const {
    if (value < 0) return nullptr;
    const auto& node = program_.nodes()[static_cast<std::size_t>(value)];
    return node.kind == Kind::instruction && node.instruction.op == op ? &node.instruction : nullptr;
  }
  bool is_constant(Value value, float number) const {
    if (value < 0) return false;
    const auto& node = program_.nodes()[static_cast<std::size_t>(value)];
    return node.kind == Kind::constant && node.value == number;
  }
  // The other operand of `value` = factor `op` other, in either order.
  std::optional<Value> other_of(Value value, VectorOp op, Value factor) const {
    const Instruction* made = made_by(value, op);
    if (made && made->a == factor) return made->b;
    if (made && made->b == factor) return made->a;
    return std::nullopt;
  }
  bool is_product(Value value, Value a, Value b) const { return other_of(value, VectorOp::mul, a) == b; }

 private:
  const VectorProgram& program_;
};

// A cotangent times the slope of an activation at x.
struct Slope {
  Value cotangent, x;
  Activation activation;
};

// t s + (t x) (s (1 - s)) with s = sigmoid(x).
std::optional<Slope> silu_slope(const Values& values, Value left, Value right) {
  const Instruction* first = values.made_by(left, VectorOp::mul);
  if (!first) return std::nullopt;
  for (const auto& [t, s] : {std::pair{first->a, first->b}, std::pair{first->b, first->a}}) {
    const Instruction* sigmoid = values.made_by(s, VectorOp::sigmoid);
    const Instruction* second = values.made_by(right, VectorOp::mul);
    if (!sigmoid || !second) continue;
    for (const auto& [tx, ss] : {std::pair{second->a, second->b}, std::pair{second->b, second->a}}) {
      const auto rest = values.other_of(ss, VectorOp::mul, s);
      const Instruction* one_less = rest ? values.made_by(*rest, VectorOp::sub) : nullptr;
      if (one_less && one_less->b == s && values.is_constant(one_less->a, 1) &&
          values.is_product(tx, t, sigmoid->a))
        return Slope{t, sigmoid->a, Activation::silu};
    }
  }
  return std::nullopt;
}

// x > -3 ? t (x < 3 ? x / 3 + 1/2 : 1) : 0.
std::optional<Slope> hard_swish_slope(const Values& values, const Instruction& select) {
  const Instruction* above = values.made_by(select.a, VectorOp::less);
  const Instruction* product = values.made_by(select.b, VectorOp::mul);
  if (!above || !product || !values.is_constant(above->a, -3) || !values.is_constant(select.c, 0))
    return std::nullopt;
  const Value x = above->b;
  for (const auto& [t, slope] : {std::pair{product->a, product->b}, std::pair{product->b, product->a}}) {
    const Instruction* bend = values.made_by(slope, VectorOp::select);
    const Instruction* below = bend ? values.made_by(bend->a, VectorOp::less) : nullptr;
    const Instruction* sum = bend ? values.made_by(bend->b, VectorOp::add) : nullptr;
    if (!below || !sum || below->a != x || !values.is_constant(below->b, 3) ||
        !values.is_constant(bend->c, 1))
      continue;
    const Value third = values.is_constant(sum->b, 0.5f) ? sum->a : sum->b;
    const Instruction* quotient = values.made_by(third, VectorOp::div);
    if ((values.is_constant(sum->a, 0.5f) || values.is_constant(sum->b, 0.5f)) && quotient &&
        quotient->a == x && values.is_constant(quotient->b, 3))
      return Slope{t, x, Activation::hard_swish};
  }
  return std::nullopt;
}

std::optional<Slope> slope_of(const Values& values, const Instruction& made) {
  if (made.op == VectorOp::select) return hard_swish_slope(values, made);
  if (made.op != VectorOp::add) return std::nullopt;
  const auto slope = silu_slope(values, made.a, made.b);
  return slope ? slope : silu_slope(values, made.b, made.a);
}

Value as_it_is(VectorProgram& to, const Instruction& made) {
  if (made.b < 0) return to.unary(made.op, made.a, made.activation, made.alpha, made.beta);
  return to.affine(made.op, made.activation, made.a, made.b, made.c, made.d);
}

Value made_again(VectorProgram& to, const Instruction& made) {
  const Values values(to);
  if (const auto slope = slope_of(values, made)) {
    const Value gradient = to.unary(VectorOp::activation_gradient, slope->x, slope->activation);
    return to.binary(VectorOp::mul, slope->cotangent, gradient);
  }
  if (made.op == VectorOp::mul)
    for (const auto& [x, gate] : {std::pair{made.a, made.b}, std::pair{made.b, made.a}})
      if (const Instruction* sigmoid = values.made_by(gate, VectorOp::sigmoid); sigmoid && sigmoid->a == x)
        return to.unary(VectorOp::activate, x, Activation::silu);
  return as_it_is(to, made);
}

// Goes over the nodes of a program and writes them into another one.
class Copy {
 public:
  explicit Copy(const VectorProgram& from)
      : from_(from), to_(from.extents()), now_(from.nodes().size(), -1) {}

  // `write(made)`: the instruction, its operands renamed, as a value of the new program; -1 leaves it out.
  template <class Write>
  VectorProgram run(const Write& write) {
    for (std::size_t i = 0; i < now_.size(); ++i) {
      const auto& node = from_.nodes()[i];
      if (node.kind == Kind::input) now_[i] = to_.input(node.type, node.strides);
      if (node.kind == Kind::constant) now_[i] = to_.constant(node.value);
      if (node.kind == Kind::instruction) now_[i] = write(to_, i, renamed(node.instruction));
    }
    for (const auto& output : from_.outputs()) write_output(output);
    to_.sum_in_parts(from_.sum_parts());
    return std::move(to_);
  }

  // The instruction over the values that stand for its operands.
  Instruction renamed(Instruction made) const {
    made.a = now(made.a);
    made.b = now(made.b);
    made.c = now(made.c);
    made.d = now(made.d);
    return made;
  }

 private:
  Value now(Value value) const { return value < 0 ? -1 : now_[static_cast<std::size_t>(value)]; }

  void write_output(const VectorProgram::Output& output) {
    const Value value = now(output.value);
    switch (output.target) {
      case VectorProgram::Target::tensor: return to_.store(value, output.type, output.strides);
      case VectorProgram::Target::sum_leading: return to_.sum_leading(value);
      case VectorProgram::Target::sum_planes: return to_.sum_planes(value);
      case VectorProgram::Target::sum_centred:
        return to_.sum_centred(value, now(output.x), now(output.centre));
    }
  }

  const VectorProgram& from_;
  VectorProgram to_;
  std::vector<Value> now_;
};

VectorProgram with_activations(const VectorProgram& program) {
  return Copy(program).run(
      [](VectorProgram& to, std::size_t, const Instruction& made) { return made_again(to, made); });
}

// How often what outputs need reads each value; 0: not needed.
std::vector<int> uses_of(const VectorProgram& program) {
  std::vector<int> uses(program.nodes().size(), 0);
  const auto use = [&](Value value) {
    if (value >= 0) ++uses[static_cast<std::size_t>(value)];
  };
  for (const auto& output : program.outputs())
    for (Value value : {output.value, output.x, output.centre}) use(value);
  for (std::size_t i = uses.size(); i-- > 0;) {
    const auto& node = program.nodes()[i];
    if (node.kind != Kind::instruction || uses[i] == 0) continue;
    const Instruction& made = node.instruction;
    for (Value operand : {made.a, made.b, made.c, made.d}) use(operand);
  }
  return uses;
}

// What one instruction does in place of itself and of others that it alone reads; values of the program.
struct Joined {
  Instruction instruction;
  std::vector<Value> replaced;
};

// A product and the sum that alone reads it.
std::optional<Joined> as_fma(const Values& values, const std::vector<int>& uses, const Instruction& sum) {
  if (sum.op != VectorOp::add) return std::nullopt;
  for (const auto& [product, rest] : {std::pair{sum.a, sum.b}, std::pair{sum.b, sum.a}})
    if (const Instruction* made = values.made_by(product, VectorOp::mul);
        made && uses[static_cast<std::size_t>(product)] == 1)
      return Joined{{.op = VectorOp::fma, .a = made->a, .b = made->b, .c = rest}, {product}};
  return std::nullopt;
}

// activation(a * b + c).
std::optional<Joined> as_affine_activation(const Values& values, const std::vector<int>& uses,
                                           const Instruction& made) {
  const bool relu = made.op == VectorOp::relu;
  if (!relu && made.op != VectorOp::activate) return std::nullopt;
  const Activation activation = relu ? Activation::relu : made.activation;
  const Instruction* fma = values.made_by(made.a, VectorOp::fma);
  if (!fma || uses[static_cast<std::size_t>(made.a)] != 1 || !VectorProgram::has_affine(activation))
    return std::nullopt;
  return Joined{
      {.op = VectorOp::activate_affine, .activation = activation, .a = fma->a, .b = fma->b, .c = fma->c},
      {made.a}};
}

// d * activation'(a * b + c).
std::optional<Joined> as_affine_slope(const Values& values, const std::vector<int>& uses,
                                      const Instruction& made) {
  if (made.op != VectorOp::mul) return std::nullopt;
  for (const auto& [d, slope] : {std::pair{made.a, made.b}, std::pair{made.b, made.a}}) {
    const Instruction* gradient = values.made_by(slope, VectorOp::activation_gradient);
    const Instruction* fma = gradient ? values.made_by(gradient->a, VectorOp::fma) : nullptr;
    if (!fma || uses[static_cast<std::size_t>(slope)] != 1 ||
        uses[static_cast<std::size_t>(gradient->a)] != 1 || !VectorProgram::has_affine(gradient->activation))
      continue;
    return Joined{{.op = VectorOp::slope_affine,
                   .activation = gradient->activation,
                   .a = fma->a,
                   .b = fma->b,
                   .c = fma->c,
                   .d = d},
                  {slope, gradient->a}};
  }
  return std::nullopt;
}

// The program without what nobody needs, and with instructions joined: `join(values, uses, instruction)`.
template <class Join>
VectorProgram with_joined(const VectorProgram& program, const Join& join) {
  const std::vector<int> uses = uses_of(program);
  const Values values(program);
  std::vector<std::optional<Joined>> joined(uses.size());
  std::vector<bool> dropped(uses.size(), false);
  for (std::size_t i = uses.size(); i-- > 0;) {  // the last first: what it takes in takes in nothing itself
    const auto& node = program.nodes()[i];
    dropped[i] = dropped[i] || uses[i] == 0;
    if (node.kind != Kind::instruction || dropped[i]) continue;
    joined[i] = join(values, uses, node.instruction);
    if (joined[i])
      for (Value value : joined[i]->replaced) dropped[static_cast<std::size_t>(value)] = true;
  }
  Copy copy(program);
  return copy.run([&](VectorProgram& to, std::size_t i, const Instruction& made) -> Value {
    if (dropped[i]) return -1;
    return as_it_is(to, joined[i] ? copy.renamed(joined[i]->instruction) : made);
  });
}

}  // namespace

VectorProgram simplified(const VectorProgram& program) {
  const VectorProgram fused = with_joined(with_activations(program), as_fma);
  return with_joined(fused, [](const Values& values, const std::vector<int>& uses, const Instruction& made) {
    const auto slope = as_affine_slope(values, uses, made);
    return slope ? slope : as_affine_activation(values, uses, made);
  });
}

}  // namespace superstep::kernels
