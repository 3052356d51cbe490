#include "superstep/op/rows/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep) {
  Extents extents;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!std::ranges::binary_search(axes, axis))
      extents.push_back(shape[axis]);
    else if (keep)
      extents.push_back(1);
  }
  return Shape(extents);
}

bool keeps(const Attributes& attributes) { return attributes.integer("keepdims", 1) != 0; }

// A reduction visits the elements of each group twice: `shift` of the first pass (a maximum) is given to
// every call of the second.
struct Sum {
  static constexpr std::string_view name = "ReduceSum";
  static constexpr Folding folding = Folding::sum;
  static constexpr int opset = 13;
  static constexpr bool floating_only = false;
  template <class W>
  static W start() {
    return W{};
  }
  template <class W>
  static void add(W& total, W x, W) {
    if constexpr (std::is_same_v<W, double>)
      total += x;
    else
      total = static_cast<W>(static_cast<std::uint64_t>(total) + static_cast<std::uint64_t>(x));
  }
  template <class W>
  static W finish(W total, W, std::int64_t) {
    return total;
  }
  static Var times_derivative(Var, Var, Var t) { return t; }
};
struct Mean : Sum {
  static constexpr std::string_view name = "ReduceMean";
  static constexpr Folding folding = Folding::mean;
  static constexpr int opset = 18;
  template <class W>
  static W finish(W total, W, std::int64_t count) {
    return count ? total / static_cast<W>(count) : total;
  }
  static Var times_derivative(Var x, Var y, Var t) {
    return t *
           (static_cast<double>(y.shape().element_count()) / static_cast<double>(x.shape().element_count()));
  }
};
struct Prod : Sum {
  static constexpr std::string_view name = "ReduceProd";
  static constexpr Folding folding = Folding::product;
  static constexpr int opset = 18;
  template <class W>
  static W start() {
    return W{1};
  }
  template <class W>
  static void add(W& total, W x, W) {
    if constexpr (std::is_same_v<W, double>)
      total *= x;
    else
      total = static_cast<W>(static_cast<std::uint64_t>(total) * static_cast<std::uint64_t>(x));
  }
};
struct Max : Sum {
  static constexpr std::string_view name = "ReduceMax";
  static constexpr Folding folding = Folding::largest;
  static constexpr int opset = 20;
  template <class W>
  static W start() {
    if constexpr (std::is_same_v<W, double>)
      return -std::numeric_limits<double>::infinity();
    else
      return std::numeric_limits<W>::min();
  }
  template <class W>
  static void add(W& total, W x, W) {
    total = total >= x || total != total ? total : x;
  }
  static Var times_derivative(Var x, Var y, Var t) { return t * cast(equal(x, y), t.element()); }
};
struct Min : Max {
  static constexpr std::string_view name = "ReduceMin";
  static constexpr Folding folding = Folding::smallest;
  template <class W>
  static W start() {
    if constexpr (std::is_same_v<W, double>)
      return std::numeric_limits<double>::infinity();
    else
      return std::numeric_limits<W>::max();
  }
  template <class W>
  static void add(W& total, W x, W) {
    total = total <= x || total != total ? total : x;
  }
};
struct L1 : Sum {
  static constexpr std::string_view name = "ReduceL1";
  static constexpr Folding folding = Folding::sum_of_absolutes;
  static constexpr int opset = 18;
  template <class W>
  static void add(W& total, W x, W shift) {
    Sum::add(total, x < W{} ? W{} - x : x, shift);
  }
  static Var times_derivative(Var x, Var, Var t) { return t * sign(x); }
};
struct SumSquare : Sum {
  static constexpr std::string_view name = "ReduceSumSquare";
  static constexpr Folding folding = Folding::sum_of_squares;
  static constexpr int opset = 18;
  template <class W>
  static void add(W& total, W x, W shift) {
    W square = x;
    Prod::add(square, x, shift);
    Sum::add(total, square, shift);
  }
  static Var times_derivative(Var x, Var, Var t) { return t * (x * 2.0); }
};
struct L2 : SumSquare {
  static constexpr std::string_view name = "ReduceL2";
  static constexpr Folding folding = Folding::root_of_squares;
  template <class W>
  static W finish(W total, W, std::int64_t) {
    return static_cast<W>(std::sqrt(static_cast<double>(total)));
  }
  static Var times_derivative(Var x, Var y, Var t) { return t * (x / y); }
};
struct LogSum : Sum {
  static constexpr std::string_view name = "ReduceLogSum";
  static constexpr Folding folding = Folding::log_of_sum;
  static constexpr int opset = 18;
  template <class W>
  static W finish(W total, W, std::int64_t) {
    return static_cast<W>(std::log(static_cast<double>(total)));
  }
  static Var times_derivative(Var, Var y, Var t) { return t * exp(-y); }
};
struct LogSumExp : Sum {
  static constexpr std::string_view name = "ReduceLogSumExp";
  static constexpr Folding folding = Folding::log_of_exponentials;
  static constexpr int opset = 18;
  template <class W>
  static void add(W& total, W x, W shift) {
    total += static_cast<W>(std::exp(static_cast<double>(x - shift)));
  }
  template <class W>
  static W finish(W total, W shift, std::int64_t) {
    return static_cast<W>(std::log(static_cast<double>(total)) + static_cast<double>(shift));
  }
  static Var times_derivative(Var x, Var y, Var t) { return t * exp(x - y); }
};

std::vector<int> axes_of(const InferContext& context, int rank) {
  if (!context.has(1)) return reduced_axes(context.attributes, rank, nullptr);
  const Extents given = context.known_integers(1, "input axes");
  return reduced_axes(context.attributes, rank, &given);
}

template <class Rule>
std::vector<ValueType> infer_reduction(const InferContext& context) {
  if constexpr (!std::is_base_of_v<Max, Rule>) require_numeric(context, 0, "data");  // of bool: any and all
  const ValueType& x = context.input(0);
  return {{x.element, reduced_shape(x.shape, axes_of(context, x.shape.rank()), keeps(context.attributes))}};
}

template <class Rule, class W>
W reduce_group(const std::vector<W>& x, const Shape& shape, const Extents& strides, std::int64_t start) {
  W shift{};
  const auto each = [&](auto&& body) {
    for_each_strided(shape, strides, start,
                     [&](std::int64_t, std::int64_t offset) { body(x[static_cast<std::size_t>(offset)]); });
  };
  if constexpr (std::is_same_v<Rule, LogSumExp>) {
    shift = Max::start<W>();
    each([&](W value) { Max::add(shift, value, W{}); });
    if constexpr (std::is_same_v<W, double>)
      if (!std::isfinite(shift)) return shift;
  }
  W total = Rule::template start<W>();
  each([&](W value) { Rule::add(total, value, shift); });
  return Rule::finish(total, shift, shape.element_count());
}

// What the wide type has as its smallest and largest integer is so of the narrow one: extremes of nothing.
template <class W>
void limit_to_type(std::vector<W>& values, ElementType type) {
  dispatch(type, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<W> && !std::is_same_v<T, bool>)
      for (W& value : values)
        value = std::clamp<W>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  });
}

template <class Rule>
void evaluate_reduction(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const Extents given = context.has(1) ? integers_of(context.input(1)) : Extents{};
  const std::vector<int> axes =
      reduced_axes(context.attributes, shape.rank(), context.has(1) ? &given : nullptr);
  std::vector<int> kept;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!std::ranges::binary_search(axes, axis)) kept.push_back(axis);
  const Extents strides = shape.row_major_strides();
  const Shape group(pick(shape.extents(), axes)), outer(pick(shape.extents(), kept));
  const Extents group_strides = pick(strides, axes);
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const std::vector<W> x = widen<W>(context.input(0));
    std::vector<W> y(static_cast<std::size_t>(outer.element_count()));
    for_each_strided(outer, pick(strides, kept), 0, [&](std::int64_t i, std::int64_t start) {
      y[static_cast<std::size_t>(i)] = reduce_group<Rule>(x, group, group_strides, start);
    });
    if (shape.element_count() == 0) limit_to_type(y, context.output(0).type());
    narrow(y, context.output(0));
  });
}

std::vector<int> axes_of(const DerivativeContext& context) {
  const int rank = context.inputs[0].shape().rank();
  if (!context.has(1)) return reduced_axes(context.attributes, rank, nullptr);
  const Extents given = constant_integers(context.inputs[1]);
  return reduced_axes(context.attributes, rank, &given);
}

// A value of the result's shape with the reduced axes kept, so that it broadcasts to x.
Var kept(const DerivativeContext& context, Var value) {
  return reshape(value, reduced_shape(context.inputs[0].shape(), axes_of(context), true));
}

Var sum_again(const DerivativeContext& context, Var value) {
  const std::vector<int> axes = axes_of(context);
  if (axes.empty()) return value;
  return reduce_sum(value, Axes(axes.begin(), axes.end()), true);
}

// Elements that are equal to an extreme share its derivative.
template <class Rule>
Var shared(const DerivativeContext& context, Var y, Var t) {
  if constexpr (!std::is_base_of_v<Max, Rule>) return t;
  const Var ties = sum_again(context, cast(equal(context.inputs[0], y), y.element()));
  return t / ties;
}

template <class Rule>
std::vector<Var> vjp_reduction(const DerivativeContext& context, std::span<const Var> cotangents,
                               const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  const Var x = context.inputs[0], y = kept(context, context.outputs[0]);
  result[0] = expand_to(Rule::times_derivative(x, y, shared<Rule>(context, y, kept(context, cotangents[0]))),
                        x.shape());
  return result;
}

template <class Rule>
std::vector<Var> jvp_reduction(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var x = context.inputs[0], y = kept(context, context.outputs[0]);
  const Var terms = Rule::times_derivative(x, y, shared<Rule>(context, y, tangents[0]));
  return {reshape(sum_again(context, terms), context.outputs[0].shape())};
}

// The product as a tree of products of halves. Its derivatives are exact to every order, with zeros among
// the elements too, where y / x_i is not the product of the others.
Var product_of_columns(Var x) {
  for (std::int64_t n = x.shape()[1]; n > 1; n = x.shape()[1]) {
    const std::int64_t half = n / 2;
    const Var product = slice(x, {0}, {half}, {1}) * slice(x, {half}, {2 * half}, {1});
    x = n % 2 ? concat(std::vector{product, slice(x, {n - 1}, {n}, {1})}, 1) : product;
  }
  return x;
}

std::vector<Var> decompose_product(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const std::vector<int> axes = axes_of(context);
  Extents permutation;
  std::int64_t columns = 1;
  for (int axis = 0; axis < x.shape().rank(); ++axis)
    if (!std::ranges::binary_search(axes, axis)) permutation.push_back(axis);
  for (int axis : axes) {
    permutation.push_back(axis);
    columns *= x.shape()[axis];
  }
  const Shape& result = context.outputs[0].shape();
  if (columns == 0) return {constant_of_shape(context.builder, x.element(), result, 1)};
  const Var rows = permutation.empty() ? x : transpose(x, permutation);
  return {reshape(product_of_columns(reshape(rows, {result.element_count(), columns})), result)};
}

// The reduction `op` of x instead of this one, over the same axes.
Var reduced_by(std::string_view op, const DerivativeContext& context, Var x) {
  const Var axes = context.has(1) ? context.inputs[1] : Var();
  return context.builder.node1(op, {x, axes}, context.attributes);
}

template <class Rule>
std::vector<Var> decompose_reduction(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  if constexpr (std::is_same_v<Rule, L1>)
    return {reduced_by("ReduceSum", context, abs(x))};
  else if constexpr (std::is_same_v<Rule, L2>)
    return {sqrt(reduced_by("ReduceSumSquare", context, x))};
  else
    return {log(reduced_by("ReduceSum", context, x))};
}

// Of what is left of the largest element; that alone where it is infinite or NaN.
std::vector<Var> decompose_log_sum_exp(const DerivativeContext& context) {
  const Var x = context.inputs[0], largest = reduced_by("ReduceMax", context, x);
  const Var zero = constant_like(x, 0);
  const Var finite = equal(largest - largest, zero);
  const Var shift = where(finite, largest, zero);
  const Var sum = reduced_by("ReduceSum", context, exp(x - kept(context, shift)));
  return {where(finite, log(sum) + shift, largest)};
}

// By other reductions; integers have roots and logarithms of their own.
template <class Rule>
constexpr decltype(Definition::decompose) decomposition_of() {
  if constexpr (std::is_same_v<Rule, LogSumExp>) return decompose_log_sum_exp;
  constexpr bool composed =
      std::is_same_v<Rule, L1> || std::is_same_v<Rule, L2> || std::is_same_v<Rule, LogSum>;
  if constexpr (composed) return decompose_reduction<Rule>;
  return nullptr;
}

double input_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return static_cast<double>(inputs[0].shape.element_count());
}

// `axes_input_since`: the first operator set in which the axes are an input.
template <class Rule>
Definition reduction_definition(Elements elements = Elements::numeric,
                                decltype(Traits::batch) samples = batch::other_reduction,
                                int axes_input_since = 18) {
  constexpr bool by_product = std::is_same_v<Rule, Prod>;
  return {.name = Rule::name,
          .since_opset = Rule::opset,
          .max_inputs = 2,
          .traits = {.elements = elements,
                     .work = WorkKind::reduction,
                     .batch = samples,
                     .constants = Variation::as_reduced,
                     .attributes = "axes keepdims noop_with_empty_axes",
                     .axes_input_since = axes_input_since,
                     .folding = Rule::folding},
          .infer = infer_reduction<Rule>,
          .flops = input_flops,
          .evaluate = evaluate_reduction<Rule>,
          .vjp = by_product ? vjp_through<decompose_product> : vjp_reduction<Rule>,
          .jvp = by_product ? jvp_through<decompose_product> : jvp_reduction<Rule>,
          .decompose = decomposition_of<Rule>(),
          .shape_inputs = 0b10u};
}

Var reduce(std::string_view op, Var x, const Axes& axes, bool keep) {
  const Var axes_input = axes.empty() ? Var() : x.builder().integers(axes);
  return x.builder().node1(op, {x, axes_input}, {{"keepdims", std::int64_t{keep}}});
}

}  // namespace

std::vector<int> reduced_axes(const Attributes& attributes, int rank, const Extents* given) {
  Extents axes = given ? *given : attributes.integers("axes", {});
  if (axes.empty() && attributes.integer("noop_with_empty_axes", 0) == 0)
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return checked_axes(axes, rank);
}

Var reduce_sum(Var x, const Axes& axes, bool keep) { return reduce("ReduceSum", x, axes, keep); }
Var reduce_mean(Var x, const Axes& axes, bool keep) { return reduce("ReduceMean", x, axes, keep); }
Var reduce_prod(Var x, const Axes& axes, bool keep) { return reduce("ReduceProd", x, axes, keep); }
Var reduce_max(Var x, const Axes& axes, bool keep) { return reduce("ReduceMax", x, axes, keep); }
Var reduce_min(Var x, const Axes& axes, bool keep) { return reduce("ReduceMin", x, axes, keep); }
Var reduce_l1(Var x, const Axes& axes, bool keep) { return reduce("ReduceL1", x, axes, keep); }
Var reduce_l2(Var x, const Axes& axes, bool keep) { return reduce("ReduceL2", x, axes, keep); }
Var reduce_sum_square(Var x, const Axes& axes, bool keep) { return reduce("ReduceSumSquare", x, axes, keep); }
Var reduce_log_sum(Var x, const Axes& axes, bool keep) { return reduce("ReduceLogSum", x, axes, keep); }
Var reduce_log_sum_exp(Var x, const Axes& axes, bool keep) {
  return reduce("ReduceLogSumExp", x, axes, keep);
}

std::span<const Definition> reduction_operators() {
  static const Definition definitions[] = {
      reduction_definition<Sum>(Elements::numeric, batch::sum, 13),
      reduction_definition<Mean>(Elements::numeric, batch::mean),
      reduction_definition<Prod>(),
      reduction_definition<Max>(Elements::any),
      reduction_definition<Min>(Elements::any),
      reduction_definition<L1>(),
      reduction_definition<L2>(),
      reduction_definition<LogSum>(),
      reduction_definition<LogSumExp>(),
      reduction_definition<SumSquare>(),
  };
  return definitions;
}

}  // namespace superstep::op
