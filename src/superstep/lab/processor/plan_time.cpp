#include "superstep/lab/processor/plan_time.h"

#include <fmt/format.h>

#include <algorithm>

namespace superstep::lab {
namespace {

using target::PlanPart;
using target::PlanStep;
using target::PlanSummary;

std::size_t micro_batches_of(const PlanSummary& plan) {
  return static_cast<std::size_t>(plan.batch / std::max<std::int64_t>(1, plan.micro_batch));
}

std::size_t groups_of(const PlanSummary& plan) {
  return std::clamp<std::size_t>(plan.groups, 1, micro_batches_of(plan));
}

// Of the body: threads that go through it side by side, each with micro-batches of its own.
int side_by_side(const PlanSummary& plan) {
  return static_cast<int>(std::min<std::size_t>(groups_of(plan), static_cast<std::size_t>(plan.threads)));
}

// Micro-batches that the thread with the most of them takes.
double longest_queue(const PlanSummary& plan) {
  const std::size_t groups = groups_of(plan), threads = static_cast<std::size_t>(side_by_side(plan));
  const std::size_t a_group = (micro_batches_of(plan) + groups - 1) / groups;
  if (groups >= 2 * threads)  // groups are claimed as threads come free: the rest evens out
    return static_cast<double>(micro_batches_of(plan)) / static_cast<double>(threads);
  return static_cast<double>((groups + threads - 1) / threads * a_group);
}

double all_of(const std::vector<PlanStep>& steps, const PlanSummary& plan, const StepSeconds& seconds) {
  double sum = 0;
  for (const PlanStep& step : steps) sum += seconds(asked_of(step, plan));
  return sum;
}

}  // namespace

namespace {

// A kernel that evaluates any operator says nothing about its time unless the operator is named.
std::string described(const PlanStep& step) {
  const std::string text = fmt::format("{} {}", name_of(step.arithmetic), step.kernel);
  return step.kernel == target::reference_kernel ? fmt::format("{}, {}", text, step.op) : text;
}

}  // namespace

machine::KernelTime asked_of(const PlanStep& step, const PlanSummary& plan) {
  const double shared = static_cast<double>(plan.state_bytes + plan.constant_bytes);
  const double own = static_cast<double>(plan.activation_bytes) /
                     static_cast<double>(std::max<std::size_t>(1, plan.at_a_time));
  return {.kernel = described(step),
          .flops = step.flops,
          .bytes = step.bytes,
          .working_set = own + shared,
          .sharing = step.threads,
          .busy = step.part == PlanPart::body ? std::max(step.threads, side_by_side(plan)) : step.threads,
          .seconds = 0};
}

PlanTime plan_time(const PlanSummary& plan, bool trains, const StepSeconds& seconds) {
  PlanTime time;
  const double queue = longest_queue(plan), all = static_cast<double>(micro_batches_of(plan));
  for (const PlanStep& step : plan.steps) {
    // What threads share they do for all micro-batches, one after the other.
    const double turns = step.threads > 1 ? all : queue;
    time.body += turns * seconds(asked_of(step, plan));
    time.executions += turns;
  }
  if (trains) {
    time.prepare = all_of(plan.prepare, plan, seconds);
    time.executions += static_cast<double>(plan.prepare.size());
  }
  time.update = all_of(plan.update, plan, seconds);
  time.executions += static_cast<double>(plan.update.size());
  return time;
}

}  // namespace superstep::lab
