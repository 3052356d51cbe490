#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

std::string to_string(const Refusal& refusal) { return refusal.implementation + ": " + refusal.reason; }

const char* name_of(WeightLayout layout) {
  static constexpr const char* names[] = {"none",
                                          "taps_in_out",
                                          "taps_out_in",
                                          "taps_in_out_pairs",
                                          "taps_out_in_pairs",
                                          "taps_out_in_rows",
                                          "taps_in_out_rows",
                                          "taps_channels",
                                          "taps_in_out_quads"};
  return layout.own() ? layout.own()->name : names[layout.shared()];
}

std::unexpected<Refusal> refuse(std::string implementation, std::string reason) {
  return std::unexpected(Refusal{std::move(implementation), std::move(reason)});
}

Refusal all_refused(const std::vector<Refusal>& refusals) {
  std::string names, reasons;
  for (const Refusal& refusal : refusals) {
    names += (names.empty() ? "" : ", ") + refusal.implementation;
    reasons += (reasons.empty() ? "" : "; ") + to_string(refusal);
  }
  return refusals.size() == 1 ? refusals.front() : Refusal{names, reasons};
}

}  // namespace superstep::kernels
