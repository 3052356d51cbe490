#include "superstep/op/window/sampling.h"

#include <numeric>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// Samples as rows: [batch * positions, channels].
Var as_rows(Var x) {
  const std::int64_t batch = x.shape()[0], channels = x.shape()[1];
  const std::int64_t positions = x.shape().element_count() / std::max<std::int64_t>(1, batch * channels);
  const Var flat = reshape(x, {batch, channels, positions});
  return reshape(transpose(flat, {0, 2, 1}), {batch * positions, channels});
}

// The first row of each picture, as a column that broadcasts over points.
Var first_rows(Var x, std::int64_t points_batch, Var picture) {
  std::int64_t positions = 1;
  for (int axis = 2; axis < x.shape().rank(); ++axis) positions *= x.shape()[axis];
  if (!picture.valid()) {
    Extents numbers(static_cast<std::size_t>(points_batch));
    std::iota(numbers.begin(), numbers.end(), 0);
    picture = x.builder().integers(numbers);
  }
  const Var stride = x.builder().constant(Tensor::scalar(positions));
  return reshape(picture * stride, {points_batch, 1});
}

// Adds the terms of all taps of the axes from `axis` on to `terms`.
void add_terms(std::span<const std::vector<SampleTap>> axes, const Shape& x, Var rows, Var index, Var weight,
               std::size_t axis, std::vector<Var>& terms) {
  if (axis == axes.size()) {
    const Shape column{weight.shape()[0], weight.shape()[1], 1};
    terms.push_back(gather(rows, index) * reshape(weight, column));
    return;
  }
  std::int64_t stride = 1;
  for (int i = static_cast<int>(axis) + 3; i < x.rank(); ++i) stride *= x[i];
  for (const SampleTap& tap : axes[axis]) {
    const Var step = stride == 1 ? tap.index : tap.index * rows.builder().constant(Tensor::scalar(stride));
    add_terms(axes, x, rows, index + step, weight.valid() ? weight * tap.weight : tap.weight, axis + 1,
              terms);
  }
}

}  // namespace

std::vector<SampleTap> linear_taps(Var position, std::int64_t extent) {
  const Var lower = floor(position), share = position - lower;
  const Var zero = constant_like(position, 0),
            last = constant_like(position, static_cast<double>(extent - 1));
  const auto tap = [&](Var index, Var weight) {
    const Var inside = logical_and(greater_or_equal(index, zero), less_or_equal(index, last));
    return SampleTap{cast(where(inside, index, zero), ElementType::i64), where(inside, weight, zero)};
  };
  return {tap(lower, 1.0 - share), tap(lower + 1.0, share)};
}

std::vector<Var> sample_terms(Var x, std::span<const std::vector<SampleTap>> axes, Var picture) {
  std::vector<Var> terms;
  const Var first = first_rows(x, axes[0][0].index.shape()[0], picture);
  add_terms(axes, x.shape(), as_rows(x), first, Var(), 0, terms);
  return terms;
}

Var sample(Var x, std::span<const std::vector<SampleTap>> axes) {
  return transpose(sum(sample_terms(x, axes)), {0, 2, 1});
}

}  // namespace superstep::op
