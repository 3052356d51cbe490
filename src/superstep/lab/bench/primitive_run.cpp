#include "superstep/lab/bench/primitive_run.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

constexpr std::uint64_t x_seed = 11, dy_seed = 12;

std::size_t position(std::span<const target::Executable::Port> ports, std::string_view name) {
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name) return i;
  throw Error(ErrorCode::internal, "a primitive has no such tensor", std::string(name));
}

double reference_flops(const target::PlanSummary& plan) {
  double flops = 0;
  for (const target::PlanStep& step : plan.steps)
    if (step.kernel == target::reference_kernel) flops += step.flops;
  return flops * static_cast<double>(plan.batch) / static_cast<double>(plan.micro_batch);
}

}  // namespace

PrimitiveRun::PrimitiveRun(const Primitive& primitive, const PrimitiveOptions& options,
                           const std::string& target, int threads)
    : primitive_(primitive), options_(options) {
  const Stopwatch watch;
  executable_ = target::find_target(target).compile(
      primitive_graph(primitive, options),
      {.batch = batch_of(primitive), .threads = threads, .measure_steps = options.measure_steps});
  compile_seconds_ = watch.seconds();
  allocate();
}

void PrimitiveRun::allocate() {
  const double scale = is_integer(element_of(options_.precision)) ? 127 : 1;  // bytes over their whole range
  for (const auto& port : executable_->inputs()) {
    inputs_.emplace_back(port.type.element, port.type.shape);
    fill_random(inputs_.back(), port.name == "dy" ? dy_seed : x_seed, scale);
  }
  for (const auto& port : executable_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
}

double PrimitiveRun::reference_share() const {
  const target::PlanSummary plan = summary();
  return plan.flops > 0 ? reference_flops(plan) / plan.flops : 0;
}

const Tensor& PrimitiveRun::input(std::string_view name) const {
  return inputs_[position(executable_->inputs(), name)];
}

const Tensor& PrimitiveRun::output(std::string_view name) const {
  return outputs_[position(executable_->outputs(), name)];
}

double PrimitiveRun::gradient_scale() const {
  const target::PlanSummary plan = summary();
  return static_cast<double>(plan.batch) / static_cast<double>(plan.micro_batch);
}

void PrimitiveRun::keep_dy_of(std::int64_t sample) {
  Tensor& dy = inputs_[position(executable_->inputs(), "dy")];
  const std::size_t row = dy.byte_count() / static_cast<std::size_t>(dy.shape()[0]);
  const std::size_t begin = static_cast<std::size_t>(sample) * row, end = begin + row;
  std::memset(dy.bytes(), 0, begin);
  std::memset(dy.bytes() + end, 0, dy.byte_count() - end);
}

void PrimitiveRun::restore_dy() { fill_random(inputs_[position(executable_->inputs(), "dy")], dy_seed, 1); }

}  // namespace superstep::lab
