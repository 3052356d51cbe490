// Nodes of a graph as steps of a program, one after the other, on a device graph or on a part of its tiles.
#pragma once

#include <string>
#include <vector>

#include "superstep/target/ipu/lower/fusion.h"
#include "superstep/target/ipu/lower/operator_lowering.h"
#include "superstep/target/ipu/place/values.h"

namespace superstep::target::ipu {

class NodeLowering {
 public:
  // `device` may be a virtual graph: its tiles are used, and no others. `prefix` tells the vertex classes of
  // several lowerings onto one device graph apart.
  NodeLowering(const graph::Graph& graph, bsp::Graph device, const machine::ipu::Hardware& hardware,
               std::string prefix = {});
  NodeLowering(const NodeLowering&) = delete;

  Values& values() { return values_; }
  bsp::Graph& device() { return device_; }

  // Appends to `program` and `steps`; names of compute sets are numbered by `steps`. Throws Error
  // (unsupported) naming a node whose operator or type the machine cannot run.
  void lower(const graph::Node& node, bsp::Sequence& program, std::vector<LoweredStep>& steps);
  // The same of what a fusion has in the place of a node, if it has something there.
  void lower(const graph::Node& node, const FusedNode* fused, bsp::Sequence& program,
             std::vector<LoweredStep>& steps);

 private:
  void lower_as(const graph::Node& node, const Operation& operation, bsp::Sequence& program,
                std::vector<LoweredStep>& steps);

  const graph::Graph& graph_;
  const std::vector<int> uses_;
  bsp::Graph device_;
  const machine::ipu::Hardware hardware_;
  Values values_;
  OperatorLowering operators_;
};

}  // namespace superstep::target::ipu
