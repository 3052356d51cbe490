#include "superstep/target/ipu/lower/node_lowering.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/custom/operator_library.h"
#include "superstep/target/ipu/place/layout.h"
#include "superstep/target/ipu/place/viewed.h"

namespace superstep::target::ipu {
namespace {

std::string place_of(const graph::Node& node) { return fmt::format("node '{}' ({})", node.name, node.op); }

machine::ipu::Hardware with_tiles(machine::ipu::Hardware hardware, std::uint32_t tiles) {
  hardware.tiles = tiles;
  return hardware;
}

}  // namespace

NodeLowering::NodeLowering(const graph::Graph& graph, bsp::Graph device,
                           const machine::ipu::Hardware& hardware, std::string prefix)
    : graph_(graph),
      uses_(graph.use_counts()),
      device_(std::move(device)),
      hardware_(with_tiles(hardware, device_.num_tiles())),
      values_(graph, device_),
      operators_(graph, hardware_, device_, values_, std::move(prefix)) {}

void NodeLowering::lower(const graph::Node& node, bsp::Sequence& program, std::vector<LoweredStep>& steps) {
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while lowering");
  Operation operation = operation_of(graph_, node);
  for (std::size_t i = 1; i < node.outputs.size(); ++i)  // nobody reads it: nobody makes it
    if (node.outputs[i].valid() && uses_[node.outputs[i].index()] == 0) operation.outputs[i] = nullptr;
  const auto views =
      layout_views(operation, device_, [&](std::size_t i) { return values_.tensor(node.inputs[i]); });
  if (views) {
    const bool all = op::traits_of(node.op).view != op::View::none;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i].valid() && all)
        values_.add_view(node.outputs[i], (*views)[i], node.inputs[0]);
      else if (node.outputs[i].valid())
        values_.set(node.outputs[i], (*views)[i]);
    if (const Spread* spread =
            node.inputs.empty() || !node.inputs[0].valid() ? nullptr : values_.spread(node.inputs[0]))
      if (std::optional<Spread> seen = viewed(operation, *spread))
        values_.set_spread(node.outputs[0], std::move(*seen));
    steps.push_back({{.node = node.name, .op = node.op, .kernel = "view: no data moves"}, {}, {}});
    return;
  }
  if (!op::get(node.op).evaluate)
    throw Error(ErrorCode::unsupported, "no evaluation for a vertex to run", place_of(node),
                "run it on the cpu target");
  if (op::is_custom(node.op))
    throw Error(ErrorCode::unsupported, "an operator of a library, of which no cycles are known",
                place_of(node), "run it on the cpu target");
  lower_as(node, operation, program, steps);
}

void NodeLowering::lower(const graph::Node& node, const FusedNode* fused, bsp::Sequence& program,
                         std::vector<LoweredStep>& steps) {
  if (!fused) return lower(node, program, steps);
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while lowering");
  Operation operation = operation_of(graph_, fused->node);
  operation.fused = fused->fused;
  lower_as(fused->node, operation, program, steps);
  steps.back().plan.op = fused->operators;
}

void NodeLowering::lower_as(const graph::Node& node, const Operation& operation, bsp::Sequence& program,
                            std::vector<LoweredStep>& steps) {
  const std::string name =
      fmt::format("{}/{}#{}", node.name.empty() ? "node" : node.name, node.op, steps.size());
  try {
    steps.push_back(operators_.lower(node, operation, name, program));
  } catch (const Error& error) {
    throw error.in(place_of(node));
  }
}

}  // namespace superstep::target::ipu
