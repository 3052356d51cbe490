#include "superstep/op/core/derivative.h"

#include <map>

#include "superstep/op/core/evaluate.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"

namespace superstep::op {
namespace {

using VarMap = std::map<ValueId, Var>;

Var look_up(const VarMap& map, ValueId id) {
  const auto found = id.valid() ? map.find(id) : map.end();
  return found == map.end() ? Var() : found->second;
}

std::vector<Var> vars(Builder& builder, const std::vector<ValueId>& ids) {
  std::vector<Var> result;
  for (ValueId id : ids) result.push_back(id.valid() ? builder.var(id) : Var());
  return result;
}

[[noreturn]] void refuse_rule(const Node& node, const char* mode) {
  throw Error(ErrorCode::unsupported, std::string("has no ") + mode + " derivative rule",
              node.name.empty() ? node.op : node.op + " '" + node.name + "'");
}

// Which values computed from node `first` on depend on the inputs, through floating-point values.
std::vector<bool> dependent_values(const Graph& graph, std::size_t first, std::span<const Var> inputs) {
  std::vector<bool> depends(graph.value_count(), false);
  for (Var input : inputs) depends[input.id().index()] = true;
  for (std::size_t i = first; i < graph.node_count(); ++i) {
    const Node& node = graph.nodes()[i];
    bool any = false;
    for (ValueId id : node.inputs) any = any || (id.valid() && depends[id.index()]);
    for (ValueId id : node.outputs)
      if (any && id.valid() && is_floating(graph.type(id).element)) depends[id.index()] = true;
  }
  return depends;
}

}  // namespace

std::size_t mark(const Builder& builder) { return builder.graph().node_count(); }

std::vector<Var> reverse(Builder& builder, std::size_t first, std::span<const Var> outputs,
                         std::span<const Var> cotangents, std::span<const Var> inputs) {
  const std::size_t end = mark(builder);
  const std::vector<bool> depends = dependent_values(builder.graph(), first, inputs);
  VarMap adjoint;
  const auto accumulate = [&](ValueId id, Var term) {
    if (term.valid()) adjoint[id] = sum_valid(look_up(adjoint, id), term);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) accumulate(outputs[i].id(), cotangents[i]);
  for (std::size_t i = end; i-- > first;) {
    const Node node = builder.graph().nodes()[i];  // a copy: rules append nodes
    std::vector<Var> incoming;
    bool any = false;
    for (ValueId id : node.outputs) {
      incoming.push_back(look_up(adjoint, id));
      any = any || (incoming.back().valid() && depends[id.index()]);
    }
    if (!any) continue;
    std::vector<bool> wanted;
    for (ValueId id : node.inputs) wanted.push_back(id.valid() && depends[id.index()]);
    const Definition& definition = get(node.op);
    if (!definition.vjp) refuse_rule(node, "reverse-mode");
    const DerivativeContext context{builder, node.attributes, vars(builder, node.inputs),
                                    vars(builder, node.outputs)};
    const std::vector<Var> terms = definition.vjp(context, incoming, wanted);
    for (std::size_t k = 0; k < terms.size() && k < node.inputs.size(); ++k)
      if (wanted[k]) accumulate(node.inputs[k], terms[k]);
  }
  std::vector<Var> result;
  for (Var input : inputs) result.push_back(look_up(adjoint, input.id()));
  return result;
}

std::vector<Var> forward(Builder& builder, std::size_t first, std::span<const Var> inputs,
                         std::span<const Var> tangents, std::span<const Var> outputs) {
  const std::size_t end = mark(builder);
  VarMap tangent;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (tangents[i].valid()) tangent[inputs[i].id()] = tangents[i];
  for (std::size_t i = first; i < end; ++i) {
    const Node node = builder.graph().nodes()[i];
    std::vector<Var> incoming;
    bool any = false;
    for (ValueId id : node.inputs) {
      incoming.push_back(look_up(tangent, id));
      any = any || incoming.back().valid();
    }
    if (!any) continue;
    const Definition& definition = get(node.op);
    if (!definition.jvp) refuse_rule(node, "forward-mode");
    const DerivativeContext context{builder, node.attributes, vars(builder, node.inputs),
                                    vars(builder, node.outputs)};
    const std::vector<Var> terms = definition.jvp(context, incoming);
    for (std::size_t k = 0; k < terms.size() && k < node.outputs.size(); ++k)
      if (terms[k].valid() && node.outputs[k].valid()) tangent[node.outputs[k]] = terms[k];
  }
  std::vector<Var> result;
  for (Var output : outputs) result.push_back(output.valid() ? look_up(tangent, output.id()) : Var());
  return result;
}

namespace {

// The floating inputs of a node, each behind an Identity of its own.
DerivativeContext with_own_inputs(const DerivativeContext& context) {
  DerivativeContext own = context;
  for (Var& input : own.inputs)
    if (input.valid() && is_floating(input.element())) input = identity(input);
  return own;
}

struct Differentiable {
  std::vector<Var> inputs;
  std::vector<std::size_t> positions;
};

Differentiable differentiable_inputs(const DerivativeContext& context) {
  Differentiable result;
  for (std::size_t i = 0; i < context.inputs.size(); ++i)
    if (context.has(i) && is_floating(context.inputs[i].element())) {
      result.inputs.push_back(context.inputs[i]);
      result.positions.push_back(i);
    }
  return result;
}

}  // namespace

std::vector<Var> vjp_through(Decomposition decompose, const DerivativeContext& context,
                             std::span<const Var> cotangents, const std::vector<bool>&) {
  const DerivativeContext own = with_own_inputs(context);
  const Differentiable leaves = differentiable_inputs(own);
  const std::size_t first = mark(context.builder);
  std::vector<Var> outputs, given;
  const std::vector<Var> results = decompose(own);
  for (std::size_t i = 0; i < results.size() && i < cotangents.size(); ++i)
    if (results[i].valid() && cotangents[i].valid()) {
      outputs.push_back(results[i]);
      given.push_back(cotangents[i]);
    }
  const std::vector<Var> found = reverse(context.builder, first, outputs, given, leaves.inputs);
  std::vector<Var> result = no_cotangents(context);
  for (std::size_t i = 0; i < found.size(); ++i) result[leaves.positions[i]] = found[i];
  return result;
}

std::vector<Var> jvp_through(Decomposition decompose, const DerivativeContext& context,
                             std::span<const Var> tangents) {
  const DerivativeContext own = with_own_inputs(context);
  const Differentiable leaves = differentiable_inputs(own);
  const std::size_t first = mark(context.builder);
  std::vector<Var> outputs = decompose(own);
  outputs.resize(context.outputs.size());
  std::vector<Var> given;
  for (std::size_t position : leaves.positions) given.push_back(tangents[position]);
  return forward(context.builder, first, leaves.inputs, given, outputs);
}

void evaluate_through(Decomposition decompose, const EvaluateContext& context) {
  Graph graph("decomposition");
  Builder builder(graph);
  std::vector<Var> inputs, outputs;
  for (const Tensor* input : context.inputs)
    inputs.push_back(
        !input ? Var()
               : builder.constant(is_floating(input->type()) ? input->converted(ElementType::f64) : *input));
  for (const Tensor* output : context.outputs) {
    if (!output)
      outputs.emplace_back();
    else
      outputs.push_back(builder.constant(
          Tensor(is_floating(output->type()) ? ElementType::f64 : output->type(), output->shape())));
  }
  const DerivativeContext body{builder, context.attributes, inputs, outputs};
  const std::vector<Var> results = decompose(body);
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < context.outputs.size() && i < results.size(); ++i)
    if (context.outputs[i] && results[i].valid()) {
      builder.output("y" + std::to_string(i), results[i]);
      positions.push_back(i);
    }
  const Evaluation evaluation = evaluate(graph, {});
  for (std::size_t i = 0; i < positions.size(); ++i)
    dispatch_wide(evaluation.outputs[i].type(),
                  [&]<class W>() { narrow(widen<W>(evaluation.outputs[i]), context.output(positions[i])); });
}

}  // namespace superstep::op
