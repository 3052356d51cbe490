#include "superstep/op/rows/cumulative.h"

#include <fmt/format.h>

#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

int cumulative_axis(const Shape& shape, const Extents& axis) {
  require(axis.size() == 1, fmt::format("input axis has {} elements, expected one", axis.size()));
  return checked_axis(axis[0], shape.rank(), "input axis");
}

std::vector<ValueType> infer_cumsum(const InferContext& context) {
  require_numeric(context, 0, "x");
  cumulative_axis(context.input(0).shape, context.known_integers(1, "input axis"));
  return {context.input(0)};
}

void evaluate_cumsum(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const int axis = cumulative_axis(shape, integers_of(context.input(1)));
  const bool exclusive = context.attributes.integer("exclusive", 0) != 0;
  const bool reversed = context.attributes.integer("reverse", 0) != 0;
  Extents strides = shape.row_major_strides(), outer = shape.extents();
  const std::int64_t count = shape[axis], step = strides[static_cast<std::size_t>(axis)];
  outer[static_cast<std::size_t>(axis)] = count ? 1 : 0;
  dispatch_wide(context.input(0).type(), [&]<class Wide>() {
    using W = std::conditional_t<std::is_same_v<Wide, double>, double, std::uint64_t>;
    std::vector<W> x = widen<W>(context.input(0));
    for_each_strided(Shape(outer), strides, 0, [&](std::int64_t, std::int64_t start) {
      W total{};
      for (std::int64_t i = 0; i < count; ++i) {
        W& element = x[static_cast<std::size_t>(start + (reversed ? count - 1 - i : i) * step)];
        const W before = total;
        total += element;
        element = exclusive ? before : total;
      }
    });
    narrow(x, context.output(0));
  });
}

Var cumsum_like(const DerivativeContext& context, Var t, bool other_way) {
  Attributes attributes = context.attributes;
  if (other_way) attributes.set("reverse", std::int64_t{attributes.integer("reverse", 0) == 0});
  return context.builder.node1("CumSum", {t, context.inputs[1]}, attributes);
}

std::vector<Var> vjp_cumsum(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>&) {
  return {cumsum_like(context, cotangents[0], true), Var()};
}
std::vector<Var> jvp_cumsum(const DerivativeContext& context, std::span<const Var> tangents) {
  return {cumsum_like(context, tangents[0], false)};
}

// Trilu keeps column - row >= k (upper) or <= k (lower).
std::vector<ValueType> infer_trilu(const InferContext& context) {
  require_min_rank(context, 0, "input", 2);
  if (context.has(1)) require_scalar(context, 1, "k");
  if (context.has(1)) require_integer(context, 1, "k");
  return {context.input(0)};
}

void evaluate_trilu(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  const std::int64_t k = context.has(1) ? integer_of(context.input(1)) : 0;
  const bool upper = context.attributes.integer("upper", 1) != 0;
  dispatch(context.input(0).type(), [&]<class T>() {
    const auto from = context.input(0).as<T>();
    auto to = context.output(0).as<T>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i);
      const std::int64_t column = position % columns, row = position / columns % rows;
      // Compared without the sum that an extreme k would overflow.
      if (upper ? column - row >= k : column - row <= k) to[i] = from[i];
    }
  });
}

std::vector<Var> trilu_of(const DerivativeContext& context, Var t) {
  const Var k = context.has(1) ? context.inputs[1] : Var();
  return {context.builder.node1("Trilu", {t, k}, context.attributes), Var()};
}
std::vector<Var> vjp_trilu(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>&) {
  return trilu_of(context, cotangents[0]);
}
std::vector<Var> jvp_trilu(const DerivativeContext& context, std::span<const Var> tangents) {
  return trilu_of(context, tangents[0]);
}

// x where the difference of column and row says so.
std::vector<Var> decompose_trilu(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Shape& shape = x.shape();
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  Tensor distance(ElementType::i64, {rows, columns});
  for (std::int64_t i = 0; i < distance.element_count(); ++i)
    distance.set(i, static_cast<double>(i % columns - i / columns));
  Builder& builder = context.builder;
  const Var k = context.has(1) ? reshape(cast(context.inputs[1], ElementType::i64), {})
                               : builder.scalar(ElementType::i64, 0);
  const bool upper = context.attributes.integer("upper", 1) != 0;
  const Var places = builder.constant(distance);
  return {where(upper ? greater_or_equal(places, k) : less_or_equal(places, k), x, constant_like(x, 0))};
}

struct SequenceAxes {
  int batch, time;
};
SequenceAxes sequence_axes(const Attributes& attributes) {
  const SequenceAxes axes = {static_cast<int>(attributes.integer("batch_axis", 1)),
                             static_cast<int>(attributes.integer("time_axis", 0))};
  require((axes.batch == 0 && axes.time == 1) || (axes.batch == 1 && axes.time == 0),
          fmt::format("attributes 'batch_axis' and 'time_axis' are {} and {}, expected 0 and 1 in some order",
                      axes.batch, axes.time));
  return axes;
}

std::vector<ValueType> infer_reverse_sequence(const InferContext& context) {
  require_min_rank(context, 0, "input", 2);
  require_integer(context, 1, "sequence_lens");
  require_shape(context, 1, "sequence_lens",
                {context.input(0).shape[sequence_axes(context.attributes).batch]});
  return {context.input(0)};
}

void evaluate_reverse_sequence(const EvaluateContext& context) {
  const Tensor& x = context.input(0);
  const SequenceAxes axes = sequence_axes(context.attributes);
  const Extents lengths = integers_of(context.input(1));
  const std::int64_t batches = x.shape()[axes.batch], steps = x.shape()[axes.time];
  const Extents strides = x.shape().row_major_strides();
  const auto block = static_cast<std::size_t>(strides[1]) * size_in_bytes(x.type());
  const auto offset = [&](std::int64_t batch, std::int64_t step) {
    return static_cast<std::size_t>(batch * strides[static_cast<std::size_t>(axes.batch)] +
                                    step * strides[static_cast<std::size_t>(axes.time)]) *
           size_in_bytes(x.type());
  };
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const std::int64_t length = lengths[static_cast<std::size_t>(batch)];
    if (length < 0 || length > steps)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("input sequence_lens holds {}, expected 0 to {}", length, steps));
    for (std::int64_t step = 0; step < steps; ++step)
      std::memcpy(context.output(0).bytes() + offset(batch, step),
                  x.bytes() + offset(batch, step < length ? length - 1 - step : step), block);
  }
}

// Slices at (step from the end, sequence).
std::vector<Var> decompose_reverse_sequence(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const SequenceAxes axes = sequence_axes(context.attributes);
  const std::int64_t batches = x.shape()[axes.batch], steps = x.shape()[axes.time];
  Extents along_time{1, 1}, along_batch{1, 1};
  along_time[static_cast<std::size_t>(axes.time)] = steps;
  along_batch[static_cast<std::size_t>(axes.batch)] = batches;
  const auto numbers = [&](std::int64_t count, const Extents& shape) {
    Extents values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    return reshape(context.builder.integers(values), Shape(shape));
  };
  const Var step = numbers(steps, along_time);
  const Var lengths = indices_within(context.inputs[1], {.count = steps + 1, .what = "input sequence_lens"});
  const Var length = reshape(cast(lengths, ElementType::i64), Shape(along_batch));
  const Var source = where(less(step, length), length - 1.0 - step, step);
  const Shape grid{x.shape()[0], x.shape()[1]};
  std::vector<Var> vectors(2);
  vectors[static_cast<std::size_t>(axes.time)] = unsqueeze(expand(source, grid), {2});
  vectors[static_cast<std::size_t>(axes.batch)] = unsqueeze(expand(numbers(batches, along_batch), grid), {2});
  return {gather_nd(x, concat(vectors, 2))};
}

// A permutation that is its own inverse.
std::vector<Var> reversed_again(const DerivativeContext& context, Var t) {
  return {context.builder.node1("ReverseSequence", {t, context.inputs[1]}, context.attributes), Var()};
}
std::vector<Var> vjp_reverse_sequence(const DerivativeContext& context, std::span<const Var> cotangents,
                                      const std::vector<bool>&) {
  return reversed_again(context, cotangents[0]);
}
std::vector<Var> jvp_reverse_sequence(const DerivativeContext& context, std::span<const Var> tangents) {
  return reversed_again(context, tangents[0]);
}

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

}  // namespace

Var cumsum(Var x, std::int64_t axis, bool exclusive, bool reversed) {
  const Var axis_input = x.builder().constant(Tensor::scalar(axis));
  return x.builder().node1("CumSum", {x, axis_input},
                           {{"exclusive", std::int64_t{exclusive}}, {"reverse", std::int64_t{reversed}}});
}

Var trilu(Var x, std::int64_t k, bool upper) {
  return x.builder().node1("Trilu", {x, x.builder().constant(Tensor::scalar(k))},
                           {{"upper", std::int64_t{upper}}});
}

Var reverse_sequence(Var x, Var lengths, std::int64_t batch_axis, std::int64_t time_axis) {
  return x.builder().node1("ReverseSequence", {x, lengths},
                           {{"batch_axis", batch_axis}, {"time_axis", time_axis}});
}

std::span<const Definition> cumulative_operators() {
  static const Definition definitions[] = {
      {.name = "CumSum",
       .since_opset = 14,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::reduction,
                  .batch = batch::cumulative,
                  .attributes = "exclusive reverse"},
       .infer = infer_cumsum,
       .evaluate = evaluate_cumsum,
       .vjp = vjp_cumsum,
       .jvp = jvp_cumsum,
       .shape_inputs = 0b10u},
      {.name = "Trilu",
       .since_opset = 14,
       .max_inputs = 2,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::movement,
                  .batch = batch::triangle,
                  .attributes = "upper"},
       .infer = infer_trilu,
       .flops = no_flops,
       .evaluate = evaluate_trilu,
       .vjp = vjp_trilu,
       .jvp = jvp_trilu,
       .decompose = decompose_trilu},
      {.name = "ReverseSequence",
       .since_opset = 10,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::any,
                  .work = WorkKind::movement,
                  .attributes = "batch_axis time_axis"},
       .infer = infer_reverse_sequence,
       .flops = no_flops,
       .evaluate = evaluate_reverse_sequence,
       .vjp = vjp_reverse_sequence,
       .jvp = jvp_reverse_sequence,
       .decompose = decompose_reverse_sequence},
  };
  return definitions;
}

}  // namespace superstep::op
