#include "superstep/target/cpu/lower/operators/lower_elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/passes/gelu_slope.h"
#include "superstep/target/cpu/plan/vector_operations.h"

namespace superstep::target::cpu {
namespace {

using kernels::Activation;
using kernels::VectorOp;
using kernels::VectorProgram;

struct ActivationCall {
  Activation activation;
  float alpha = 0, beta = 0;
};

// Between bounds that are known; none where one is computed, or NaN.
std::optional<ActivationCall> clip_call(const Graph& graph, const Node& node) {
  const auto bound = [&](std::size_t input, double otherwise) -> std::optional<double> {
    if (node.inputs.size() <= input || !node.inputs[input].valid()) return otherwise;
    return uniform_constant(graph, node.inputs[input]);
  };
  const auto low = bound(1, -std::numeric_limits<float>::infinity());
  const auto high = bound(2, std::numeric_limits<float>::infinity());
  if (!low || !high || std::isnan(*low) || std::isnan(*high)) return std::nullopt;
  return ActivationCall{Activation::clip, static_cast<float>(*low), static_cast<float>(*high)};
}

std::optional<ActivationCall> activation_of(const Graph& graph, const Node& node) {
  const VectorOperation* operation = vector_operation(node.op);
  if (!operation || !operation->activation) return std::nullopt;
  switch (*operation->activation) {
    case Activation::clip: return clip_call(graph, node);
    case Activation::gelu_erf:
      return ActivationCall{node.attributes.text("approximate", "none") == "tanh" ? Activation::gelu_tanh
                                                                                  : Activation::gelu_erf};
    default:
      return ActivationCall{*operation->activation,
                            static_cast<float>(node.attributes.number("alpha", operation->alpha)),
                            static_cast<float>(node.attributes.number("beta", operation->beta))};
  }
}

// Whether a conversion reads a value of f16 that a member of its group computes, which is then never stored:
// its rounding is all that is left of it. (What another conversion made is rounded there.)
bool leaves_half(const Graph& graph, const FusionGroup& group, const Node& cast) {
  const graph::Value& value = graph.value(cast.inputs[0]);
  return value.type.element == ElementType::f16 && value.kind == graph::ValueKind::computed &&
         std::ranges::count(group.members, value.producer) > 0 && graph.node(value.producer).op != "Cast";
}

// Writes the group as a VectorProgram over the output's dimensions in the order given.
class ProgramWriter {
 public:
  ProgramWriter(Lowering& lowering, const FusionGroup& group, std::vector<int> order)
      : lowering_(lowering),
        group_(group),
        root_(lowering.graph().node(group.root)),
        output_(root_.outputs[0]),
        shape_(lowering.shape(output_)),
        order_(std::move(order)),
        program_(extents()) {}

  std::expected<GroupProgram, Refusal> run(const std::vector<ValueId>& also) {
    find_unused();
    for (NodeId member : group_.members) {
      if (unused_.contains(member)) continue;
      const auto value = write_node(lowering_.graph().node(member));
      if (!value) return std::unexpected(value.error());
      values_[lowering_.graph().node(member).outputs[0]] = *value;
    }
    std::vector<Value> read;
    for (ValueId id : also) read.push_back(operand(id));
    return GroupProgram{
        std::move(program_), values_.at(output_), std::move(read), std::move(inputs_), ops(), name()};
  }

 private:
  using Value = VectorProgram::Value;

  // Members that nobody reads any more, since one instruction does what they led to.
  void find_unused() {
    const Graph& graph = lowering_.graph();
    std::map<NodeId, ValueId> slopes;  // and what they are slopes at
    for (NodeId member : group_.members)
      if (const auto x = input_of_gelu_slope(graph, graph.node(member))) slopes.emplace(member, *x);
    if (slopes.empty()) return;
    const auto is_read = [&](ValueId value) {
      return std::ranges::any_of(slopes, [&](const auto& slope) { return slope.second == value; }) ||
             std::ranges::any_of(lowering_.consumers(value), [&](NodeId reader) {
               return !unused_.contains(reader) && !slopes.contains(reader);
             });
    };
    for (auto member = group_.members.rbegin(); member != group_.members.rend(); ++member)
      if (*member != group_.root && !is_read(graph.node(*member).outputs[0])) unused_.insert(*member);
  }

  std::vector<std::int64_t> extents() const {
    std::vector<std::int64_t> result;
    for (int axis : order_) result.push_back(shape_[axis]);
    return result;
  }

  Strides in_order(const Strides& strides) const {
    Strides result;
    for (int axis : order_) result.push_back(strides[static_cast<std::size_t>(axis)]);
    return result;
  }

  Value operand(ValueId id) {
    if (const auto found = values_.find(id); found != values_.end()) return found->second;
    if (const auto constant = uniform_constant(lowering_.graph(), id))
      return values_[id] = program_.constant(static_cast<float>(*constant));
    inputs_.push_back(lowering_.read(id));
    return values_[id] = program_.input(lowering_.element_in_memory(id),
                                        in_order(lowering_.broadcast_strides(id, shape_)));
  }

  // Programs compute in f32, which neither wraps around as integers do nor holds all of them.
  bool computes_integers(const Node& node) const {
    return is_integer(lowering_.type(node.outputs[0]).element) &&
           std::ranges::count(
               std::array{"Neg", "Add", "Sub", "Mul", "Div", "Pow", "Sum", "Mean", "Mod", "Shrink", "PRelu"},
               node.op) > 0;
  }

  std::expected<Value, Refusal> write_node(const Node& node) {
    if (computes_integers(node)) return refuse("vector program", "arithmetic of integers");
    if (const auto x = input_of_gelu_slope(lowering_.graph(), node))
      return program_.unary(VectorOp::activation_gradient, operand(*x), Activation::gelu_erf);
    const VectorOperation* operation = vector_operation(node.op);
    if (!operation) return refuse_operation(node);
    const VectorOp instruction = operation->instruction;
    switch (operation->form) {
      case VectorForm::unary: return program_.unary(instruction, operand(node.inputs[0]));
      case VectorForm::binary: return fold_binary(node, instruction);
      case VectorForm::swapped:
        return program_.binary(instruction, operand(node.inputs[1]), operand(node.inputs[0]));
      case VectorForm::select:
        return program_.select(operand(node.inputs[0]), operand(node.inputs[1]), operand(node.inputs[2]));
      case VectorForm::convert: return write_cast(node);
      case VectorForm::composed: return operation->compose(program_, operands(node), node.attributes);
      case VectorForm::activate: break;
    }
    const auto call = activation_of(lowering_.graph(), node);
    if (!call) return refuse_operation(node);
    return program_.unary(instruction, operand(node.inputs[0]), call->activation, call->alpha, call->beta);
  }

  static std::unexpected<Refusal> refuse_operation(const Node& node) {
    return refuse("vector program", fmt::format("{} is not among its operations", node.op));
  }

  std::vector<Value> operands(const Node& node) {
    std::vector<Value> result;
    for (const ValueId id : node.inputs) result.push_back(operand(id));
    return result;
  }

  Value fold_binary(const Node& node, VectorOp op) {  // Sum, Max, Min: any number of operands
    if (const auto exponent =
            op == VectorOp::pow ? uniform_constant(lowering_.graph(), node.inputs[1]) : std::nullopt)
      if (const auto power = constant_power(program_, operand(node.inputs[0]), *exponent)) return *power;
    Value value = operand(node.inputs[0]);
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      value = program_.binary(op, value, operand(node.inputs[i]));
    return value;
  }

  std::expected<Value, Refusal> write_cast(const Node& node) {
    const ElementType to = lowering_.type(node.outputs[0]).element;
    const Value value = operand(node.inputs[0]);
    if (to == ElementType::f16 || leaves_half(lowering_.graph(), group_, node))
      return program_.unary(VectorOp::round_half, value);
    if (to != ElementType::boolean) return value;  // rounded where it is stored; an integer only as the root
    return program_.unary(VectorOp::logical_not, program_.unary(VectorOp::logical_not, value));
  }

  std::string ops() const {
    std::string text;
    for (NodeId member : group_.members)
      text += (text.empty() ? "" : "+") + lowering_.graph().node(member).op;
    return text;
  }
  std::string name() const {
    for (NodeId member : group_.members)
      if (const std::string& name = lowering_.graph().node(member).name; !name.empty()) return name;
    return {};
  }

  Lowering& lowering_;
  const FusionGroup& group_;
  const Node& root_;
  ValueId output_;
  Shape shape_;
  std::vector<int> order_;
  VectorProgram program_;
  std::map<ValueId, Value> values_;
  std::set<NodeId> unused_;
  std::vector<DraftOperand> inputs_;
};

// Reads the group as a chain of steps on one value, the product's result.
class EpilogueMatcher {
 public:
  EpilogueMatcher(const Lowering& lowering, const FusionGroup& group, ValueId product, int channel_axis)
      : lowering_(lowering),
        graph_(lowering.graph()),
        group_(group),
        product_(product),
        channel_axis_(channel_axis) {}

  std::expected<EpilogueMatch, Refusal> run() {
    if (!match(graph_.node(group_.root).outputs[0]))
      return refuse("epilogue", "the element-wise operators are not a chain of epilogue steps");
    return std::move(result_);
  }

 private:
  bool is_member(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.kind == graph::ValueKind::computed && std::ranges::count(group_.members, value.producer) > 0;
  }
  bool depends_on_product(ValueId id) const {
    if (id == product_) return true;
    if (!id.valid() || !is_member(id)) return false;
    return std::ranges::any_of(graph_.node(graph_.value(id).producer).inputs,
                               [&](ValueId input) { return depends_on_product(input); });
  }

  bool match(ValueId id) {
    if (id == product_) return true;
    if (!is_member(id)) return false;
    const Node& node = graph_.node(graph_.value(id).producer);
    if (match_activation_gradient(node)) return true;
    if (node.op == "Add") return match_sum(node);
    if (node.op == "Mul") return match_silu(node) || match_with_operand(node, kernels::EpilogueOp::multiply);
    if (node.op == "Sub") return match_difference(node);
    if (node.op == "Cast") return match_cast(node, lowering_.type(id).element);
    if (const auto call = activation_of(graph_, node); call && match(node.inputs[0])) {
      result_.epilogue.activate(call->activation, call->alpha, call->beta);
      return true;
    }
    return false;
  }

  bool match_cast(const Node& node, ElementType to) {
    if (!is_floating(to) || !match(node.inputs[0])) return false;
    if (to == ElementType::f16 || leaves_half(graph_, group_, node)) result_.epilogue.round_half();
    return true;
  }

  // A tensor taken off what a convolution gives: the error of an image that a loss begins with. Results of
  // dense layers are stored by panels of columns, and the rows of a tensor that lie a power of two of bytes
  // apart would push them out of the caches.
  bool match_difference(const Node& node) {
    const ValueId chain = node.inputs[0], other = node.inputs[1];
    return group_.product &&
           op::is_convolution(op::traits_of(graph_.node(*group_.product).op).product_kind) &&
           !depends_on_product(other) && !is_member(other) && match(chain) &&
           add_tensor_step(kernels::EpilogueOp::subtract, other);
  }

  // A sum of any number of terms, one of which depends on the product: the others are added one by one.
  bool match_sum(const Node& node) {
    std::vector<ValueId> terms;
    collect_terms(node, terms);
    const auto chain = std::ranges::find_if(terms, [&](ValueId term) { return depends_on_product(term); });
    if (chain == terms.end() || std::count_if(terms.begin(), terms.end(),
                                              [&](ValueId term) { return depends_on_product(term); }) != 1)
      return false;
    if (!match(*chain)) return false;
    for (auto term = terms.begin(); term != terms.end(); ++term) {
      const ValueId read = before_widening(*term);
      if (term != chain && (is_member(read) || !add_operand(kernels::EpilogueOp::add, read))) return false;
    }
    return true;
  }

  // A bf16 that the group widens is read as it is: epilogues widen what they add.
  ValueId before_widening(ValueId id) const {
    if (!is_member(id) || lowering_.type(id).element != ElementType::f32) return id;
    const Node& node = graph_.node(graph_.value(id).producer);
    const bool widens = node.op == "Cast" && lowering_.type(node.inputs[0]).element == ElementType::bf16;
    return widens ? node.inputs[0] : id;
  }

  void collect_terms(const Node& node, std::vector<ValueId>& terms) const {
    for (ValueId input : node.inputs) {
      const bool nested = is_member(input) && graph_.node(graph_.value(input).producer).op == "Add";
      if (nested)
        collect_terms(graph_.node(graph_.value(input).producer), terms);
      else
        terms.push_back(input);
    }
  }

  // x * sigmoid(x), either of them rounded on the way (in bf16: the sigmoid of x as f32, rounded again).
  bool match_silu(const Node& node) {
    for (std::size_t side : {0u, 1u}) {
      const ValueId x = node.inputs[side], gate = behind_casts(graph_, node.inputs[1 - side]);
      if (!is_member(node.inputs[1 - side]) || !is_member(gate)) continue;
      const Node& sigmoid = graph_.node(graph_.value(gate).producer);
      if (sigmoid.op != "Sigmoid") continue;
      if (behind_casts(graph_, sigmoid.inputs[0]) != behind_casts(graph_, x) || !match(x)) continue;
      result_.epilogue.activate(Activation::silu);
      return true;
    }
    return false;
  }

  bool match_with_operand(const Node& node, kernels::EpilogueOp op) {
    const bool first = depends_on_product(node.inputs[0]), second = depends_on_product(node.inputs[1]);
    if (first == second) return false;
    const ValueId chain = node.inputs[first ? 0 : 1], other = node.inputs[first ? 1 : 0];
    if (is_member(other) || !match(chain)) return false;
    if (const auto constant = uniform_constant(graph_, other);
        constant && op == kernels::EpilogueOp::multiply) {
      result_.epilogue.scale(static_cast<float>(*constant));
      return true;
    }
    return add_operand(op, other);
  }

  bool add_operand(kernels::EpilogueOp op, ValueId id) {
    return (is_channel_vector(id) && add_channel_step(op, id)) || add_tensor_step(op, id);
  }

  bool is_channel_vector(ValueId id) const {
    const Shape &own = lowering_.shape(id), &full = lowering_.shape(product_);
    const int skip = full.rank() - own.rank();
    for (int axis = 0; axis < own.rank(); ++axis)
      if (own[axis] != (axis + skip == channel_axis_ ? full[channel_axis_] : 1)) return false;
    return own.rank() > full.rank() - 1 - channel_axis_ && own.element_count() == full[channel_axis_];
  }

  // Epilogues read f32: what was rounded for them is read before that.
  bool add_channel_step(kernels::EpilogueOp op, ValueId id) {
    id = lowering_.unrounded(id);
    if (lowering_.type(id).element != ElementType::f32) return false;
    if (op == kernels::EpilogueOp::add)
      result_.epilogue.bias();
    else
      result_.epilogue.scale_channels();
    result_.operands.push_back(id);
    return true;
  }

  bool add_tensor_step(kernels::EpilogueOp op, ValueId id) {
    const ElementType element = lowering_.type(id).element;
    if (lowering_.shape(id) != lowering_.shape(product_)) return false;
    if (element != ElementType::f32 && element != ElementType::bf16) return false;
    if (op == kernels::EpilogueOp::add)
      result_.epilogue.add(element);
    else if (op == kernels::EpilogueOp::subtract)
      result_.epilogue.subtract(element);
    else
      result_.epilogue.multiply(element);
    result_.operands.push_back(id);
    return true;
  }

  // Where(y > 0, v, alpha * v) and Where(y > 0, v, 0): the gradient of a (leaky) relu whose output is y.
  bool match_activation_gradient(const Node& node) {
    if (node.op != "Where" || !is_member(node.inputs[0])) return false;
    const Node& test = graph_.node(graph_.value(node.inputs[0]).producer);
    const auto zero = test.op == "Greater" ? uniform_constant(graph_, test.inputs[1]) : std::nullopt;
    if (!zero || *zero != 0 || is_member(test.inputs[0]) || test.inputs[0] == product_) return false;
    const auto slope = slope_below_zero(node.inputs[1], node.inputs[2]);
    if (!slope || !match(node.inputs[1])) return false;
    const ElementType element = lowering_.type(test.inputs[0]).element;
    if (element != ElementType::f32 && element != ElementType::bf16) return false;
    result_.epilogue.activation_gradient(*slope == 0 ? Activation::relu : Activation::leaky_relu, *slope, 0,
                                         element);
    result_.operands.push_back(test.inputs[0]);
    return true;
  }

  std::optional<float> slope_below_zero(ValueId above, ValueId below) const {
    if (const auto constant = uniform_constant(graph_, below)) {
      if (*constant == 0) return 0.0f;
      return std::nullopt;
    }
    if (!is_member(below)) return std::nullopt;
    const Node& product = graph_.node(graph_.value(below).producer);
    if (product.op != "Mul") return std::nullopt;
    for (std::size_t side : {0u, 1u})
      if (product.inputs[side] == above)
        if (const auto constant = uniform_constant(graph_, product.inputs[1 - side]))
          return static_cast<float>(*constant);
    return std::nullopt;
  }

  const Lowering& lowering_;
  const Graph& graph_;
  const FusionGroup& group_;
  ValueId product_;
  int channel_axis_;
  EpilogueMatch result_;
};

}  // namespace

std::expected<GroupProgram, Refusal> program_of_group(Lowering& lowering, const FusionGroup& group,
                                                      std::vector<int> order,
                                                      const std::vector<ValueId>& also) {
  return ProgramWriter(lowering, group, std::move(order)).run(also);
}

Lowered lower_elementwise_group(Lowering& lowering, const FusionGroup& group) {
  const ValueId output = lowering.graph().node(group.root).outputs[0];
  const Strides& strides = lowering.view(output).strides;
  const std::vector<int> order = physical_order(lowering.shape(output), strides);
  auto made = program_of_group(lowering, group, order);
  if (!made) return std::unexpected(made.error());
  Strides ordered;
  for (int axis : order) ordered.push_back(strides[static_cast<std::size_t>(axis)]);
  made->program.store(made->root, lowering.type(output).element, ordered);
  auto kernel = kernels::prepare(made->program);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(made->ops, made->name, std::move(*kernel), std::move(made->inputs), {lowering.write(output)});
  return {};
}

std::expected<EpilogueMatch, Refusal> match_epilogue(const Lowering& lowering, const FusionGroup& group,
                                                     ValueId product, int channel_axis) {
  return EpilogueMatcher(lowering, group, product, channel_axis).run();
}

}  // namespace superstep::target::cpu
