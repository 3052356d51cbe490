// Machines that lay a graph out over their units and stream samples through it: SN10, CS-2.
//
// All kernels work at the same time, each on a share of the units that is proportional to its arithmetic.
// Where parameters and what a micro-batch leaves behind do not fit the chip, the graph is cut into sections:
// each is laid out in turn (section_switch), and what passes between sections goes through memory beside the
// chip; in training that is all that the forward pass makes, which the backward pass reads. Weights that do
// not fit stream in and out layer by layer.
#pragma once

#include "superstep/machine/cost_model.h"

namespace superstep::machine {

class SpatialModel : public CostModel {
 public:
  using CostModel::CostModel;
  std::vector<OperatorCost> operators(const graph::Graph& graph, const std::vector<Work>& works,
                                      const Precision& precision) const override;
  Parts together(std::span<const OperatorCost> costs) const override;
  Memory memory(const graph::Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
                const MemoryOptions& options) const override;
  Fabric fabric(int units) const override;
  double link_seconds(double bytes) const override;
  double capacity() const override { return value("chip_memory") + value("memory"); }
  Bounds bounds(const Precision& precision) const override;
  // No measurement of such a machine is known here but the published rows, which nothing is taken from.
  double model_uncertainty() const override { return model_of_published_constants; }
  const char* calibration() const override {
    return "none: several constants are guesses; orders of magnitude";
  }
};

}  // namespace superstep::machine
