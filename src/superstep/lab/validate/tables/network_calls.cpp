// Whole networks of which the sums alone are known: multiply-adds, activations, parameters of a sample.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "superstep/base/text.h"
#include "superstep/lab/validate/tables/call.h"

namespace superstep::lab {
namespace {

// Whoever says no batch reports that of his best run (chosen).
constexpr double usual_batch = 128;
// What a metric makes of samples per second: what was reported; nothing: it is none.
std::optional<std::string> kind_of_metric(const std::string& metric) {
  struct Known {
    const char *metric, *kind;
  };
  constexpr std::array known{Known{"throughput", ""},
                             Known{"step_time", ""},
                             Known{"time", ""},
                             Known{"throughput_with_evaluation", "with evaluation"},
                             Known{"server_throughput", "of a server"},
                             Known{"latency", "of one"},
                             Known{"latency_p90", "of one"},
                             Known{"latency_p99", "of one"}};
  for (const Known& one : known)
    if (metric == one.metric) return one.kind;
  return std::nullopt;
}

// Passes of a network for one answer: a picture out of noise takes many, each of them twice where it is
// guided by words, as those are that say their steps. 0: not said.
double passes_of(const RowAt& row) {
  const std::string &workload = row.text("workload"), &note = row.text("note");
  const bool diffusion =
      workload.find("stable-diffusion") != std::string::npos || workload.find("sdxl") != std::string::npos;
  if (!diffusion || row.text("mode") != "infer") return 1;
  const std::size_t at = note.find(" steps");
  if (at == std::string::npos) return 0;
  const std::size_t begin = note.rfind(' ', at - 1);
  constexpr double with_guidance = 2;
  return with_guidance * std::atof(note.c_str() + (begin == std::string::npos ? 0 : begin + 1));
}

bool channels_last(const std::string& note) {
  return note.find("nhwc") != std::string::npos || note.find("channels_last") != std::string::npos;
}

}  // namespace

bool network_row(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string &metric = row.text("metric"), &mode = row.text("mode"), &unit = row.text("unit");
  const std::optional<std::string> kind = kind_of_metric(metric);
  if (!kind) {
    call.reason = fmt::format("{} is not predicted", metric);
    return false;
  }
  const double passes = passes_of(row);
  if (passes == 0) {
    call.reason = "how many passes make a picture is not said of " + call.model;
    return false;
  }
  const double peak = row.machine.peak(call.precision);
  if (model.sums.macs <= 0 || peak <= 0 || row.machine.memory_rate <= 0) {
    call.reason = model.sums.macs <= 0 ? "no multiply-adds are known of " + call.model
                                       : "no peak or memory rate is known of " + call.machine;
    return false;
  }
  const bool timed = unit == "ms" || unit == "s" || unit == "us";
  machine::NetworkStep step{
      .of = *kind,
      .batch = row.count("micro_batch", 0),
      .units = row.count("units", 1),
      .training = mode == "train" || mode == "finetune",
      .channels_last = channels_last(row.text("note")),
      // Whoever times a pass of several units by one clock drives them from one process.
      .one_process = timed && call.software == "pytorch",
      .software = call.software,
      .type = call.precision};
  if (step.batch == 0 && row.count("global_batch", 0) > 0)
    step.batch = std::max(1.0, std::round(row.count("global_batch", 0) / step.units));
  if (*kind == "of one") step.batch = 1;
  if (step.batch == 0) step.batch = usual_batch;
  call.take(machine::network_call(row.machine, model.sums, step));
  if (timed) {
    call.amount = passes * (unit == "ms" ? 1e3 : unit == "us" ? 1e6 : 1);
  } else {
    call.is_rate = true;
    call.amount = step.batch * step.units / passes;
  }
  return true;
}

}  // namespace superstep::lab
