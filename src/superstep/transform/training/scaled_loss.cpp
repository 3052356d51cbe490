#include "superstep/transform/training/scaled_loss.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::transform {
namespace {

using op::Var;

constexpr double usual_scale = 65536;              // of PyTorch's GradScaler
constexpr double largest_scale = 16777216;         // 2^24: a loss of 1e-3 is then still finite in f16
constexpr double smallest_scale = 1.0 / 16777216;  // below it nothing is gained by another halving
constexpr double largest_sum = 3e38;               // of f32; what is more, or NaN, is not finite

}  // namespace

LossScale loss_scale_from_text(std::string_view text) {
  LossScale scale{.initial = usual_scale};
  if (text == "dynamic") return scale;
  const std::string_view word = "dynamic:";
  scale.dynamic = text.starts_with(word);
  const std::string number(scale.dynamic ? text.substr(word.size()) : text);
  if (const std::string fault = why_not(number, {.low = smallest_scale, .high = largest_scale});
      !fault.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("a scale {}", fault),
                fmt::format("--loss-scale {}", text),
                "write dynamic, dynamic:1024, or 1024 for one that stays");
  scale.initial = *finite_number(number);
  return scale;
}

ScaledLoss::ScaledLoss(op::Builder& builder, const LossScale& options)
    : builder_(builder), options_(options) {
  scale_ = builder.state("loss_scale", Tensor::scalar(static_cast<float>(options.initial)));
  good_ = builder.state("loss_scale.good", Tensor::scalar<std::int64_t>(0));
  skipped_ = builder.state("loss_scale.skipped", Tensor::scalar<std::int64_t>(0));
}

Var ScaledLoss::scaled(Var loss) const {
  builder_.set_name("loss.scaled");
  return loss * op::cast(scale_, loss.element());
}

// A sum of distances from zero is finite where all of them are.
void ScaledLoss::unscale(std::vector<Var>& gradients) {
  builder_.set_name("unscaled");
  Var sum;
  for (Var& gradient : gradients) {
    if (!gradient.valid()) continue;
    gradient = gradient / op::cast(scale_, gradient.element());
    const Var own = op::cast(op::reduce_l1(gradient), ElementType::f32);
    sum = sum.valid() ? sum + own : own;
  }
  if (!sum.valid()) sum = builder_.scalar(ElementType::f32, 0);
  finite_ = op::less(sum, builder_.scalar(ElementType::f32, largest_sum));
}

void ScaledLoss::update() {
  builder_.set_name("loss_scale");
  const auto whole = [&](std::int64_t value) { return builder_.constant(Tensor::scalar(value)); };
  builder_.update(skipped_, op::where(finite_, skipped_, skipped_ + whole(1)));
  const Var good = op::where(finite_, good_ + whole(1), whole(0));
  if (!options_.dynamic) {
    builder_.update(good_, good);
    return;
  }
  const Var grows = op::greater_or_equal(good, whole(options_.growth_steps));
  const auto number = [&](double value) { return builder_.scalar(ElementType::f32, value); };
  const Var larger = op::min(scale_ * 2.0, number(largest_scale));
  const Var smaller = op::max(scale_ * 0.5, number(smallest_scale));
  builder_.update(good_, op::where(grows, whole(0), good));
  builder_.update(scale_, op::where(finite_, op::where(grows, larger, scale_), smaller));
}

}  // namespace superstep::transform
