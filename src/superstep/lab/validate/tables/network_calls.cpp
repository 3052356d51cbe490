// Whole networks of which the sums alone are known: multiply-adds, activations, parameters of a sample.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/lab/validate/tables/call.h"

namespace superstep::lab {
namespace {

// Whoever says no batch reports that of his best run (chosen).
constexpr double usual_batch = 128;
// Of a sample's activations, how often a pass reads or writes them: made and read once; in training again
// backwards, with their gradients.
constexpr double passes_of_answer = 2, passes_of_training = 6;
// A network of known multiply-adds alone: activations a multiply-add, the median of networks of pictures.
constexpr double activations_per_mac = 1.0 / 350;

// What a metric makes of samples a second: its law's name; empty: it is none.
std::string kind_of_metric(const std::string& metric) {
  struct Known {
    const char *metric, *kind;
  };
  constexpr std::array known{Known{"throughput", ""},
                             Known{"step_time", ""},
                             Known{"time", ""},
                             Known{"throughput_with_evaluation", " with evaluation"},
                             Known{"server_throughput", " of a server"},
                             Known{"latency", " of one"},
                             Known{"latency_p90", " of one"},
                             Known{"latency_p99", " of one"}};
  for (const Known& one : known)
    if (metric == one.metric) return fmt::format("network{}", one.kind);
  return {};
}

// Channels last, or compiled graphs of kernels: another stack.
std::string layout_of(const std::string& note) {
  return note.find("nhwc") != std::string::npos || note.find("channels_last") != std::string::npos ? " nhwc"
                                                                                                   : "";
}

}  // namespace

bool network_call(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string &metric = row.text("metric"), &mode = row.text("mode"), &unit = row.text("unit");
  const std::string kind = kind_of_metric(metric);
  if (kind.empty()) {
    call.reason = fmt::format("{} is not predicted", metric);
    return false;
  }
  const double peak = row.machine.peak(call.precision);
  if (model.macs <= 0 || peak <= 0 || row.machine.memory_rate <= 0) {
    call.reason = model.macs <= 0 ? "no multiply-adds are known of " + call.model
                                  : "no peak or memory rate is known of " + call.machine;
    return false;
  }
  const bool training = mode == "train" || mode == "finetune", one = kind.ends_with(" of one");
  const double units = row.count("units", 1);
  double batch = row.count("micro_batch", 0);
  if (batch == 0 && row.count("global_batch", 0) > 0)
    batch = std::max(1.0, std::round(row.count("global_batch", 0) / units));
  if (one) batch = 1;
  if (batch == 0) batch = usual_batch;
  const double element = machine::bytes_of_type(call.precision);
  const double activations = model.activations > 0 ? model.activations : activations_per_mac * model.macs;
  const double passes = training ? passes_of_training : passes_of_answer;
  call.family = training ? "networks in training" : "networks for answers";
  machine::Terms& terms = call.call.terms;
  terms = {.launches = 1,
           .serial = batch * 2 * model.macs * (training ? 3 : 1) / peak,
           .memory = (batch * activations * passes + model.parameters * (training ? 3 : 1)) * element /
                     row.machine.memory_rate,
           .collectives = training && units > 1 ? std::log2(units) : 0};
  call.peak_seconds = terms.serial;
  call.roofline_seconds = std::max(terms.serial, terms.memory);
  const std::string law = fmt::format("{} {} {}{}", kind, training ? "training" : "answer", call.precision,
                                      layout_of(row.text("note")));
  set_keys(row.machine, law + " " + call.software, law + " " + call.software, call);
  if (unit == "ms" || unit == "s" || unit == "us") {
    call.amount = unit == "ms" ? 1e3 : unit == "us" ? 1e6 : 1;
  } else {
    call.is_rate = true;
    call.amount = batch * units;
  }
  return true;
}

}  // namespace superstep::lab
