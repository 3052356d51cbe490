#include "superstep/transform/training/derivative_graphs.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/transform/training/differentiate.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueKind;

[[noreturn]] void refuse_name(const Graph& model, std::string_view name,
                              const std::vector<std::string>& known, const char* what) {
  throw Error(ErrorCode::not_found, fmt::format("has no {} '{}'", what, name), model.name(),
              unknown_name_hint(std::string(name), known));
}

Var differentiable(Builder& builder, std::string_view name) {
  const Graph& model = builder.graph();
  std::vector<std::string> known;
  for (auto ids : {model.inputs(), model.states()})
    for (ValueId id : ids) known.push_back(model.value(id).name);
  const ValueId id = model.find_value(name);
  if (!id.valid()) refuse_name(model, name, known, "input or state");
  const graph::Value& value = model.value(id);
  if ((value.kind != ValueKind::input && value.kind != ValueKind::state) || !is_floating(value.type.element))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not an input or state of floating-point numbers", name), model.name());
  return builder.var(id);
}

std::vector<Var> differentiable(Builder& builder, std::span<const std::string> names) {
  if (names.empty())
    throw Error(ErrorCode::invalid_argument, "a derivative needs a name to be taken by",
                builder.graph().name());
  std::vector<Var> vars;
  for (const std::string& name : names) vars.push_back(differentiable(builder, name));
  return vars;
}

Var output_of(Builder& builder, std::string_view name) {
  const Graph& model = builder.graph();
  const ValueId id = model.find_output(name);
  if (id.valid()) return builder.var(id);
  std::vector<std::string> known;
  for (const graph::Output& output : model.outputs()) known.push_back(output.name);
  refuse_name(model, name, known, "output");
}

// The floating outputs, with their names.
struct Outputs {
  std::vector<std::string> names;
  std::vector<Var> vars;
};
Outputs floating_outputs(Builder& builder) {
  Outputs result;
  for (const graph::Output& output : builder.graph().outputs())
    if (is_floating(builder.graph().type(output.value).element)) {
      result.names.push_back(output.name);
      result.vars.push_back(builder.var(output.value));
    }
  return result;
}

std::vector<Var> inputs_like(Builder& builder, const char* kind, std::span<const std::string> names,
                             std::span<const Var> like) {
  std::vector<Var> result;
  for (std::size_t i = 0; i < names.size(); ++i)
    result.push_back(builder.input(fmt::format("{}/{}", kind, names[i]), like[i].element(), like[i].shape()));
  return result;
}

void add_outputs(Builder& builder, const char* kind, std::span<const std::string> names,
                 std::span<const Var> values, std::span<const Var> like) {
  for (std::size_t i = 0; i < names.size(); ++i)
    builder.output(fmt::format("{}/{}", kind, names[i]), or_zeros(values[i], like[i]));
}

}  // namespace

Graph gradient_graph(const Graph& model, std::string_view output, std::span<const std::string> wrt) {
  Graph result = model;
  Builder builder(result);
  const std::vector<Var> by = differentiable(builder, wrt);
  add_outputs(builder, "gradient", wrt, gradient(builder, output_of(builder, output), by), by);
  return result;
}

Graph vjp_graph(const Graph& model, std::span<const std::string> wrt) {
  Graph result = model;
  Builder builder(result);
  const std::vector<Var> by = differentiable(builder, wrt);
  const Outputs outputs = floating_outputs(builder);
  const std::vector<Var> cotangents = inputs_like(builder, "cotangent", outputs.names, outputs.vars);
  add_outputs(builder, "gradient", wrt, vjp(builder, outputs.vars, cotangents, by), by);
  return result;
}

Graph jvp_graph(const Graph& model, std::span<const std::string> wrt) {
  Graph result = model;
  Builder builder(result);
  const std::vector<Var> by = differentiable(builder, wrt);
  const Outputs outputs = floating_outputs(builder);
  const std::vector<Var> tangents = inputs_like(builder, "tangent", wrt, by);
  add_outputs(builder, "tangent", outputs.names, jvp(builder, outputs.vars, by, tangents), outputs.vars);
  return result;
}

Graph hessian_vector_product_graph(const Graph& model, std::string_view output,
                                   std::span<const std::string> wrt) {
  Graph result = model;
  Builder builder(result);
  const std::vector<Var> by = differentiable(builder, wrt);
  const Var target = output_of(builder, output);
  const std::vector<Var> vectors = inputs_like(builder, "vector", wrt, by);
  add_outputs(builder, "gradient", wrt, gradient(builder, target, by), by);
  add_outputs(builder, "hessian", wrt, hessian_vector_product(builder, target, by, vectors), by);
  return result;
}

}  // namespace superstep::transform
