// Whole networks by the sums of their operators.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/machine/rates/levels.h"

namespace superstep::machine {
namespace {

// Forward and backward: twice the arithmetic and bytes again, and one and a half times the operators, as some
// have two gradients and views have none (chosen).
constexpr double passes_of_training = 3, launches_of_training = 2.5;
constexpr double f32_bytes = 4;
constexpr double pcie = 12e9;  // bytes/s that copies reach of PCIe 3.0, 16 lanes (chosen)

// What one process that drives several units does anew in each step: every unit's operators one after the
// other, and the weights sent to all.
void set_one_process(const MachineFacts& machine, const NetworkSums& sums, const NetworkStep& step,
                     Terms& t) {
  t.launches *= 1 + step.units;
  t.collectives = sums.tensors * step.units;
  t.link = (step.training ? 2 : 1) * sums.parameters * f32_bytes / std::max(pcie, machine.link_rate);
}

void set_exchange(const MachineFacts& machine, const NetworkSums& sums, const NetworkStep& step, Terms& t) {
  if (!step.training || step.units <= 1) return;
  t.collectives = std::log2(step.units);
  t.link =
      2 * sums.parameters * f32_bytes * (step.units - 1) / step.units / std::max(pcie, machine.link_rate);
}

}  // namespace

LawCall network_call(const MachineFacts& machine, const NetworkSums& sums, const NetworkStep& step) {
  const double peak = machine.peak(step.type), element = bytes_of_type(step.type);
  const double passes = step.training ? passes_of_training : 1, moved = passes * step.batch * element;
  LawCall call{.family = step.training ? "networks in training" : "networks for answers", .call = {}};
  call.flops = passes * step.batch * 2 * (sums.macs + sums.grouped + sums.attention);
  Terms& t = call.call.terms;
  const double rate = machine.memory_rate;
  t.launches = sums.kernels * (step.training ? launches_of_training : 1);
  t.serial = passes * step.batch * 2 * (sums.padded + sums.attention) / peak;
  t.memory = (moved * sums.product_elements + passes * element * sums.parameters) / rate;
  t.vectors = moved * sums.other_elements / rate;
  t.grouped = moved * sums.grouped_elements / rate;
  if (step.one_process && step.units > 1)
    set_one_process(machine, sums, step, t);
  else
    set_exchange(machine, sums, step, t);
  call.peak_seconds = call.flops / peak;
  call.bytes = moved * (sums.product_elements + sums.grouped_elements + sums.other_elements) +
               passes * element * sums.parameters;
  call.roofline_seconds = std::max(call.peak_seconds, moved * sums.product_elements / rate);
  const std::string law = "network";
  const std::string mode = fmt::format("{} {}{}", law, step.training ? "training" : "answer",
                                       step.of.empty() ? "" : " " + step.of);
  const std::string width = fmt::format("{} {}", mode, width_of(step.type));
  const std::string stack = fmt::format("{} {}{}{}", width, step.software, step.channels_last ? " nhwc" : "",
                                        step.one_process && step.units > 1 ? " of one process" : "");
  file_call(call, machine, {stack, width, mode, law}, {}, step.software);
  return call;
}

}  // namespace superstep::machine
