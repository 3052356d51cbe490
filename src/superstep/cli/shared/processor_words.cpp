#include "superstep/cli/shared/processor_words.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"

namespace superstep::cli {
namespace {

std::string steps_text(const lab::ProcessorPrediction& prediction) {
  TextTable table({"step", "operators", "node", "MFLOP", "kB", "threads", "us", "kernel"});
  std::size_t number = 0;
  for (const lab::ProcessorStep& of : prediction.steps)
    table.add_row({fmt::format("{}", ++number), of.step.op, of.step.node,
                   fmt::format("{:.3f}", of.step.flops * 1e-6), fmt::format("{:.1f}", of.step.bytes * 1e-3),
                   fmt::format("{}", of.step.threads), fmt::format("{:.1f}", of.seconds * 1e6),
                   of.step.kernel + (of.known ? "" : " (not measured)")});
  return table.to_string() + "\n";
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

nlohmann::json processor_config(const machine::Machine& machine, const lab::ProcessorPrediction& prediction) {
  return {{"machine", machine.id()},
          {"machine_file", machine.file()},
          {"machine_digest", machine.digest()},
          {"batch", prediction.plan.batch},
          {"micro_batch", prediction.plan.micro_batch},
          {"threads", prediction.plan.threads},
          {"coverage", 0.8},
          {"unknown_share", prediction.unknown_share},
          {"ladder",
           {{"peak", prediction.peak_seconds},
            {"roofline", prediction.roofline_seconds},
            {"full", prediction.seconds}}}};
}

}  // namespace superstep::cli
