#include "superstep/target/cpu/kernels/optimizer_loops.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/optimizer_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

// The state of one vector of parameters; each rule reads p, g and the state and writes p and the state.
struct State {
  V p, g, first, second;
};

struct SgdRule {
  static constexpr int states = 0;
  static HWY_INLINE void step(const OptimizerRun& r, State& s) {
    s.p = hn::NegMulAdd(constant(r.scalars.learning_rate), s.g, s.p);
  }
};

struct MomentumRule {
  static constexpr int states = 1;
  static HWY_INLINE void step(const OptimizerRun& r, State& s) {
    const Optimizer& o = *r.rule;
    const V momentum = constant(o.momentum);
    const V later = hn::MulAdd(momentum, s.first, hn::Mul(constant(1 - o.dampening), s.g));
    s.first = r.scalars.step == 1 ? s.g : later;
    const V direction = o.nesterov ? hn::MulAdd(momentum, s.first, s.g) : s.first;
    s.p = hn::NegMulAdd(constant(r.scalars.learning_rate), direction, s.p);
  }
};

HWY_INLINE V rounded(double value) { return constant(static_cast<float>(value)); }

// The first moment, shared by the Adam family.
HWY_INLINE void update_moment(const OptimizerRun& r, State& s) {
  const double beta = r.rule->beta1;
  s.first = hn::MulAdd(rounded(beta), s.first, hn::Mul(rounded(1 - beta), s.g));
}

HWY_INLINE void update_square(const OptimizerRun& r, State& s) {
  const double beta = r.rule->beta2;
  s.second = hn::MulAdd(rounded(beta), s.second, hn::Mul(rounded(1 - beta), hn::Mul(s.g, s.g)));
}

struct AdamRule {
  static constexpr int states = 2;
  static HWY_INLINE void step(const OptimizerRun& r, State& s) {
    update_moment(r, s);
    update_square(r, s);
    const V root = hn::Sqrt(hn::Mul(s.second, constant(r.correction2)));
    const V ratio =
        hn::Div(hn::Mul(s.first, constant(r.correction1)), hn::Add(root, constant(r.rule->epsilon)));
    s.p = hn::NegMulAdd(constant(r.scalars.learning_rate), ratio, s.p);
  }
};

struct AdamwRule {
  static constexpr int states = 2;
  static HWY_INLINE void step(const OptimizerRun& r, State& s) {
    s.p = hn::Mul(s.p, constant(1 - r.scalars.learning_rate * r.rule->weight_decay));
    AdamRule::step(r, s);
  }
};

struct AdamaxRule {
  static constexpr int states = 2;
  static HWY_INLINE void step(const OptimizerRun& r, State& s) {
    update_moment(r, s);
    const V size = hn::Add(hn::Abs(s.g), constant(r.rule->epsilon));
    s.second = hn::Max(hn::Mul(rounded(r.rule->beta2), s.second), size);
    const V rate = constant(r.scalars.learning_rate * r.correction1);
    s.p = hn::NegMulAdd(rate, hn::Div(s.first, s.second), s.p);
  }
};

struct RmspropRule {
  static constexpr int states = 2;  // only the second is used
  static HWY_INLINE void step(const OptimizerRun& r, State& s) {
    update_square(r, s);
    const V ratio = hn::Div(s.g, hn::Add(hn::Sqrt(s.second), constant(r.rule->epsilon)));
    s.p = hn::NegMulAdd(constant(r.scalars.learning_rate), ratio, s.p);
  }
};

struct AdagradRule {
  static constexpr int states = 2;
  static HWY_INLINE void step(const OptimizerRun& r, State& s) {
    s.second = hn::MulAdd(s.g, s.g, s.second);
    const V ratio = hn::Div(s.g, hn::Add(hn::Sqrt(s.second), constant(r.rule->epsilon)));
    s.p = hn::NegMulAdd(constant(r.scalars.learning_rate), ratio, s.p);
  }
};

HWY_INLINE V sum_gradients(const float* const* gradients, std::int64_t buffers, std::int64_t i,
                           std::size_t n) {
  V sum = load_first(gradients[0] + i, n);
  for (std::int64_t k = 1; k < buffers; ++k) sum = hn::Add(sum, load_first(gradients[k] + i, n));
  return sum;
}

template <class Rule, bool decays>
HWY_INLINE void update(const OptimizerRun& r, std::int64_t i, std::size_t n) {
  const V zero = hn::Zero(f32_tag);
  State s{load_first(r.parameters + i, n), sum_gradients(r.gradients, r.rule->gradient_buffers, i, n), zero,
          zero};
  s.g = hn::Mul(s.g, constant(r.scalars.gradient_scale));
  if (decays) s.g = hn::MulAdd(constant(r.rule->weight_decay), s.p, s.g);
  if (Rule::states > 0 && r.first) s.first = load_first(r.first + i, n);
  if (Rule::states > 1) s.second = load_first(r.second + i, n);
  Rule::step(r, s);
  store_first(s.p, r.parameters + i, n);
  if (Rule::states > 0 && r.first) store_first(s.first, r.first + i, n);
  if (Rule::states > 1) store_first(s.second, r.second + i, n);
  if (r.copy) store_first(s.p, r.copy + i, n);
}

template <class Rule, bool decays>
void update_all(const OptimizerRun& r) {
  const std::int64_t count = r.rule->count;
  std::int64_t i = 0;
  for (; i + width <= count; i += width) update<Rule, decays>(r, i, lanes);
  if (i < count) update<Rule, decays>(r, i, static_cast<std::size_t>(count - i));
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
