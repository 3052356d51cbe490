#include "superstep/target/cpu/kernels/elementwise/optimizer_loops.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/elementwise/optimizer_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

// The state of one vector of parameters; each rule reads p, g and the state and writes p and the state.
struct State {
  V p, g, first, second;
};

// A rule's constants are in registers before the loop: what it stores might be what `r` refers to.
struct SgdRule {
  static constexpr int states = 0;
  V rate;
  HWY_INLINE explicit SgdRule(const OptimizerRun& r) : rate(constant(r.scalars.learning_rate)) {}
  HWY_INLINE void step(State& s) const { s.p = hn::NegMulAdd(rate, s.g, s.p); }
};

struct MomentumRule {
  static constexpr int states = 1;
  V rate, momentum, taken;
  bool first_step, nesterov;
  HWY_INLINE explicit MomentumRule(const OptimizerRun& r)
      : rate(constant(r.scalars.learning_rate)),
        momentum(constant(r.rule->momentum)),
        taken(constant(1 - r.rule->dampening)),
        first_step(r.scalars.step == 1),
        nesterov(r.rule->nesterov) {}
  HWY_INLINE void step(State& s) const {
    const V later = hn::MulAdd(momentum, s.first, hn::Mul(taken, s.g));
    s.first = first_step ? s.g : later;
    const V direction = nesterov ? hn::MulAdd(momentum, s.first, s.g) : s.first;
    s.p = hn::NegMulAdd(rate, direction, s.p);
  }
};

HWY_INLINE V rounded(double value) { return constant(static_cast<float>(value)); }

// A moving average: keep * before + take * value.
struct Average {
  V keep, take;
  HWY_INLINE explicit Average(double beta) : keep(rounded(beta)), take(rounded(1 - beta)) {}
  HWY_INLINE V next(V before, V value) const { return hn::MulAdd(keep, before, hn::Mul(take, value)); }
};

struct AdamRule {
  static constexpr int states = 2;
  Average moment, square;
  V correction1, correction2, epsilon, rate;
  HWY_INLINE explicit AdamRule(const OptimizerRun& r)
      : moment(r.rule->beta1),
        square(r.rule->beta2),
        correction1(constant(r.correction1)),
        correction2(constant(r.correction2)),
        epsilon(constant(r.rule->epsilon)),
        rate(constant(r.scalars.learning_rate)) {}
  HWY_INLINE void step(State& s) const {
    s.first = moment.next(s.first, s.g);
    s.second = square.next(s.second, hn::Mul(s.g, s.g));
    const V root = hn::Sqrt(hn::Mul(s.second, correction2));
    const V ratio = hn::Div(hn::Mul(s.first, correction1), hn::Add(root, epsilon));
    s.p = hn::NegMulAdd(rate, ratio, s.p);
  }
};

struct AdamwRule {
  static constexpr int states = 2;
  AdamRule adam;
  V kept;
  HWY_INLINE explicit AdamwRule(const OptimizerRun& r)
      : adam(r), kept(constant(1 - r.scalars.learning_rate * r.rule->weight_decay)) {}
  HWY_INLINE void step(State& s) const {
    s.p = hn::Mul(s.p, kept);
    adam.step(s);
  }
};

struct AdamaxRule {
  static constexpr int states = 2;
  Average moment;
  V keep, epsilon, rate;
  HWY_INLINE explicit AdamaxRule(const OptimizerRun& r)
      : moment(r.rule->beta1),
        keep(rounded(r.rule->beta2)),
        epsilon(constant(r.rule->epsilon)),
        rate(constant(r.scalars.learning_rate * r.correction1)) {}
  HWY_INLINE void step(State& s) const {
    s.first = moment.next(s.first, s.g);
    s.second = hn::Max(hn::Mul(keep, s.second), hn::Add(hn::Abs(s.g), epsilon));
    s.p = hn::NegMulAdd(rate, hn::Div(s.first, s.second), s.p);
  }
};

struct RmspropRule {
  static constexpr int states = 2;  // without momentum the first is zero and not kept
  Average square;
  V epsilon, rate, momentum;
  HWY_INLINE explicit RmspropRule(const OptimizerRun& r)
      : square(r.rule->beta2),
        epsilon(constant(r.rule->epsilon)),
        rate(constant(r.scalars.learning_rate)),
        momentum(constant(r.rule->momentum)) {}
  HWY_INLINE void step(State& s) const {
    s.second = square.next(s.second, hn::Mul(s.g, s.g));
    const V scaled = hn::Div(hn::Mul(rate, s.g), hn::Sqrt(hn::Add(s.second, epsilon)));
    s.first = hn::MulAdd(momentum, s.first, scaled);
    s.p = hn::Sub(s.p, s.first);
  }
};

struct AdagradRule {
  static constexpr int states = 2;
  V epsilon, rate;
  HWY_INLINE explicit AdagradRule(const OptimizerRun& r)
      : epsilon(constant(r.rule->epsilon)), rate(constant(r.scalars.learning_rate)) {}
  HWY_INLINE void step(State& s) const {
    s.second = hn::MulAdd(s.g, s.g, s.second);
    s.p = hn::NegMulAdd(rate, hn::Div(s.g, hn::Add(hn::Sqrt(s.second), epsilon)), s.p);
  }
};

HWY_INLINE V sum_gradients(const float* const* gradients, std::int64_t buffers, std::int64_t i,
                           std::size_t n) {
  V sum = load_first(gradients[0] + i, n);
  for (std::int64_t k = 1; k < buffers; ++k) sum = hn::Add(sum, load_first(gradients[k] + i, n));
  return sum;
}

template <class Rule, bool decays>
class Updater {
 public:
  HWY_INLINE explicit Updater(const OptimizerRun& run)
      : r_(run),
        rule_(run),
        scale_(constant(run.scalars.gradient_scale)),
        decay_(constant(run.rule->weight_decay)) {}

  HWY_INLINE void update(std::int64_t i, std::size_t n) const {
    const V zero = hn::Zero(f32_tag);
    State s{load_first(r_.parameters + i, n), sum_gradients(r_.gradients, buffers_, i, n), zero, zero};
    s.g = hn::Mul(s.g, scale_);
    if (decays) s.g = hn::MulAdd(decay_, s.p, s.g);
    if (Rule::states > 0 && r_.first) s.first = load_first(r_.first + i, n);
    if (Rule::states > 1) s.second = load_first(r_.second + i, n);
    rule_.step(s);
    store_first(s.p, r_.parameters + i, n);
    if (Rule::states > 0 && r_.first) store_first(s.first, r_.first + i, n);
    if (Rule::states > 1) store_first(s.second, r_.second + i, n);
    if (r_.copy) store_first(s.p, r_.copy + i, n);
  }

 private:
  const OptimizerRun r_;  // a copy: nobody else's pointers can reach it
  const std::int64_t buffers_ = r_.rule->gradient_buffers;
  const Rule rule_;
  const V scale_, decay_;
};

template <class Rule, bool decays>
void update_all(const OptimizerRun& r) {
  const Updater<Rule, decays> updater(r);
  const std::int64_t count = r.rule->count;
  std::int64_t i = 0;
  for (; i + width <= count; i += width) updater.update(i, lanes);
  if (i < count) updater.update(i, static_cast<std::size_t>(count - i));
}

template <class Rule>
OptimizerLoop* choose(const Optimizer& o) {
  return o.weight_decay != 0 ? update_all<Rule, true> : update_all<Rule, false>;
}

OptimizerLoop* loop_of(const Optimizer& o) {
  switch (o.rule) {
    case OptimizerRule::sgd: return o.momentum != 0 ? choose<MomentumRule>(o) : choose<SgdRule>(o);
    case OptimizerRule::adam: return choose<AdamRule>(o);
    case OptimizerRule::adamw: return update_all<AdamwRule, false>;
    case OptimizerRule::adamax: return choose<AdamaxRule>(o);
    case OptimizerRule::rmsprop: return choose<RmspropRule>(o);
    case OptimizerRule::adagrad: return choose<AdagradRule>(o);
  }
  return nullptr;
}

// Blocks of 4096 in f32, the blocks in f64.
double sum_of_squares(const float* const* gradients, std::int64_t buffers, std::int64_t count) {
  constexpr std::int64_t block = 4096;
  double total = 0;
  for (std::int64_t first = 0; first < count; first += block) {
    V sum = hn::Zero(f32_tag);
    const std::int64_t end = std::min(first + block, count);
    for (std::int64_t i = first; i < end; i += width) {
      const V g = sum_gradients(gradients, buffers, i, static_cast<std::size_t>(std::min(width, end - i)));
      sum = hn::MulAdd(g, g, sum);
    }
    total += static_cast<double>(sum_of_lanes(sum));
  }
  return total;
}

NormLoop* norm_loop_of() { return sum_of_squares; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loop_of);
HWY_EXPORT(norm_loop_of);

OptimizerLoop* optimizer_loop(const Optimizer& optimizer) {
  return SUPERSTEP_VECTOR_FUNCTION(loop_of)(optimizer);
}
NormLoop* norm_loop() { return SUPERSTEP_VECTOR_FUNCTION(norm_loop_of)(); }

}  // namespace superstep::kernels
#endif
