// What a predicted crystal would diffract: the part of the loss that needs no label.
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/fourier.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/workload/xray/autophasenn/autophasenn.h"

namespace superstep::workload {
namespace {

using op::Var;

// (-1)^(z + y + x): a transform of what is multiplied by it has frequency zero in the middle of an even grid.
Tensor alternating_signs(std::int64_t n) {
  Tensor signs(ElementType::f32, {1, 1, n, n, n});
  for (std::int64_t i = 0; i < signs.element_count(); ++i)
    signs.set(i, (i / (n * n) + i / n % n + i % n) % 2 == 0 ? 1 : -1);
  return signs;
}

}  // namespace

Var diffracted(Var amplitude, Var phase) {
  op::Builder& b = amplitude.builder();
  const std::int64_t n = amplitude.shape()[2];
  const Var inside = op::less(b.scalar(amplitude.element(), least_amplitude), amplitude);
  const Var supported = op::where(inside, amplitude, b.scalar(amplitude.element(), 0));
  const op::Complex object = op::polar(supported * b.constant(alternating_signs(n)), phase);
  const std::int64_t before = n / 2, after = n - before;
  const std::vector<std::int64_t> around{0, 0, before, before, before, 0, 0, after, after, after};
  const op::Complex far = op::fourier({op::pad(object.re, around), op::pad(object.im, around)}, {2, 3, 4});
  const Var magnitude = op::magnitude(far);
  return magnitude / (op::reduce_max(magnitude, {1, 2, 3, 4}, true) + 1e-6);
}

Var diffraction_loss(transform::LossPorts& ports) {
  const Var predicted = diffracted(ports.output("amp"), ports.output("phase"));
  return op::reduce_mean(op::abs(predicted - ports.input("diff")));
}

}  // namespace superstep::workload
