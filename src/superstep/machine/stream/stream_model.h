// A single core whose every cycle is scheduled when the program is compiled: GroqChip.
//
// A product of rows x inputs by inputs x outputs installs its weights plane by plane and streams its rows
// past them, one row a cycle and plane, whole columns of a plane at a time; f16 takes all planes for one.
// Other operators stream through the vector units. The result is exact for the chip; what is uncertain is the
// host's link.
#pragma once

#include "superstep/machine/cost_model.h"

namespace superstep::machine {

class StreamModel : public CostModel {
 public:
  using CostModel::CostModel;
  std::vector<OperatorCost> operators(const graph::Graph& graph, const std::vector<Work>& works,
                                      const Precision& precision) const override;
  Memory memory(const graph::Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
                const MemoryOptions& options) const override;
  Fabric fabric(int units) const override;
  double link_seconds(double bytes) const override;
  double host_seconds(double bytes) const override;
  // A copy is a step of the program, but where a stack queues calls.
  bool overlaps_transfers() const override {
    return machine().stack() && machine().stack()->value("reads_ahead") != 0;
  }
  double capacity() const override { return value("chip_memory"); }
  Bounds bounds(const Precision& precision) const override;
  // No measurement of such a machine is known here but the published rows, which nothing is taken from.
  double model_uncertainty() const override { return model_of_published_constants; }
  const char* calibration() const override { return "none: the compiler's schedule is approximated"; }

 private:
  double product_cycles(const graph::Graph& graph, const Work& work, double element) const;
};

}  // namespace superstep::machine
