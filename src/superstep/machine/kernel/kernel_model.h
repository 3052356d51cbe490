// Machines that run one kernel after the other from memory beside the chip: GPUs, Gaudi.
//
// A kernel takes max(arithmetic, bytes at its borders), and no less than the time to launch it: launches are
// queued while the device works, so that only kernels shorter than a launch wait for it. The rate of a matrix
// product rises with its size: best rate x f / (f + half size), f its operations. With engines that overlap
// (Gaudi) matrix and vector kernels run at the same time.
#pragma once

#include "superstep/machine/cost_model.h"

namespace superstep::machine {

class KernelModel : public CostModel {
 public:
  using CostModel::CostModel;
  WorkOptions work_options() const override { return {.fuse_across_layers = false}; }
  std::vector<OperatorCost> operators(const graph::Graph& graph, const std::vector<Work>& works,
                                      const Precision& precision) const override;
  Parts together(std::span<const OperatorCost> costs) const override;
  Memory memory(const graph::Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
                const MemoryOptions& options) const override;
  double all_reduce_seconds(double bytes, int units) const override;
  double link_seconds(double bytes) const override;
  double capacity() const override { return value("memory"); }
  Bounds bounds(const Precision& precision) const override;
  // Of the logarithm, beside the constants' own ranges: a factor of 1.8. No source:
  // chosen; validate counts how many rows lie inside (docs/machines.md).
  double model_uncertainty() const override { return 0.6; }
  const char* calibration() const override {
    return "none: constants are published ones, nothing is fitted to applications";
  }

 private:
  Parts parts_of(const Work& work, const Precision& precision) const;
};

}  // namespace superstep::machine
