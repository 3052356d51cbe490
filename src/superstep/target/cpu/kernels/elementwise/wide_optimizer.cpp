#include "superstep/target/cpu/kernels/elementwise/wide_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace superstep::kernels {

namespace {

constexpr std::int64_t parameters_a_part = 4096;

// As many parameters from the pointers on, with what a step knows.
template <class G>
struct Run {
  double* p;
  const G* g;
  double *first, *second;                 // null where the rule has none
  double rate, correction1, correction2;  // 1 - beta^t
  std::int64_t count;
};

template <class G>
void step_sgd(const WideOptimizer& o, const Run<G>& r) {
  for (std::int64_t i = 0; i < r.count; ++i)
    r.p[i] -= r.rate * (static_cast<double>(r.g[i]) + o.weight_decay * r.p[i]);
}

template <class G>
void step_momentum(const WideOptimizer& o, const Run<G>& r) {
  for (std::int64_t i = 0; i < r.count; ++i) {
    const double g = static_cast<double>(r.g[i]) + o.weight_decay * r.p[i];
    const double v = o.momentum * r.first[i] + g;
    r.first[i] = v;
    r.p[i] -= r.rate * (o.nesterov ? g + o.momentum * v : v);
  }
}

template <class G>
void step_adam(const WideOptimizer& o, const Run<G>& r) {
  const bool decoupled = o.rule == OptimizerRule::adamw;
  const double coupled = decoupled ? 0 : o.weight_decay, taken = decoupled ? o.weight_decay : 0;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const double g = static_cast<double>(r.g[i]) + coupled * r.p[i];
    const double m = o.beta1 * r.first[i] + (1 - o.beta1) * g;
    const double v = o.beta2 * r.second[i] + (1 - o.beta2) * g * g;
    r.first[i] = m, r.second[i] = v;
    const double direction = m / r.correction1 / (std::sqrt(v / r.correction2) + o.epsilon);
    r.p[i] -= r.rate * (direction + taken * r.p[i]);
  }
}

template <class G>
void step_adamax(const WideOptimizer& o, const Run<G>& r) {
  for (std::int64_t i = 0; i < r.count; ++i) {
    const double g = static_cast<double>(r.g[i]) + o.weight_decay * r.p[i];
    r.first[i] = o.beta1 * r.first[i] + (1 - o.beta1) * g;
    r.second[i] = std::max(o.beta2 * r.second[i], std::abs(g) + o.epsilon);
    r.p[i] -= r.rate * r.first[i] / (r.correction1 * r.second[i]);
  }
}

template <class G>
void step_rmsprop(const WideOptimizer& o, const Run<G>& r) {
  for (std::int64_t i = 0; i < r.count; ++i) {
    const double g = static_cast<double>(r.g[i]) + o.weight_decay * r.p[i];
    r.second[i] = o.beta2 * r.second[i] + (1 - o.beta2) * g * g;
    double step = r.rate * g / std::sqrt(r.second[i] + o.epsilon);
    if (r.first) step = r.first[i] = o.momentum * r.first[i] + step;
    r.p[i] -= step;
  }
}

bool has_first(const WideOptimizer& o) {
  return o.rule == OptimizerRule::sgd || o.rule == OptimizerRule::rmsprop ? o.momentum != 0 : true;
}
bool has_second(const WideOptimizer& o) { return o.rule != OptimizerRule::sgd; }
bool has_step(const WideOptimizer& o) {
  return o.rule != OptimizerRule::sgd && o.rule != OptimizerRule::rmsprop;
}

template <class G>
void step(const WideOptimizer& o, const Run<G>& r) {
  switch (o.rule) {
    case OptimizerRule::sgd: return o.momentum != 0 ? step_momentum(o, r) : step_sgd(o, r);
    case OptimizerRule::adam:
    case OptimizerRule::adamw: return step_adam(o, r);
    case OptimizerRule::adamax: return step_adamax(o, r);
    case OptimizerRule::rmsprop: return step_rmsprop(o, r);
    case OptimizerRule::adagrad: return;  // refused
  }
}

class WideOptimizerKernel final : public Kernel {
 public:
  WideOptimizerKernel(KernelInfo info, const WideOptimizer& optimizer)
      : Kernel(std::move(info)), o_(optimizer) {
    info_.parts = std::clamp<std::int64_t>(o_.count / parameters_a_part, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_range(arguments, {0, o_.count}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(o_.count, part, info_.parts));
  }

 private:
  void run_range(const Arguments& arguments, PartRange range) const {
    o_.gradient == ElementType::f32 ? step(o_, run_of<float>(arguments, range))
                                    : step(o_, run_of<double>(arguments, range));
  }

  template <class G>
  Run<G> run_of(const Arguments& arguments, PartRange range) const {
    std::size_t next = 1;
    const auto take = [&](bool present) {
      return present ? static_cast<double*>(arguments.outputs[next++]) + range.begin : nullptr;
    };
    const void* const rate = arguments.inputs[0];
    Run<G> run{};
    run.p = static_cast<double*>(arguments.outputs[0]) + range.begin;
    run.g = static_cast<const G*>(arguments.inputs[1]) + range.begin;
    run.first = take(has_first(o_));
    run.second = take(has_second(o_));
    run.rate = o_.rate == ElementType::f64 ? *static_cast<const double*>(rate)
                                           : static_cast<double>(*static_cast<const float*>(rate));
    run.count = range.end - range.begin;
    if (has_step(o_)) {
      const auto t = static_cast<double>(*static_cast<const std::int64_t*>(arguments.inputs[2]) + 1);
      run.correction1 = 1 - std::pow(o_.beta1, t), run.correction2 = 1 - std::pow(o_.beta2, t);
    }
    return run;
  }

  WideOptimizer o_;
};

std::string fault_of(const WideOptimizer& o) {
  if (o.count < 0) return "the number of parameters is negative";
  if (o.rule == OptimizerRule::adagrad) return "there is no such rule in f64";
  if (o.gradient != ElementType::f32 && o.gradient != ElementType::f64)
    return "the gradient is not f32 or f64";
  if (o.rate != ElementType::f32 && o.rate != ElementType::f64) return "the learning rate is not f32 or f64";
  if (o.nesterov && o.momentum == 0) return "Nesterov's method needs a momentum";
  return {};
}

}  // namespace

std::size_t state_arrays(const WideOptimizer& optimizer) {
  return (has_first(optimizer) ? 1u : 0u) + (has_second(optimizer) ? 1u : 0u);
}

Prepared prepare(const WideOptimizer& optimizer) {
  if (std::string fault = fault_of(optimizer); !fault.empty()) return refuse("optimizer of f64", fault);
  const auto count = static_cast<double>(optimizer.count),
             states = static_cast<double>(state_arrays(optimizer));
  KernelInfo info;
  info.name = fmt::format("optimizer of f64, {} parameters", optimizer.count);
  info.flops = count * (3 + 6 * states);
  info.bytes = count * (16 + 16 * states + static_cast<double>(size_in_bytes(optimizer.gradient)));
  info.inputs = has_step(optimizer) ? 3 : 2;
  info.outputs = 1 + state_arrays(optimizer);
  return std::make_unique<WideOptimizerKernel>(std::move(info), optimizer);
}

}  // namespace superstep::kernels
