#include "superstep/cli/explain.h"

#include <fmt/format.h>

#include "superstep/base/text.h"

namespace superstep::cli {

std::string explain(const target::PlanSummary& plan) {
  std::string text = fmt::format(
      "plan: batch {} in micro-batches of {}, {} threads; {} a run; arena {} a thread, gradients {}, state "
      "{}; compiled in {}\n",
      plan.batch, plan.micro_batch, plan.threads, format_si(plan.flops, "FLOP"),
      format_bytes(static_cast<double>(plan.activation_bytes)),
      format_bytes(static_cast<double>(plan.gradient_bytes)),
      format_bytes(static_cast<double>(plan.state_bytes)), format_seconds(plan.compile_seconds));
  if (!plan.choice.empty()) text += fmt::format("micro-batch: {}\n", plan.choice);
  if (plan.plan_bytes > 0)
    text += fmt::format("memory of the plan: {}\n", format_bytes(static_cast<double>(plan.plan_bytes)));
  TextTable table({"step", "operators", "node", "kernel", "MFLOP", "kB", "us", "GFLOP/s"});
  int number = 0;
  for (const target::PlanStep& step : plan.steps) {
    const bool timed = step.seconds > 0;
    table.add_row({std::to_string(++number), step.op, step.node, step.kernel,
                   fmt::format("{:.3f}", step.flops * 1e-6), fmt::format("{:.1f}", step.bytes * 1e-3),
                   timed ? fmt::format("{:.1f}", step.seconds * 1e6) : "",
                   timed && step.flops > 0 ? fmt::format("{:.1f}", step.flops / step.seconds * 1e-9) : ""});
  }
  text += table.to_string();
  number = 0;
  for (const target::PlanStep& step : plan.steps) {
    ++number;
    for (const std::string& refusal : step.refusals)
      text += fmt::format("step {} refused by {}\n", number, refusal);
  }
  return text;
}

}  // namespace superstep::cli
