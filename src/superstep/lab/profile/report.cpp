#include "superstep/lab/profile/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/lab/profile/drawing.h"
#include "superstep/lab/profile/explain.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }
std::string micro(double seconds) { return fmt::format("{:.2f}", 1e6 * seconds); }

std::string floor_text(const StepProfile& step) {
  return step.floor.seconds() > 0 ? percent(step.share_of_floor()) : "";
}

const Row step_header{"step", "operators", "node",     "kernel", "runs",     "threads", "kFLOP",
                      "kB",   "us",        "floor us", "bound",  "of floor", "of time"};

Row step_row(const Profile& profile, std::size_t i) {
  const StepProfile& step = profile.steps[i];
  return {std::to_string(i + 1),
          shown_op(step.step.op),
          step.step.node,
          step.step.kernel,
          std::to_string(step.executions),
          std::to_string(step.threads),
          fmt::format("{:.1f}", step.step.flops * 1e-3),
          fmt::format("{:.1f}", step.step.bytes * 1e-3),
          micro(step.seconds),
          micro(step.floor.seconds() / step.threads),
          step.floor.seconds() > 0 ? step.floor.bound() : "",
          floor_text(step),
          percent(step.total() / profile.busy_seconds)};
}

std::string flops_per_second(const Profile& profile) {
  return format_si(profile.plan.flops / profile.seconds, "FLOP/s");
}

Rows summary_rows(const Profile& profile) {
  const target::PlanSummary& plan = profile.plan;
  return {
      {"what", fmt::format("{}, {}, {}", profile.name, profile.mode, profile.precision)},
      {"batch",
       fmt::format("{} in micro-batches of {}, {} threads", plan.batch, plan.micro_batch, plan.threads)},
      {"time of a run", format_seconds(profile.seconds) + ", the median"},
      {"with clocks around steps", format_seconds(profile.measured_seconds)},
      {"samples per second", format_count(profile.throughput())},
      {"operations", fmt::format("{} a run, {}", format_si(plan.flops, "FLOP"), flops_per_second(profile))},
      {"share of the floor", percent(profile.share_of_floor())},
      {"memory", fmt::format("{} of activations, {} of gradients, {} of state",
                             format_bytes(static_cast<double>(plan.activation_bytes)),
                             format_bytes(static_cast<double>(plan.gradient_bytes)),
                             format_bytes(static_cast<double>(plan.state_bytes)))},
      {"compiled in", format_seconds(plan.compile_seconds)},
  };
}

Rows machine_rows(const MachineFloor& machine) {
  Rows rows;
  const auto add_peak = [&](const char* name, double rate) {
    if (rate > 0) rows.push_back({name, format_si(rate, "FLOP/s"), ""});
  };
  add_peak("f32 multiply-adds", machine.f32_flops);
  add_peak("bf16 products", machine.bf16_flops);
  add_peak("int8 products", machine.i8_flops);
  for (const LevelBandwidth& level : machine.levels) {
    const bool last = &level == &machine.levels.back();
    rows.push_back(
        {level.name, format_si(level.bytes_per_second, "B/s"),
         last ? "everything larger" : "steps of up to " + format_bytes(static_cast<double>(level.capacity))});
  }
  return rows;
}

constexpr const char* floor_note =
    "The floor of a step is the larger of two times: its operations at the peak, and the bytes that it must "
    "read and write once at the bandwidth of the nearest memory that could hold them all. Both were measured "
    "on this machine just before, for one thread while all threads were busy; the best of several short "
    "trials, so that a share of a few percent above 100 is noise. A multiply-add counts two operations; an "
    "algorithm that needs fewer than the textbook's, as Winograd's of convolutions, may lie well above 100. "
    "Bytes are those of the operands, not counted by the "
    "processor.";

// What the measuring itself took, so that nobody looks for it among the steps.
std::string clock_note(const Profile& profile) {
  double executions = 0;
  for (const StepProfile& step : profile.steps) executions += static_cast<double>(step.executions);
  const double readings = 2 * executions, cost = profile.measured_seconds - profile.seconds;
  return fmt::format(
      "Times of steps come from runs with two readings of the clock around each of their {} steps: {} of {} "
      "each "
      "reading, {} of a run on one thread. Runs with and without them took turns: with them a run took {}, "
      "without {}, {}. Rates and shares on this page are of the runs without.",
      format_count(executions), format_count(readings), format_seconds(profile.clock_seconds),
      format_seconds(readings * profile.clock_seconds), format_seconds(profile.measured_seconds),
      format_seconds(profile.seconds),
      cost > 0 ? fmt::format("{} more", percent(cost / profile.seconds))
               : std::string("no more than the runs differ among themselves"));
}

// The steps that take half of the time together.
std::vector<std::size_t> longest_steps(const Profile& profile) {
  std::vector<std::size_t> order(profile.steps.size()), longest;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return profile.steps[i].total(); });
  double so_far = 0;
  for (const std::size_t i : order) {
    if (so_far >= profile.busy_seconds / 2) break;
    so_far += profile.steps[i].total();
    longest.push_back(i);
  }
  return longest;
}

// Refusals of the same reason are said once.
Rows refusal_rows(const Profile& profile) {
  Rows rows;
  for (const RefusedSteps& refused : refused_steps(profile.steps))
    rows.push_back({refused.steps, refused.refusal});
  return rows;
}

// The first micro-batch of the first thread.
std::vector<target::StepEvent> first_micro_batch(const Profile& profile) {
  std::vector<target::StepEvent> events;
  for (const target::StepEvent& event : profile.timeline.events) {
    if (event.thread != 0 || event.micro_batch < 0) continue;
    if (!events.empty() && event.micro_batch != events.front().micro_batch) continue;
    events.push_back(event);
  }
  return events;
}

void add_timelines(page::Page& page, const Profile& profile) {
  page.heading("Timeline");
  page.paragraph("The measured run whose time is the median. What is empty the threads spent between steps.");
  page.raw(
      "<p>To walk through it step by step, open <a href=\"trace.json\">trace.json</a>, beside this page, in "
      "Perfetto (ui.perfetto.dev, \"Open trace file\"; the file stays on this computer).</p>\n");
  page.raw(draw_timeline(profile, profile.timeline.events, 0, profile.timeline.seconds));
  page.raw(draw_legend(profile));
  const auto events = first_micro_batch(profile);
  if (events.empty() || events.size() == profile.timeline.events.size()) return;
  page.paragraph("Its first micro-batch:");
  page.raw(draw_timeline(profile, events, events.front().begin, events.back().begin + events.back().seconds));
}

}  // namespace

void write_profile_page(const Profile& profile, const std::filesystem::path& path,
                        const std::string& processor) {
  page::Page page(fmt::format("Profile of {}, {}, {}, batch {} on {}", profile.name, profile.mode,
                              profile.precision, profile.plan.batch,
                              processor.empty() ? std::string("this machine") : processor));
  page.begin_row().begin_column().facts(summary_rows(profile)).paragraph(clock_note(profile)).end_column();
  page.begin_column().heading("Time by operator", 3).bars(operator_bars(profile));
  page.paragraph(
      "All steps of a run, all threads together. The full part of a bar is the floor: the least time that "
      "the steps could take on this machine.");
  page.end_column().end_row();
  add_timelines(page, profile);
  page.heading("Steps");
  page.paragraph(
      "Times are of one execution, the median over all measured runs; 'runs' counts executions in one run, "
      "'threads' those that share one. Half of all time is in the steps that stand out.");
  Rows rows;
  for (std::size_t i = 0; i < profile.steps.size(); ++i) rows.push_back(step_row(profile, i));
  page.table(step_header, rows, longest_steps(profile));
  page.heading("What this machine can do, a thread").begin_row();
  page.table({"", "measured", "used for"}, machine_rows(profile.machine)).paragraph(floor_note).end_row();
  if (const Rows refusals = refusal_rows(profile); !refusals.empty()) {
    page.heading("Why faster kernels were not taken");
    page.table({"steps", "kernel and reason"}, refusals);
  }
  page.write(path);
}

std::string profile_text(const Profile& profile, std::size_t most_steps) {
  std::string text = fmt::format(
      "{} {}, {}: batch {} in micro-batches of {}, {} threads\n{} a run, {} samples/s, {}; {} of the floor "
      "(measured: f32 {}, {} {} a thread)\n",
      profile.name, profile.mode, profile.precision, profile.plan.batch, profile.plan.micro_batch,
      profile.plan.threads, format_seconds(profile.seconds), format_count(profile.throughput()),
      flops_per_second(profile), percent(profile.share_of_floor()),
      format_si(profile.machine.f32_flops, "FLOP/s"), profile.machine.levels.front().name,
      format_si(profile.machine.levels.front().bytes_per_second, "B/s"));
  std::vector<std::size_t> order(profile.steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return profile.steps[i].total(); });
  TextTable table({"step", "operators", "node", "runs", "threads", "us", "floor us", "bound", "of floor",
                   "of time", "kernel"});
  for (std::size_t i = 0; i < std::min(most_steps, order.size()); ++i) {
    const Row row = step_row(profile, order[i]);
    table.add_row(
        {row[0], row[1], row[2], row[4], row[5], row[8], row[9], row[10], row[11], row[12], row[3]});
  }
  text += table.to_string();
  if (order.size() > most_steps)
    text +=
        fmt::format("and {} shorter steps: --out writes them all, and why faster kernels were not taken\n",
                    order.size() - most_steps);
  return text;
}

std::vector<Metric> profile_metrics(const Profile& profile) {
  const double rate = profile.plan.flops / profile.seconds;
  const auto metric = [](const char* name, double value, const char* unit) {
    return Metric{.name = name, .value = value, .unit = unit, .samples = {}};
  };
  return {metric("step_time", profile.seconds, "s"),
          metric("throughput", profile.throughput(), "samples/s"),
          metric("flops_rate", rate, "FLOP/s"),
          metric("compute_utilization", rate / (profile.machine.f32_flops * profile.plan.threads), ""),
          metric("share_of_floor", profile.share_of_floor(), ""),
          metric("compile_time", profile.plan.compile_seconds, "s")};
}

}  // namespace superstep::lab
