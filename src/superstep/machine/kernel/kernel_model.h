// Machines that run one kernel after the other from memory beside the chip: GPUs, Gaudi.
//
// A kernel takes max(arithmetic, bytes at its borders). The rate of a matrix product rises with its size:
// best rate x f / (f + half size), f its operations. With engines that overlap (Gaudi) matrix and vector
// kernels run at the same time.
//
// Called from the best library, a kernel takes no less than the time to launch it. Driven by a framework
// (machine/stack.h) the host launches operators one after the other while the device works through them: a
// phase takes the longer of the two sums, and a framework's kernels reach shares of the library's rates.
#pragma once

#include "superstep/machine/cost_model.h"

namespace superstep::machine {

class KernelModel : public CostModel {
 public:
  using CostModel::CostModel;
  WorkOptions work_options() const override { return {.fuse_across_layers = of_stack("fuses", 0) != 0}; }
  std::vector<OperatorCost> operators(const graph::Graph& graph, const std::vector<Work>& works,
                                      const Precision& precision) const override;
  Parts together(std::span<const OperatorCost> costs) const override;
  Memory memory(const graph::Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
                const MemoryOptions& options) const override;
  Fabric fabric(int units) const override;
  bool overlaps_collectives() const override { return true; }
  double link_seconds(double bytes) const override;
  double capacity() const override { return value("memory"); }
  Bounds bounds(const Precision& precision) const override;
  // Of the logarithm, beside the constants' own ranges: 80 % are nearer of 864 products and convolutions of a
  // V100's library, for which nothing was fitted; of stacks, of 327 rows of models whose machine was left out
  // of the fit (bench/calibrate.py; docs/figures.md). No published row is among these.
  double model_uncertainty() const override {
    return machine().stack() ? 0.36 : model_of_published_constants;
  }
  // DeepBench's largest product on a V100; BERT on 256 A100.
  Calibrated calibrated() const override { return {.kernel_flops = 2.3e12, .units = 256}; }
  const char* calibration() const override {
    return machine().stack() ? "the stack's open constants are fitted over measurements of others, none of "
                               "them this row's (bench/calibrate.py)"
                             : "none: constants are published ones, nothing is fitted to applications";
  }

 private:
  double of_stack(const char* name, double otherwise) const {
    return machine().stack() ? machine().stack()->value(name) : otherwise;
  }
  Parts parts_of(const Work& work, const Precision& precision) const;
  double launch_seconds(const Work& work) const;
};

}  // namespace superstep::machine
