#include "superstep/op/core/gradient_check.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "superstep/base/random.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/core/evaluate.h"

namespace superstep::op {
namespace {

using Tensors = std::vector<Tensor>;
using Positions = std::vector<std::size_t>;

Tensor random_direction(const Tensor& like, RandomStream& random) {
  Tensor direction(ElementType::f64, like.shape());
  for (double& value : direction.as<double>()) value = random.normal();
  return direction;
}

double dot(const Tensors& a, const Tensors& b) {
  double total = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::int64_t i = 0; i < a[k].element_count(); ++i) total += a[k].at(i) * b[k].at(i);
  return total;
}

double largest(const Tensors& tensors) {
  double result = 0;
  for (const Tensor& tensor : tensors)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      result = std::max(result, std::abs(tensor.at(i)));
  return result;
}

bool all_finite(const Tensors& tensors) {
  for (const Tensor& tensor : tensors)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      if (!std::isfinite(tensor.at(i))) return false;
  return true;
}

// x + h v, in place of the inputs at `positions`.
Tensors moved(const Tensors& inputs, const Positions& positions, const Tensors& direction, double h) {
  Tensors result = inputs;
  for (std::size_t k = 0; k < positions.size(); ++k) {
    Tensor& x = result[positions[k]] = inputs[positions[k]].clone();
    auto values = x.as<double>();
    const auto v = direction[k].as<double>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += h * v[i];
  }
  return result;
}

std::string numbers(const Positions& positions) {
  return fmt::format("input{} {}", positions.size() > 1 ? "s" : "", fmt::join(positions, ", "));
}

class Checker {
 public:
  Checker(const Function& function, std::span<const Tensor> inputs, const GradientCheckOptions& options)
      : function_(function), options_(options), inputs_(inputs.begin(), inputs.end()) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].type() == ElementType::f64) differentiable_.push_back(i);
    Graph graph("function");
    Builder builder(graph);
    const std::vector<Var> outputs = apply(builder).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].element() == ElementType::f64) floating_outputs_.push_back(i);
    function_graph_ = make_function_graph();
    values_ = run(function_graph_, inputs_);
  }

  // By each input alone and by all at once; `jointly`: only the latter, and from all outputs at once.
  Status check(bool jointly) {
    if (differentiable_.empty() || floating_outputs_.empty())
      return failure(ErrorCode::invalid_argument,
                     "there is nothing to differentiate: no input or output is f64");
    if (!all_finite(values_)) return failure(ErrorCode::diverged, "the function is not finite at this point");
    std::vector<Positions> groups;
    if (!jointly && differentiable_.size() > 1)
      for (std::size_t input : differentiable_) groups.push_back({input});
    groups.push_back(differentiable_);
    for (const Positions& inputs : groups) {
      const Group group = make_group(inputs, jointly);
      for (int direction = 0; direction < options_.directions; ++direction)
        if (Status status = check_direction(group, direction); !status) return status;
    }
    return {};
  }

 private:
  struct Applied {
    std::vector<Var> inputs, outputs;
  };

  // Reverse mode from some of the floating outputs, given by their numbers among these.
  struct Reverse {
    Positions outputs;
    Graph graph;
  };
  // The derivatives by some inputs at once: all outputs together in reverse mode, then each alone.
  struct Group {
    Positions inputs;
    Graph forward;
    std::vector<Reverse> reverses;
  };

  Group make_group(const Positions& inputs, bool jointly) const {
    Group group{inputs, forward_graph(inputs), {}};
    Positions all;
    for (std::size_t k = 0; k < floating_outputs_.size(); ++k) all.push_back(k);
    group.reverses.push_back({all, reverse_graph(inputs, all)});
    if (!jointly && all.size() > 1)
      for (std::size_t k : all) group.reverses.push_back({{k}, reverse_graph(inputs, {k})});
    return group;
  }

  Applied apply(Builder& builder) const {
    Applied result;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      // Integer inputs stand as constants, so that they can be shapes and axes.
      result.inputs.push_back(inputs_[i].type() == ElementType::f64
                                  ? builder.input(fmt::format("x{}", i), ElementType::f64, inputs_[i].shape())
                                  : builder.constant(inputs_[i]));
    result.outputs = function_(builder, result.inputs);
    return result;
  }

  // Results that are zero are given as such: outputs of a graph must exist.
  static void give(Builder& builder, Var result, Var like) {
    builder.output(fmt::format("y{}", builder.graph().outputs().size()),
                   result.valid() ? result : builder.zeros_like(like));
  }

  Graph make_function_graph() const {
    Graph graph("function");
    Builder builder(graph);
    const Applied applied = apply(builder);
    for (std::size_t i : floating_outputs_) give(builder, applied.outputs[i], applied.outputs[i]);
    return graph;
  }

  Graph forward_graph(const Positions& group) const {
    Graph graph("forward mode");
    Builder builder(graph);
    const Applied applied = apply(builder);
    std::vector<Var> inputs, tangents;
    for (std::size_t i : group) {
      inputs.push_back(applied.inputs[i]);
      tangents.push_back(builder.input(fmt::format("t{}", i), ElementType::f64, inputs_[i].shape()));
    }
    const auto results = forward(builder, 0, inputs, tangents, applied.outputs);
    for (std::size_t i : floating_outputs_) give(builder, results[i], applied.outputs[i]);
    return graph;
  }

  Graph reverse_graph(const Positions& group, const Positions& chosen) const {
    Graph graph("reverse mode");
    Builder builder(graph);
    const Applied applied = apply(builder);
    std::vector<Var> inputs, outputs, cotangents;
    for (std::size_t i : group) inputs.push_back(applied.inputs[i]);
    for (std::size_t k : chosen) {
      outputs.push_back(applied.outputs[floating_outputs_[k]]);
      cotangents.push_back(builder.input(fmt::format("w{}", k), ElementType::f64, outputs.back().shape()));
    }
    const auto results = reverse(builder, 0, outputs, cotangents, inputs);
    for (std::size_t i = 0; i < group.size(); ++i) give(builder, results[i], inputs[i]);
    return graph;
  }

  // `extra`: the tangents or cotangents, which follow the floating inputs.
  Tensors run(const Graph& graph, const Tensors& inputs, const Tensors& extra = {}) const {
    Tensors all;
    for (std::size_t i : differentiable_) all.push_back(inputs[i]);
    all.insert(all.end(), extra.begin(), extra.end());
    return evaluate(graph, all).outputs;
  }

  Status check_direction(const Group& group, int number) const {
    RandomStream random(options_.seed, static_cast<std::uint64_t>(number));
    Tensors direction, cotangents, point;
    for (std::size_t i : group.inputs) {
      direction.push_back(random_direction(inputs_[i], random));
      point.push_back(inputs_[i]);
    }
    for (const Tensor& value : values_) cotangents.push_back(random_direction(value, random));
    const Tensors tangents = run(group.forward, inputs_, direction);
    const double h = options_.step * std::max(1.0, largest(point));
    if (Status status = compare_forward(group, direction, tangents, h); !status) return status;
    for (const Reverse& reverse : group.reverses)
      if (Status status = compare_reverse(group, reverse, direction, cotangents, tangents); !status)
        return status;
    return {};
  }

  Status compare_forward(const Group& group, const Tensors& direction, const Tensors& tangents,
                         double h) const {
    const Tensors above = run(function_graph_, moved(inputs_, group.inputs, direction, h));
    const Tensors below = run(function_graph_, moved(inputs_, group.inputs, direction, -h));
    // What rounding of the function's values leaves of a difference.
    const double rounding = 16 * std::numeric_limits<double>::epsilon() * largest(values_) / h;
    for (std::size_t k = 0; k < tangents.size(); ++k) {
      const double scale = largest({tangents[k]});
      for (std::int64_t i = 0; i < tangents[k].element_count(); ++i) {
        const double given = tangents[k].at(i), difference = (above[k].at(i) - below[k].at(i)) / (2 * h);
        const double allowed = options_.tolerance * std::max(scale, std::abs(difference)) + rounding;
        if (std::abs(given - difference) <= allowed) continue;
        return failure(ErrorCode::bad_graph,
                       fmt::format("forward mode gives {:.12g}, finite differences {:.12g}, at element {} of "
                                   "output {}",
                                   given, difference, i, floating_outputs_[k]),
                       "derivative by " + numbers(group.inputs));
      }
    }
    return {};
  }

  // w . J v = v . J' w.
  Status compare_reverse(const Group& group, const Reverse& reverse, const Tensors& direction,
                         const Tensors& cotangents, const Tensors& tangents) const {
    Tensors w, jv;
    Positions outputs;
    for (std::size_t k : reverse.outputs) {
      w.push_back(cotangents[k]);
      jv.push_back(tangents[k]);
      outputs.push_back(floating_outputs_[k]);
    }
    const Tensors gradient = run(reverse.graph, inputs_, w);
    const double by_forward = dot(w, jv), by_reverse = dot(direction, gradient);
    // The sums may cancel: compare with the size of their terms.
    const double scale =
        std::sqrt(dot(w, w) * dot(jv, jv)) + std::sqrt(dot(direction, direction) * dot(gradient, gradient));
    if (std::abs(by_forward - by_reverse) <= 1e-3 * options_.tolerance * scale) return {};
    return failure(
        ErrorCode::bad_graph,
        fmt::format("the transpose test fails: w . J v is {:.12g} by forward mode, v . J'w is {:.12g} "
                    "by reverse mode, from output{} {}",
                    by_forward, by_reverse, outputs.size() > 1 ? "s" : "", fmt::join(outputs, ", ")),
        "derivative by " + numbers(group.inputs));
  }

  const Function& function_;
  GradientCheckOptions options_;
  Tensors inputs_, values_;
  Positions differentiable_, floating_outputs_;
  Graph function_graph_;
};

// The gradient of w . f as a function of the same inputs, for fixed random w.
Function gradient_of(const Function& function, std::uint64_t seed) {
  return [&function, seed](Builder& builder, std::span<const Var> inputs) {
    const std::size_t first = mark(builder);
    std::vector<Var> outputs, cotangents, points;
    RandomStream random(seed, 0, 1);
    for (Var output : function(builder, inputs)) {
      if (output.element() != ElementType::f64) continue;
      outputs.push_back(output);
      cotangents.push_back(
          builder.constant(random_direction(Tensor(ElementType::f64, output.shape()), random)));
    }
    for (Var input : inputs)
      if (input.element() == ElementType::f64) points.push_back(input);
    std::vector<Var> gradient = reverse(builder, first, outputs, cotangents, points);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      if (!gradient[i].valid()) gradient[i] = builder.zeros_like(points[i]);
    return gradient;
  };
}

}  // namespace

Status check_gradients(const Function& function, std::span<const Tensor> inputs,
                       GradientCheckOptions options) {
  try {
    if (Status status = Checker(function, inputs, options).check(false); !status) return status;
    if (!options.second_order) return {};
    const Function gradient = gradient_of(function, options.seed);
    if (Status status = Checker(gradient, inputs, options).check(true); !status)
      return std::unexpected(status.error().in("second order"));
    return {};
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

}  // namespace superstep::op
