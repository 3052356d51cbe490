// Bulk-synchronous machines of tiles with their own memory: every kernel is a chain of supersteps, planned
// for the whole chip; a step is their sum.
#pragma once

#include "superstep/machine/cost_model.h"
#include "superstep/machine/ipu/hardware.h"

namespace superstep::machine::ipu {

class IpuModel : public CostModel {
 public:
  explicit IpuModel(const Machine& machine) : CostModel(machine), hardware_(hardware_of(machine)) {}
  std::vector<OperatorCost> operators(const graph::Graph& graph, const std::vector<Work>& works,
                                      const Precision& precision) const override;
  Memory memory(const graph::Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
                const MemoryOptions& options) const override;
  Fabric fabric(int units) const override;
  double collective_call_seconds(int units) const override;
  double link_seconds(double bytes) const override;
  double borders_seconds(std::span<const Border> borders) const override;
  bool overlaps_transfers() const override { return false; }  // a copy is a step of the program
  double capacity() const override { return static_cast<double>(hardware_.tiles * hardware_.tile_bytes); }
  double streaming_capacity() const override;
  double streaming_seconds(double bytes) const override;
  Bounds bounds(const Precision& precision) const override;
  // Of the logarithm, two causes: 0.136 of a single operator (80 % of 274 of a GC2's simulator, for which
  // nothing was fitted, are nearer), and 0.112 of a program of them (of 28 programs executed over planned,
  // around their median). No published row is among these (docs/machines.md).
  double model_uncertainty() const override { return 0.176; }
  // The largest of the simulator's rows; pods of 64 were measured.
  Calibrated calibrated() const override { return {.kernel_flops = 8.6e11, .units = 64}; }
  const char* calibration() const override {
    return "open constants fitted over the operator rows of a vendor's simulator; nothing is fitted to "
           "applications";
  }

 private:
  Hardware hardware_;
};

}  // namespace superstep::machine::ipu
