#include "superstep/target/cpu/kernels/elementwise/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/target/cpu/kernels/elementwise/optimizer_loops.h"

namespace superstep::kernels {

namespace {

const char* name_of(OptimizerRule rule) {
  static constexpr const char* names[] = {"sgd", "adam", "adamw", "adamax", "rmsprop", "adagrad"};
  return names[static_cast<int>(rule)];
}

bool has_first(const Optimizer& o) {
  if (o.rule == OptimizerRule::sgd || o.rule == OptimizerRule::rmsprop) return o.momentum != 0;
  return o.rule != OptimizerRule::adagrad;
}

bool has_second(const Optimizer& o) { return o.rule != OptimizerRule::sgd; }

float correction(double beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(step))));
}

class OptimizerKernel final : public Kernel {
 public:
  OptimizerKernel(KernelInfo info, const Optimizer& optimizer)
      : Kernel(std::move(info)), o_(optimizer), loop_(optimizer_loop(optimizer)) {
    if (o_.gradient_buffers <= most_buffers)
      info_.parts = std::clamp<std::int64_t>(o_.count / parameters_a_part, 1, most_parts);
  }

  void run(const Arguments& arguments) const override {
    loop_(run_of(arguments, o_, reinterpret_cast<const float* const*>(arguments.inputs.data() + 1), 0));
  }

  void run_part(const Arguments& arguments, std::int64_t part) const override {
    if (info_.parts == 1) return run(arguments);
    const PartRange range = part_range(o_.count, part, info_.parts);
    std::array<const float*, most_buffers> gradients;
    for (std::int64_t i = 0; i < o_.gradient_buffers; ++i)
      gradients[static_cast<std::size_t>(i)] =
          static_cast<const float*>(arguments.inputs[static_cast<std::size_t>(i) + 1]) + range.begin;
    Optimizer piece = o_;
    piece.count = range.end - range.begin;
    loop_(run_of(arguments, piece, gradients.data(), range.begin));
  }

 private:
  static constexpr std::int64_t most_buffers = 16, parameters_a_part = 4096;

  OptimizerRun run_of(const Arguments& arguments, const Optimizer& piece, const float* const* gradients,
                      std::int64_t first) const {
    const auto& scalars = *static_cast<const OptimizerScalars*>(arguments.inputs[0]);
    std::size_t next = 1;
    const auto take = [&](bool present) {
      return present ? static_cast<float*>(arguments.outputs[next++]) + first : nullptr;
    };
    OptimizerRun run{&piece, scalars, correction(o_.beta1, scalars.step), correction(o_.beta2, scalars.step)};
    run.gradients = gradients;
    run.parameters = static_cast<float*>(arguments.outputs[0]) + first;
    run.first = take(has_first(o_));
    run.second = take(has_second(o_));
    if (o_.bf16_copy) run.copy = static_cast<bf16*>(arguments.outputs[next]) + first;
    return run;
  }

  Optimizer o_;
  OptimizerLoop* loop_;
};

class GradientNormKernel final : public Kernel {
 public:
  GradientNormKernel(KernelInfo info, const GradientNorm& norm)
      : Kernel(std::move(info)), norm_(norm), loop_(norm_loop()) {}

  void run(const Arguments& arguments) const override {
    const auto* gradients = reinterpret_cast<const float* const*>(arguments.inputs.data());
    *static_cast<double*>(arguments.outputs[0]) = loop_(gradients, norm_.gradient_buffers, norm_.count);
  }

 private:
  GradientNorm norm_;
  NormLoop* loop_;
};

std::string fault_of(const Optimizer& o) {
  if (o.count < 0) return "the number of parameters is negative";
  if (o.gradient_buffers < 1) return "there is no gradient";
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    return "Nesterov's method needs a momentum and no dampening";
  return {};
}

}  // namespace

std::size_t state_arrays(const Optimizer& optimizer) {
  return (has_first(optimizer) ? 1u : 0u) + (has_second(optimizer) ? 1u : 0u);
}

Prepared prepare(const Optimizer& optimizer) {
  if (std::string fault = fault_of(optimizer); !fault.empty()) return refuse("optimizer", fault);
  const std::size_t states = state_arrays(optimizer);
  const auto count = static_cast<double>(optimizer.count),
             buffers = static_cast<double>(optimizer.gradient_buffers);
  KernelInfo info;
  info.name = fmt::format("{}, {} parameters", name_of(optimizer.rule), optimizer.count);
  info.flops = count * (buffers + 2 + 6 * static_cast<double>(states));
  info.bytes = count * (4 * buffers + 8 + 8 * static_cast<double>(states) + (optimizer.bf16_copy ? 2 : 0));
  info.inputs = 1 + static_cast<std::size_t>(optimizer.gradient_buffers);
  info.outputs = 1 + states + (optimizer.bf16_copy ? 1 : 0);
  return std::make_unique<OptimizerKernel>(std::move(info), optimizer);
}

Prepared prepare(const GradientNorm& norm) {
  if (norm.count < 0 || norm.gradient_buffers < 1) return refuse("gradient norm", "there is no gradient");
  KernelInfo info;
  const double elements = static_cast<double>(norm.count) * static_cast<double>(norm.gradient_buffers);
  info.name = fmt::format("sum of squares, {} gradients", norm.count);
  info.flops = elements + static_cast<double>(norm.count);
  info.bytes = 4 * elements;
  info.inputs = static_cast<std::size_t>(norm.gradient_buffers);
  info.outputs = 1;
  return std::make_unique<GradientNormKernel>(std::move(info), norm);
}

}  // namespace superstep::kernels
