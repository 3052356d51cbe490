#include "superstep/lab/profile/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

using target::PlanPart;
using target::PlanStep;

std::string bytes_text(std::size_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::vector<StepProfile> steps_of(const target::PlanSummary& plan, const MachineFloor* machine) {
  std::vector<StepProfile> steps;
  for (const auto* part : {&plan.prepare, &plan.steps, &plan.update})
    for (const PlanStep& step : *part)
      steps.push_back({.step = step,
                       .executions = step.executions,
                       .threads = step.threads,
                       .seconds = step.seconds,
                       .floor = machine ? floor_of(step, *machine) : StepFloor()});
  return steps;
}

double sum_of(const std::vector<StepProfile>& steps, const std::function<double(const StepProfile&)>& term) {
  double sum = 0;
  for (const StepProfile& step : steps) sum += term(step);
  return sum;
}

// The longest steps that take half of the time together.
std::vector<bool> longest(const std::vector<StepProfile>& steps, double busy) {
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return steps[i].total(); });
  std::vector<bool> marked(steps.size(), false);
  double so_far = 0;
  for (const std::size_t i : order) {
    if (so_far >= busy / 2) break;
    so_far += steps[i].total();
    marked[i] = true;
  }
  return marked;
}

std::string share_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

// Numbers that follow each other as one: "2 to 5, 9, 10".
std::string ranges(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last < i + 2) last = i;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format(" to {}", numbers[last]);
    i = last + 1;
  }
  return text;
}

class Table {
 public:
  Table(const target::PlanSummary& plan, const MachineFloor* machine)
      : machine_(machine),
        micro_batches_(plan.batch / std::max<std::int64_t>(1, plan.micro_batch)),
        steps_(steps_of(plan, machine)),
        busy_(sum_of(steps_, &StepProfile::total)),
        marked_(longest(steps_, busy_)) {}

  std::string text() const {
    std::string text = part_text(PlanPart::prepare, "once, when parameters have changed");
    text += part_text(PlanPart::body, fmt::format("for each of {} micro-batches", micro_batches_));
    text += part_text(PlanPart::update, "once per run, after the micro-batches");
    return text + totals();
  }
  const std::vector<StepProfile>& steps() const { return steps_; }

 private:
  // Numbers first: what wraps in a narrow window is the kernel.
  std::string part_text(PlanPart part, const std::string& when) const {
    TextTable table({"", "step", "MFLOP", "kB", "runs", "us", "GFLOP/s", "of floor", "bound", "of time",
                     "operators", "node", "kernel"});
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].step.part == part) table.add_row(row(i));
    return table.empty() ? "" : fmt::format("\n{}\n{}", when, table.to_string());
  }

  std::vector<std::string> row(std::size_t i) const {
    const StepProfile& profile = steps_[i];
    const PlanStep& step = profile.step;
    const bool timed = step.seconds > 0, has_floor = timed && machine_ && profile.floor.seconds() > 0;
    return {marked_[i] ? "*" : "",
            std::to_string(i + 1),
            fmt::format("{:.3f}", step.flops * 1e-6),
            fmt::format("{:.1f}", step.bytes * 1e-3),
            timed ? std::to_string(step.executions) : "",
            timed ? fmt::format("{:.1f}", step.seconds * 1e6) : "",
            timed && step.flops > 0 ? fmt::format("{:.1f}", step.flops / step.seconds * 1e-9) : "",
            has_floor ? share_text(profile.share_of_floor()) : "",
            has_floor ? profile.floor.bound() : "",
            timed && busy_ > 0 ? share_text(profile.total() / busy_) : "",
            step.op,
            step.node,
            step.kernel};
  }

  std::string totals() const {
    const auto of_run = [&](double PlanStep::*what) {
      return sum_of(steps_, [&](const StepProfile& profile) {
        const bool in_body = profile.step.part == PlanPart::body;
        return profile.step.*what * static_cast<double>(in_body ? micro_batches_ : 1);
      });
    };
    std::string text =
        fmt::format("\nin all: {} steps, {} and {} per run", steps_.size(),
                    format_si(of_run(&PlanStep::flops), "FLOP"), format_bytes(of_run(&PlanStep::bytes)));
    if (busy_ <= 0) return text + "\n" + by_definition();
    text += fmt::format(", {} of all threads' time in them", format_seconds(busy_));
    if (machine_)
      text += fmt::format(", {} of the floor", share_text(sum_of(steps_, &StepProfile::total_floor) / busy_));
    return text + "; * marks the longest steps, half of that time together\n" + by_definition();
  }

  // Steps that no kernel takes: slow, and so worth saying of a model that is.
  std::string by_definition() const {
    std::vector<std::size_t> numbers;
    double seconds = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].step.kernel != target::reference_kernel) continue;
      numbers.push_back(i + 1);
      seconds += steps_[i].total();
    }
    if (numbers.empty()) return "";
    return fmt::format("without a kernel, one element at a time: {} of {} steps{} (step{} {})\n",
                       numbers.size(), steps_.size(),
                       busy_ > 0 ? ", " + share_text(seconds / busy_) + " of the time" : "",
                       numbers.size() == 1 ? "" : "s", ranges(numbers));
  }

  const MachineFloor* machine_;
  std::int64_t micro_batches_;
  std::vector<StepProfile> steps_;
  double busy_;
  std::vector<bool> marked_;
};

std::string head(const target::PlanSummary& plan) {
  std::string text = fmt::format(
      "plan: batch {} in micro-batches of {}, {} threads; {} per run; activations {} "
      "(micro-batches at a time: {}), gradients {}, state {}; compiled in {}\n",
      plan.batch, plan.micro_batch, plan.threads, format_si(plan.flops, "FLOP"),
      bytes_text(plan.activation_bytes), plan.at_a_time, bytes_text(plan.gradient_bytes),
      bytes_text(plan.state_bytes), format_seconds(plan.compile_seconds));
  if (!plan.choice.empty()) text += fmt::format("micro-batch: {}\n", plan.choice);
  if (plan.plan_bytes > 0) text += fmt::format("memory of the plan: {}\n", bytes_text(plan.plan_bytes));
  return text;
}

std::string floor_text(const MachineFloor& machine) {
  std::string text =
      fmt::format("floor, measured just now, a thread: f32 {}", format_si(machine.f32_flops, "FLOP/s"));
  if (machine.bf16_flops > 0) text += fmt::format(", bf16 {}", format_si(machine.bf16_flops, "FLOP/s"));
  if (machine.i8_flops > 0) text += fmt::format(", int8 {}", format_si(machine.i8_flops, "FLOP/s"));
  for (const LevelBandwidth& level : machine.levels)
    text += fmt::format(", {} {}", level.name, format_si(level.bytes_per_second, "B/s"));
  return text +
         "\n  'of floor': the larger of a step's operations at that peak and its bytes at the bandwidth of "
         "the "
         "nearest memory\n  that holds them all, over the time it took; 'bound' says which of the two it "
         "is\n";
}

}  // namespace

bool is_timed(const target::PlanSummary& plan) {
  return std::ranges::any_of(plan.steps, [](const PlanStep& step) { return step.seconds > 0; });
}

std::vector<RefusedSteps> refused_steps(const std::vector<StepProfile>& steps) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> found;
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (const std::string& refusal : steps[i].step.refusals) {
      auto same = std::ranges::find(found, refusal, [](const auto& entry) { return entry.first; });
      if (same == found.end()) same = found.insert(found.end(), {refusal, {}});
      if (same->second.empty() || same->second.back() != i + 1) same->second.push_back(i + 1);
    }
  std::vector<RefusedSteps> refused;
  for (const auto& [refusal, numbers] : found) refused.push_back({refusal, ranges(numbers)});
  return refused;
}

std::string explain(const target::PlanSummary& plan, const MachineFloor* machine) {
  const Table table(plan, machine);
  std::string text = head(plan) + (machine ? floor_text(*machine) : "") + table.text();
  const std::vector<RefusedSteps> refusals = refused_steps(table.steps());
  if (refusals.empty()) return text;
  TextTable reasons({"faster kernel and why not", "at"});
  for (const RefusedSteps& refused : refusals) reasons.add_row({refused.refusal, "steps " + refused.steps});
  return text + "\n" + reasons.to_string();
}

}  // namespace superstep::lab
