// Sums, means, comparisons and products along bounded axes: places that are not taken hold what changes
// nothing.
#include <algorithm>
#include <limits>

#include "superstep/onnx/bounded/rules.h"
#include "superstep/onnx/wire/element.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

std::vector<int> reduced_axes(BoundedSite& site) {
  const int rank = site.shape(0).rank();
  std::vector<std::int64_t> given = site.list("axes", 1);
  if (given.empty() && site.attributes.integer("noop_with_empty_axes", 0) == 0)
    for (int axis = 0; axis < rank; ++axis) given.push_back(axis);
  return op::checked_axes(given, rank);
}

std::vector<Var> reduced(BoundedSite& site, double fill) {
  std::set<InputAxis> done;
  const Var x = site.input(0);
  Var kept = x;
  for (int axis : reduced_axes(site))
    if (site.bounded(0, axis)) {
      done.insert({0, axis});
      const Var here = taken_places(site.emitter, x, axis);
      kept = site.emitter.plain1("Where", {here, kept, site.emitter.scalar(x.element(), fill)});
    }
  for (const auto& [axis, bounded] : BoundedAxes(site.axes(0)))
    if (kept.id() != x.id()) mark(site.emitter, kept, axis, bounded);
  site.inputs[0] = kept;
  return keep_apart(site, done);
}

std::vector<Var> with_zeros(BoundedSite& site) { return reduced(site, 0); }
std::vector<Var> with_ones(BoundedSite& site) { return reduced(site, 1); }
std::vector<Var> with_lowest(BoundedSite& site) { return reduced(site, lowest_of(site.input(0).element())); }
std::vector<Var> with_highest(BoundedSite& site) {
  return reduced(site, highest_of(site.input(0).element()));
}

std::int64_t number_of(ElementType type) {
  switch (type) {
    case ElementType::f16: return type_f16;
    case ElementType::f64: return type_f64;
    case ElementType::bf16: return type_bf16;
    case ElementType::i32: return type_i32;
    case ElementType::i64: return type_i64;
    default: return type_f32;
  }
}

// The sum by what is taken.
std::vector<Var> mean(BoundedSite& site) {
  Emitter& e = site.emitter;
  std::int64_t others = 1;
  Var count;
  for (int axis : reduced_axes(site)) {
    if (!site.bounded(0, axis)) {
      others *= site.shape(0)[axis];
      continue;
    }
    const Var here = taken(e, site.axes(0).at(axis));
    count = count.valid() ? e.plain1("Mul", {count, here}) : here;
  }
  if (!count.valid()) return keep_apart(site);
  site.op = "ReduceSum";
  if (site.attributes.has("axes")) {
    site.inputs.resize(2);
    site.inputs[1] = e.integers(site.attributes.integers("axes"));
    site.attributes.erase("axes");
  }
  const Var sum = reduced(site, 0)[0];
  const Var all = e.plain1("Mul", {count, e.constant(Tensor::scalar(others))});
  const Var result = e.plain1("Div", {sum, e.plain1("Cast", {all}, {{"to", number_of(sum.element())}})});
  for (const auto& [axis, bounded] : BoundedAxes(e.bounds().of(sum))) mark(e, result, axis, bounded);
  return {result};
}

std::vector<Var> arg(BoundedSite& site, double fill) {
  const int axis = site.axis(0);
  if (!site.bounded(0, axis)) return keep_apart(site);
  const BoundedAxes axes = site.axes(0);
  site.inputs[0] = filled(site.emitter, site.input(0), axis, fill);
  for (const auto& [at, bounded] : axes) mark(site.emitter, site.inputs[0], at, bounded);
  return keep_apart(site, {{0, axis}});
}

std::vector<Var> arg_max(BoundedSite& site) { return arg(site, lowest_of(site.input(0).element())); }
std::vector<Var> arg_min(BoundedSite& site) { return arg(site, highest_of(site.input(0).element())); }

// What is not taken weighs nothing. The lowest finite number: a line of which nothing is taken stays a line
// of numbers.
std::vector<Var> softmax(BoundedSite& site) {
  Emitter& e = site.emitter;
  const int axis = site.axis(-1);
  if (!site.bounded(0, axis)) return keep_apart(site);
  const BoundedAxes axes = site.axes(0);
  const double lowest = site.input(0).element() == ElementType::f16 ? -65504 : -3.3e38;
  site.inputs[0] = filled(e, site.input(0), axis, lowest);
  const Var result = site.plain()[0];
  for (const auto& [at, bounded] : axes) mark(e, result, at, bounded);
  return {result};
}

std::vector<Var> running_sum(BoundedSite& site) {
  Emitter& e = site.emitter;
  const BoundedAxes axes = site.axes(0);
  const int axis = op::checked_axis(site.when_full(1).at(0), site.shape(0).rank());
  if (axes.contains(axis) && site.attributes.integer("reverse", 0) != 0)
    site.inputs[0] = filled(e, site.input(0), axis, 0);
  const Var result = site.plain()[0];
  for (const auto& [at, bounded] : axes) mark(e, result, at, bounded);
  return {result};
}

// Products: along an axis that is summed over, what is not taken is zero in both factors.
std::vector<Var> product(BoundedSite& site, int inner_of_a, int inner_of_b) {
  std::set<InputAxis> done;
  const int inner[] = {inner_of_a, inner_of_b};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!site.bounded(i, inner[i])) continue;
    const BoundedAxes axes = site.axes(i);
    site.inputs[i] = filled(site.emitter, site.input(i), inner[i], 0);
    for (const auto& [at, bounded] : axes) mark(site.emitter, site.inputs[i], at, bounded);
    done.insert({i, inner[i]});
  }
  return keep_apart(site, done);
}

std::vector<Var> matmul(BoundedSite& site) {
  const int a = site.shape(0).rank(), b = site.shape(1).rank();
  return product(site, a - 1, b == 1 ? 0 : b - 2);
}

std::vector<Var> gemm(BoundedSite& site) {
  const bool a = site.attributes.integer("transA", 0) != 0, b = site.attributes.integer("transB", 0) != 0;
  return product(site, a ? 0 : 1, b ? 1 : 0);
}

// Which letter of an equation an axis of an input has; empty where there is none ("...").
std::vector<std::string> letters_of_inputs(const std::string& equation) {
  std::vector<std::string> inputs{""};
  for (char c : equation) {
    if (c == '-') break;
    if (c == ',')
      inputs.emplace_back();
    else if (c != ' ')
      inputs.back() += c;
  }
  return inputs;
}

std::vector<Var> einsum(BoundedSite& site) {
  Emitter& e = site.emitter;
  const std::string equation = site.attributes.text("equation");
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string> inputs = letters_of_inputs(equation);
  if (arrow == std::string::npos || equation.find('.') != std::string::npos ||
      inputs.size() != site.inputs.size())
    refuse_bounded(site, "its equation does not name all axes");
  std::string output;
  for (char c : equation.substr(arrow + 2))
    if (c != ' ') output += c;
  std::map<char, BoundedAxis> bounded;
  for (std::size_t i = 0; i < site.inputs.size(); ++i)
    for (const auto& [axis, of] : BoundedAxes(site.axes(i))) {
      const char letter = inputs[i].at(static_cast<std::size_t>(axis));
      bounded.try_emplace(letter, of);
    }
  for (std::size_t i = 0; i < site.inputs.size(); ++i) site.inputs[i] = filled(e, site.input(i), 0);
  const Var result = site.plain()[0];
  for (std::size_t axis = 0; axis < output.size(); ++axis)
    if (const auto of = bounded.find(output[axis]); of != bounded.end())
      mark(e, result, static_cast<int>(axis), of->second);
  return {result};
}

constexpr NamedRule rules[] = {
    {"ReduceSum", with_zeros},
    {"ReduceL1", with_zeros},
    {"ReduceL2", with_zeros},
    {"ReduceSumSquare", with_zeros},
    {"ReduceLogSum", with_zeros},
    {"ReduceLogSumExp", with_lowest},
    {"ReduceProd", with_ones},
    {"ReduceMax", with_lowest},
    {"ReduceMin", with_highest},
    {"ReduceMean", mean},
    {"ArgMax", arg_max},
    {"ArgMin", arg_min},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"CumSum", running_sum},
    {"MatMul", matmul},
    {"Gemm", gemm},
    {"Einsum", einsum},
};

}  // namespace

std::span<const NamedRule> bounded_reduction_rules() { return rules; }

}  // namespace superstep::onnx
