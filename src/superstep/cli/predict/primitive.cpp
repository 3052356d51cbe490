#include "superstep/cli/predict/primitive.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/predict/prediction_words.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/machine/cost_model.h"
#include "superstep/machine/ipu/kept_plans.h"

namespace superstep::cli {
namespace {

std::string with_interval(double value, double low, double high, const char* unit) {
  return fmt::format("{} ({} to {}, 80 %)", format_si(value, unit), format_si(low, unit),
                     format_si(high, unit));
}

std::string constants_words(const machine::Machine& machine) {
  return fmt::format("constants: {}{} (digest {}); {}\n", machine.file(),
                     machine.stack() ? ", driven by " + machine.stack()->name : "", machine.digest(),
                     machine::cost_model(machine)->calibration());
}

const char* words_of(lab::Passes passes) {
  return passes == lab::Passes::forward ? "forward"
         : passes == lab::Passes::both  ? "forward and backward"
                                        : "backward";
}

nlohmann::json config_of(const machine::Machine& machine, const PrimitiveCall& call,
                         const std::string& precision) {
  return {{"machine", machine.id()},
          {"machine_file", machine.file()},
          {"machine_digest", machine.digest()},
          {"stack", machine.stack() ? machine.stack()->name : ""},
          {"mode", lab::name_of(call.question.passes)},
          {"precision", precision},
          {"coverage", 0.8},
          {"calibration", machine::cost_model(machine)->calibration()}};
}

// Time and rates, without a host that feeds it: the primitive alone.
std::vector<Metric> metrics_of(const machine::Prediction& prediction) {
  std::vector<Metric> metrics;
  const double up = std::exp(prediction.uncertainty), seconds = prediction.step_seconds;
  const auto add = [&](const char* name, double value, const char* unit) {
    metrics.push_back({.name = name,
                       .value = value,
                       .unit = unit,
                       .how = How::predicted,
                       .samples = {},
                       .low = value / up,
                       .high = value * up});
  };
  add("time", seconds, "s");
  add("flops_rate", prediction.flops / seconds, "FLOP/s");
  add("compute_utilization", prediction.peak_seconds / seconds, "");
  return metrics;
}

void print_primitive(const machine::Machine& machine, const PrimitiveCall& call,
                     const lab::PrimitivePrediction& found, const std::vector<Metric>& metrics) {
  const machine::Prediction& prediction = found.prediction;
  fmt::print("predicted: {} ({}, {}) on {}, {}\n", call.question.name, words_of(call.question.passes),
             found.shape, machine.name(), found.precision);
  if (call.explain) fmt::print("{}", operators_text(prediction));
  const auto line = [&](const char* title, const Metric& metric) {
    fmt::print("{:<21}{}\n", title,
               with_interval(metric.value, *metric.low, *metric.high, metric.unit.c_str()));
  };
  line("time", metrics[0]);
  if (prediction.flops > 0) {
    line("rate", metrics[1]);
    fmt::print("{:<21}{:.1f} % ({:.1f} to {:.1f}, 80 %)\n", "of the peak", 100 * metrics[2].value,
               100 * *metrics[2].low, std::min(100.0, 100 * *metrics[2].high));
  }
  fmt::print("bound by {}; ladder: at peak {}, roofline {}, full model {}\n", prediction.bound_by(),
             format_seconds(prediction.peak_seconds), format_seconds(prediction.roofline_seconds),
             format_seconds(prediction.step_seconds));
  for (const std::string& warning : prediction.warnings) fmt::print("warning: {}\n", warning);
}

void predict_compute(const machine::Machine& machine, const PrimitiveCall& call) {
  const machine::ipu::KeptPlans kept;
  const lab::PrimitivePrediction found = lab::predict_primitive(machine, call.question);
  const machine::Prediction& prediction = found.prediction;
  if (!prediction.fits)
    throw Error(ErrorCode::unsupported,
                fmt::format("does not fit {}: it needs {} and there are {}", machine.name(),
                            format_bytes(prediction.stages.front().memory.total()),
                            format_bytes(prediction.stages.front().memory.limit)),
                call.question.name, "try a smaller --batch, or a lower --precision");
  if (!prediction.beyond.empty() && !call.extrapolate)
    throw Error(ErrorCode::unsupported, join(prediction.beyond, "; "), call.question.name,
                "--extrapolate predicts it all the same");
  const std::vector<Metric> metrics = metrics_of(prediction);
  if (!common().quiet) print_primitive(machine, call, found, metrics);
  if (!common().quiet) fmt::print("{}", constants_words(machine));
  nlohmann::json config = config_of(machine, call, found.precision);
  config["shape"] = found.shape;
  config["bound_by"] = prediction.bound_by();
  config["ladder"] = {{"peak", prediction.peak_seconds},
                      {"roofline", prediction.roofline_seconds},
                      {"full", prediction.step_seconds}};
  config["warnings"] = prediction.warnings;
  write_result(command_result("predict", call.question.name, config, metrics, machine.id()));
}

void predict_exchange(const machine::Machine& machine, const PrimitiveCall& call) {
  const lab::CollectivePrediction found = lab::predict_collective(machine, call.question);
  const std::vector<Metric> metrics = found.metrics();
  if (!common().quiet)
    fmt::print(
        "predicted: {} ({} per device) between {} x {}, {}\n"
        "{:<21}{}\n{:<21}{}\n"
        "each device sends 2 (n - 1) / n of its bytes; the interval is chosen, it is not calibrated\n{}",
        call.question.name, format_bytes(found.bytes), found.units, machine.name(), found.precision, "time",
        with_interval(found.seconds, found.low, found.high, "s"), "bus bandwidth",
        with_interval(metrics[1].value, *metrics[1].low, *metrics[1].high, "B/s"), constants_words(machine));
  nlohmann::json config = config_of(machine, call, found.precision);
  config["units"] = found.units;
  config["bytes"] = found.bytes;
  write_result(command_result("predict", call.question.name, config, metrics, machine.id()));
}

}  // namespace

void predict_primitive(const CLI::App& command, const machine::Machine& machine, const PrimitiveCall& call) {
  refuse_given(command, "is of models, and a primitive has none of it",
               {"--pipeline", "--replicas", "--accumulate", "--device-iterations", "--loaders",
                "--sample-seconds", "--input-type", "--recompute", "--largest", "--scaling", "--shape",
                "--bound", "--set", "--approximate", "--measure"});
  const bool collective = lab::names_collective(call.question.name);
  refuse_given(command, collective ? "means nothing to an all-reduce" : "",
               {"--mode", "--batch", "--micro-batch", "--explain"});
  refuse_given(command, collective ? "" : "is of an all-reduce: a primitive is of one device", {"--units"});
  if (machine.processor())
    throw Error(ErrorCode::unsupported, "a processor's kernels are measured", call.question.name,
                "superstep bench gemm|conv|relu|lstm|all-reduce");
  if (collective)
    predict_exchange(machine, call);
  else
    predict_compute(machine, call);
  if (call.provenance && !common().quiet) fmt::print("\n{}", provenance_text(machine));
}

}  // namespace superstep::cli
