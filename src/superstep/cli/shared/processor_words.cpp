#include "superstep/cli/shared/processor_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"

namespace superstep::cli {
namespace {

std::string steps_text(const lab::ProcessorPrediction& prediction) {
  const bool measured = std::ranges::any_of(prediction.steps, [](const auto& of) { return of.measured > 0; });
  std::vector<std::string> head{"step", "operators", "node", "MFLOP", "kB", "threads", "us"};
  if (measured) head.emplace_back("here us");
  head.emplace_back("kernel");
  TextTable table(head);
  std::size_t number = 0;
  for (const lab::ProcessorStep& of : prediction.steps) {
    std::vector<std::string> row{fmt::format("{}", ++number),
                                 of.step.op,
                                 of.step.node,
                                 fmt::format("{:.3f}", of.step.flops * 1e-6),
                                 fmt::format("{:.1f}", of.step.bytes * 1e-3),
                                 fmt::format("{}", of.step.threads),
                                 fmt::format("{:.1f}", of.seconds * 1e6)};
    if (measured) row.push_back(of.measured > 0 ? fmt::format("{:.1f}", of.measured * 1e6) : "-");
    row.push_back(of.step.kernel + (of.known ? "" : " (not measured)"));
    table.add_row(row);
  }
  return table.to_string() + "\n";
}

const char* part_name(target::PlanPart part) {
  switch (part) {
    case target::PlanPart::prepare: return "prepare";
    case target::PlanPart::body: return "micro-batch";
    case target::PlanPart::update: return "update";
  }
  return "";
}

// What each step's time was asked by, for who wants to know where a prediction is off.
nlohmann::json steps_json(const lab::ProcessorPrediction& prediction) {
  nlohmann::json steps = nlohmann::json::array();
  for (const lab::ProcessorStep& of : prediction.steps) {
    const machine::KernelTime asked = lab::asked_of(of.step, prediction.plan);
    steps.push_back({{"node", of.step.node},
                     {"part", part_name(of.step.part)},
                     {"kernel", asked.kernel},
                     {"flops", asked.flops},
                     {"bytes", asked.bytes},
                     {"working_set", asked.working_set},
                     {"sharing", asked.sharing},
                     {"busy", asked.busy},
                     {"known", of.known},
                     {"seconds", of.seconds},
                     {"measured", of.measured}});
  }
  return steps;
}

}  // namespace

std::string processor_text(const std::string& what, const machine::Machine& machine,
                           const lab::ProcessorPrediction& prediction, bool explain) {
  const target::PlanSummary& plan = prediction.plan;
  std::string text = fmt::format("predicted: {} on {}, batch {} in micro-batches of {}, {} threads\n", what,
                                 machine.name(), plan.batch, plan.micro_batch, plan.threads);
  if (explain) text += steps_text(prediction);
  text += fmt::format("memory of the plan   {} of {}\n", format_bytes(prediction.memory),
                      format_bytes(prediction.memory_limit));
  if (!prediction.fits()) return text + "it does not fit: no time is given. Try a smaller --batch\n";
  const double up = std::exp(prediction.uncertainty), samples = static_cast<double>(plan.batch);
  const auto interval = [&](double value, const char* unit) {
    return fmt::format("{} ({} to {}, 80 %)", format_si(value, unit), format_si(value / up, unit),
                       format_si(value * up, unit));
  };
  text += fmt::format("throughput           {}\nstep                 {} for {} samples\n",
                      interval(samples / prediction.seconds, "samples/s"), interval(prediction.seconds, "s"),
                      plan.batch);
  text += fmt::format("  of which: prepared weights {}, micro-batches {}, update {}\n",
                      format_seconds(prediction.parts.prepare), format_seconds(prediction.parts.body),
                      format_seconds(prediction.parts.update));
  text +=
      fmt::format("ladder: at peak {}, roofline {}, full model {}\n", format_seconds(prediction.peak_seconds),
                  format_seconds(prediction.roofline_seconds), format_seconds(prediction.seconds));
  return text + fmt::format("constants: {} (digest {}); {} times of kernels\n", machine.file(),
                            machine.digest(), machine.processor()->times.size());
}

std::vector<Metric> processor_metrics(const lab::ProcessorPrediction& prediction) {
  const double up = std::exp(prediction.uncertainty), samples = static_cast<double>(prediction.plan.batch);
  const auto metric = [&](const char* name, double value, const char* unit) {
    return Metric{.name = name,
                  .value = value,
                  .unit = unit,
                  .how = How::predicted,
                  .low = value / up,
                  .high = value * up};
  };
  std::vector<Metric> metrics{
      {.name = "memory", .value = prediction.memory, .unit = "B", .how = How::predicted}};
  if (!prediction.fits()) return metrics;
  metrics.push_back(metric("step_time", prediction.seconds, "s"));
  metrics.push_back(metric("throughput", samples / prediction.seconds, "samples/s"));
  return metrics;
}

nlohmann::json processor_config(const machine::Machine& machine, const lab::ProcessorPrediction& prediction,
                                bool explain) {
  nlohmann::json config{{"machine", machine.id()},
                        {"machine_file", machine.file()},
                        {"machine_digest", machine.digest()},
                        {"batch", prediction.plan.batch},
                        {"micro_batch", prediction.plan.micro_batch},
                        {"threads", prediction.plan.threads},
                        {"groups", prediction.plan.groups},
                        {"coverage", 0.8},
                        {"unknown_share", prediction.unknown_share},
                        {"ladder",
                         {{"peak", prediction.peak_seconds},
                          {"roofline", prediction.roofline_seconds},
                          {"full", prediction.seconds}}}};
  if (explain) config["steps"] = steps_json(prediction);
  return config;
}

}  // namespace superstep::cli
