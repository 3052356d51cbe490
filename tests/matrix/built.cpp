#include "tests/matrix/built.h"

#include <algorithm>
#include <cmath>

#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/transform/training/differentiate.h"

namespace superstep::matrix {
namespace {

using op::Builder;
using op::Var;

bool has_floating_inputs(const Case& item) {
  return std::ranges::any_of(item.inputs, [](const Tensor& t) { return is_floating(t.type()); });
}

// Is it one of the inputs that the element type is about?
bool is_data(const Case& item, std::size_t input) {
  const ElementType type = item.inputs[input].type();
  return has_floating_inputs(item) ? is_floating(type) : type == item.inputs[0].type();
}

// Floating numbers become small whole ones, so that integer types hold them.
Tensor as_integers(const Tensor& tensor, ElementType element) {
  Tensor result(element, tensor.shape());
  const bool is_unsigned = element >= ElementType::u64;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const double value = is_floating(tensor.type()) ? std::round(3 * tensor.at(i)) : tensor.at(i);
    result.set(i, is_unsigned ? std::abs(value) : value);
  }
  return result;
}

Tensor in_type(const Tensor& tensor, ElementType element) {
  if (tensor.type() == element) return tensor;
  return is_floating(element) ? tensor.converted(element) : as_integers(tensor, element);
}

struct Draft {
  Built built;
  std::vector<Var> data, outputs;
};

// `integers_too`: integer inputs beside the data are inputs of the graph as well.
Draft draft(const Case& item, ElementType element, bool integers_too, Builder& builder, Built& built) {
  Draft result;
  std::vector<Var> vars;
  for (std::size_t i = 0; i < item.inputs.size(); ++i) {
    const bool data = is_data(item, i);
    const Tensor tensor = data ? in_type(item.inputs[i], element) : item.inputs[i];
    const bool free = data ? integers_too || has_floating_inputs(item) : integers_too;
    if (free) built.inputs.push_back(tensor);
    vars.push_back(free ? builder.input("x", tensor.type(), tensor.shape()) : builder.constant(tensor));
    if (data) result.data.push_back(vars.back());
  }
  result.outputs = item.function(builder, vars);
  return result;
}

template <class Finish>
std::expected<Built, std::string> attempt(const Case& item, ElementType element, Finish&& finish) {
  std::string reason;
  for (bool integers_too : {true, false}) {
    Built built{graph::Graph(item.op), {}};
    Builder builder(built.graph);
    try {
      finish(builder, draft(item, element, integers_too, builder, built));
      const Status status = graph::verify(built.graph, op::infer_types);
      if (status) return built;
      reason = status.error().what();
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  return std::unexpected(reason);
}

}  // namespace

std::expected<Built, std::string> build(const Case& item, ElementType element) {
  return attempt(item, element, [](Builder& builder, const Draft& parts) {
    int number = 0;
    for (Var output : parts.outputs) builder.output("y" + std::to_string(number++), output);
  });
}

std::expected<Built, std::string> build_gradient(const Case& item, ElementType element) {
  return attempt(item, element, [](Builder& builder, const Draft& parts) {
    std::vector<Var> outputs, cotangents;
    for (Var output : parts.outputs)
      if (is_floating(output.element())) {
        const Tensor values = op::test::random_tensor(output.shape(), 900 + outputs.size());
        outputs.push_back(output);
        cotangents.push_back(builder.constant(values.converted(output.element())));
      }
    int number = 0;
    const std::vector<Var> found = transform::vjp(builder, outputs, cotangents, parts.data);
    for (std::size_t i = 0; i < found.size(); ++i)
      builder.output("d" + std::to_string(number++), transform::or_zeros(found[i], parts.data[i]));
  });
}

std::expected<Built, std::string> build_tangent(const Case& item, ElementType element) {
  return attempt(item, element, [](Builder& builder, const Draft& parts) {
    std::vector<Var> outputs, tangents;
    for (Var output : parts.outputs)
      if (is_floating(output.element())) outputs.push_back(output);
    for (Var input : parts.data) {
      const Tensor values = op::test::random_tensor(input.shape(), 800 + tangents.size());
      tangents.push_back(builder.constant(values.converted(input.element())));
    }
    int number = 0;
    const std::vector<Var> found = transform::jvp(builder, outputs, parts.data, tangents);
    for (std::size_t i = 0; i < found.size(); ++i)
      builder.output("t" + std::to_string(number++), transform::or_zeros(found[i], outputs[i]));
  });
}

TargetRun run(const std::string& target_name, const Built& built, int threads) {
  const auto executable = target::find_target(target_name)
                              .compile([&](std::int64_t) { return built.graph; },
                                       {.batch = 1, .micro_batch = 1, .threads = threads});
  TargetRun result;
  for (const auto& port : executable->outputs())
    result.outputs.emplace_back(port.type.element, port.type.shape);
  executable->run(built.inputs, result.outputs);
  result.steps = executable->summary().steps;
  return result;
}

double tolerance(ElementType element) {
  switch (element) {
    case ElementType::f64: return 1e-11;
    case ElementType::f32: return 2e-5;
    case ElementType::f16: return 8e-3;
    case ElementType::bf16: return 6e-2;
    default: return 0;
  }
}

double tolerance(const std::string& op, ElementType element) {
  return tolerance(op == "superstep.RandomNormal" ? ElementType::f32 : element);
}

}  // namespace superstep::matrix
