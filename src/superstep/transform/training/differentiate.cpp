#include "superstep/transform/training/differentiate.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/transform/rewrite.h"
#include "superstep/transform/training/differentiation_guide.h"

namespace superstep::transform {
namespace {

using graph::NodeId;
using graph::ValueId;

std::vector<ValueId> ids_of(std::span<const Var> vars) {
  std::vector<ValueId> ids;
  for (const Var& var : vars) ids.push_back(var.id());
  return ids;
}

void require_same_types(std::span<const Var> values, std::span<const Var> derivatives, const char* what) {
  if (values.size() != derivatives.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} values need as many {}s, not {}", values.size(), what, derivatives.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (derivatives[i].valid() && derivatives[i].type() != values[i].type())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} {} is {}, its value {}", what, i, graph::to_string(derivatives[i].type()),
                              graph::to_string(values[i].type())));
}

Error no_rule(const Node& node, const char* mode) {
  return Error(ErrorCode::unsupported, fmt::format("operator {} has no {} derivative", node.op, mode),
               describe(node), "stop the derivative before it, or build the model without it");
}

// Derivatives of values, filled in as the sweep goes; by value of the graph as it was when it began.
class Derivatives {
 public:
  explicit Derivatives(const DifferentiationGuide& guide) : guide_(guide), by_value_(guide.active.size()) {}

  Var operator[](ValueId id) const { return id.valid() ? by_value_[id.index()] : Var(); }

  void add(ValueId id, Var derivative) {
    if (!derivative.valid() || !guide_.is_active(id)) return;
    Var& sum = by_value_[id.index()];
    sum = sum.valid() ? sum + derivative : derivative;
  }

  std::vector<Var> of(std::span<const ValueId> ids) const {
    std::vector<Var> result;
    for (ValueId id : ids) result.push_back((*this)[id]);
    return result;
  }

 private:
  const DifferentiationGuide& guide_;
  std::vector<Var> by_value_;
};

bool any_valid(const std::vector<Var>& vars) {
  return std::ranges::any_of(vars, [](Var var) { return var.valid(); });
}

// One node of the sweep.
class NodeSweep {
 public:
  NodeSweep(Builder& builder, NodeId id)
      : builder_(builder),
        node_(builder.graph().node(id)),
        definition_(op::get(node_.op)),
        context_{builder, node_.attributes, vars(node_.inputs), vars(node_.outputs)},
        old_name_(builder.name()) {
    builder_.set_name(fmt::format("d({})", node_.name.empty() ? node_.op : node_.name));
  }
  ~NodeSweep() { builder_.set_name(old_name_); }
  NodeSweep(const NodeSweep&) = delete;
  NodeSweep& operator=(const NodeSweep&) = delete;

  void backward(Derivatives& cotangents, const DifferentiationGuide& guide) {
    const std::vector<Var> of_outputs = cotangents.of(node_.outputs);
    if (!any_valid(of_outputs)) return;
    if (!definition_.vjp) throw no_rule(node_, "reverse-mode");
    std::vector<bool> wanted;
    for (ValueId input : node_.inputs) wanted.push_back(guide.is_active(input));
    const std::vector<Var> found = named([&] { return definition_.vjp(context_, of_outputs, wanted); });
    for (std::size_t i = 0; i < found.size() && i < wanted.size(); ++i)
      if (wanted[i]) cotangents.add(node_.inputs[i], found[i]);
  }

  void forward(Derivatives& tangents) {
    const std::vector<Var> of_inputs = tangents.of(node_.inputs);
    if (!any_valid(of_inputs)) return;
    if (!definition_.jvp) throw no_rule(node_, "forward-mode");
    const std::vector<Var> found = named([&] { return definition_.jvp(context_, of_inputs); });
    for (std::size_t i = 0; i < found.size() && i < node_.outputs.size(); ++i)
      if (node_.outputs[i].valid()) tangents.add(node_.outputs[i], found[i]);
  }

 private:
  // A rule that refuses does not know whose rule it is.
  template <class Rule>
  std::vector<Var> named(const Rule& rule) const {
    try {
      return rule();
    } catch (const Error& error) {
      throw error.in("derivative of " + describe(node_));
    }
  }

  std::vector<Var> vars(const std::vector<ValueId>& ids) const {
    std::vector<Var> result;
    for (ValueId id : ids) result.push_back(id.valid() ? builder_.var(id) : Var());
    return result;
  }

  Builder& builder_;
  const Node& node_;
  const op::Definition& definition_;
  op::DerivativeContext context_;
  std::string old_name_;
};

DifferentiationGuide guide_for(Builder& builder, std::span<const Var> inputs, std::span<const Var> outputs,
                               const DifferentiationOptions& options) {
  return make_guide(builder.graph(), ids_of(inputs), ids_of(outputs), ids_of(options.stop));
}

}  // namespace

std::vector<Var> vjp(Builder& builder, std::span<const Var> outputs, std::span<const Var> cotangents,
                     std::span<const Var> wrt, const DifferentiationOptions& options) {
  require_same_types(outputs, cotangents, "cotangent");
  const DifferentiationGuide guide = guide_for(builder, wrt, outputs, options);
  Derivatives found(guide);
  for (std::size_t i = 0; i < outputs.size(); ++i) found.add(outputs[i].id(), cotangents[i]);
  for (std::size_t i = guide.path.size(); i-- > 0;) NodeSweep(builder, guide.path[i]).backward(found, guide);
  return found.of(ids_of(wrt));
}

std::vector<Var> gradient(Builder& builder, Var target, std::span<const Var> wrt,
                          const DifferentiationOptions& options) {
  if (target.shape().element_count() != 1 || !is_floating(target.element()))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a gradient is of one floating-point number, not of {}", graph::to_string(target.type())),
        builder.graph().value(target.id()).name, "give vjp a cotangent, or take the mean first");
  const Var seed = builder.constant(Tensor::full(target.element(), target.shape(), 1.0));
  return vjp(builder, std::span(&target, 1), std::span(&seed, 1), wrt, options);
}

std::vector<Var> jvp(Builder& builder, std::span<const Var> outputs, std::span<const Var> inputs,
                     std::span<const Var> tangents, const DifferentiationOptions& options) {
  const std::vector<Var> direction(tangents.begin(), tangents.end());
  return jvps(builder, outputs, inputs, std::span(&direction, 1), options)[0];
}

std::vector<std::vector<Var>> jvps(Builder& builder, std::span<const Var> outputs,
                                   std::span<const Var> inputs, std::span<const std::vector<Var>> directions,
                                   const DifferentiationOptions& options) {
  const DifferentiationGuide guide = guide_for(builder, inputs, outputs, options);
  std::vector<Derivatives> found;
  for (const std::vector<Var>& tangents : directions) {
    require_same_types(inputs, tangents, "tangent");
    Derivatives& of_direction = found.emplace_back(guide);
    for (std::size_t i = 0; i < inputs.size(); ++i) of_direction.add(inputs[i].id(), tangents[i]);
  }
  for (NodeId node : guide.path)
    for (Derivatives& of_direction : found) NodeSweep(builder, node).forward(of_direction);
  std::vector<std::vector<Var>> result;
  for (const Derivatives& of_direction : found) result.push_back(of_direction.of(ids_of(outputs)));
  return result;
}

std::vector<Var> hessian_vector_product(Builder& builder, Var target, std::span<const Var> wrt,
                                        std::span<const Var> vectors, const DifferentiationOptions& options) {
  require_same_types(wrt, vectors, "vector");
  const std::vector<Var> gradients = gradient(builder, target, wrt, options);
  std::vector<Var> present;
  for (const Var& var : gradients)
    if (var.valid()) present.push_back(var);
  const std::vector<Var> derivatives = jvp(builder, present, wrt, vectors, options);
  std::vector<Var> result;
  std::size_t next = 0;
  for (const Var& var : gradients) result.push_back(var.valid() ? derivatives[next++] : Var());
  return result;
}

Var or_zeros(Var derivative, Var like) {
  return derivative.valid() ? derivative : like.builder().zeros_like(like);
}

}  // namespace superstep::transform
