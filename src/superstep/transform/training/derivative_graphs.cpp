#include "superstep/transform/training/derivative_graphs.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
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

std::int64_t elements_of(std::span<const Var> vars) {
  std::int64_t count = 0;
  for (const Var& var : vars) count += var.shape().element_count();
  return count;
}

// For every element of every var: one there, zero elsewhere; other vars have no tangent.
std::vector<std::vector<Var>> unit_directions(Builder& builder, std::span<const Var> vars) {
  std::vector<std::vector<Var>> directions;
  for (std::size_t v = 0; v < vars.size(); ++v)
    for (std::int64_t i = 0; i < vars[v].shape().element_count(); ++i) {
      Tensor unit = Tensor::full(vars[v].element(), vars[v].shape(), 0);
      unit.set(i, 1);
      directions.emplace_back(vars.size())[v] = builder.constant(std::move(unit));
    }
  return directions;
}

// derivatives[d][k]: of target k along unit direction d; like[k] has its type. Block (v, k): the directions
// of var v stacked along the first axis.
Var stacked(const std::vector<std::vector<Var>>& derivatives, std::size_t first, std::int64_t count,
            std::size_t k, Var like) {
  std::vector<Var> rows;
  for (std::int64_t i = 0; i < count; ++i)
    rows.push_back(op::reshape(or_zeros(derivatives[first + static_cast<std::size_t>(i)][k], like),
                               {1, like.shape().element_count()}));
  return op::concat(rows, 0);
}

Shape joined(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> extents = a.extents();
  extents.insert(extents.end(), b.begin(), b.end());
  return Shape(extents);
}

// Adds "jacobian/OUTPUT/NAME" out of derivatives along the unit directions of `from`, the inputs in forward
// mode (whose rows are columns of the Jacobian) or the outputs in reverse mode.
void add_jacobians(Builder& builder, const Outputs& outputs, std::span<const std::string> names,
                   std::span<const Var> by, const std::vector<std::vector<Var>>& derivatives, bool forward) {
  for (std::size_t o = 0; o < outputs.vars.size(); ++o) {
    for (std::size_t n = 0; n < by.size(); ++n) {
      const std::span<const Var> from = forward ? by : outputs.vars;
      const std::size_t v = forward ? n : o;
      const auto first = static_cast<std::size_t>(elements_of(from.first(v)));
      const Var like = forward ? outputs.vars[o] : by[n];
      Var rows = stacked(derivatives, first, from[v].shape().element_count(), forward ? o : n, like);
      if (forward) rows = op::transpose(rows, {1, 0});
      builder.output(fmt::format("jacobian/{}/{}", outputs.names[o], names[n]),
                     op::reshape(rows, joined(outputs.vars[o].shape(), by[n].shape())));
    }
  }
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

Graph jacobian_graph(const Graph& model, std::span<const std::string> wrt) {
  Graph result = model;
  Builder builder(result);
  const std::vector<Var> by = differentiable(builder, wrt);
  const Outputs outputs = floating_outputs(builder);
  const std::int64_t columns = elements_of(by), rows = elements_of(outputs.vars);
  if (std::min(columns, rows) > most_jacobian_directions)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a Jacobian of {} rows and {} columns needs more than {} directions", rows,
                            columns, most_jacobian_directions),
                model.name(), "take products with it: jvp_graph, vjp_graph");
  std::vector<std::vector<Var>> derivatives;
  if (columns <= rows) {
    derivatives = jvps(builder, outputs.vars, by, unit_directions(builder, by));
  } else {
    for (const std::vector<Var>& cotangents : unit_directions(builder, outputs.vars))
      derivatives.push_back(vjp(builder, outputs.vars, cotangents, by));
  }
  add_jacobians(builder, outputs, wrt, by, derivatives, columns <= rows);
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
