// Every operator of the zoo's models, forward and in training, can be evaluated by a vertex, and has a rule
// that cuts it over tiles or is a view. What has none is listed.
#include <gtest/gtest.h>

#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/cut/cut.h"
#include "superstep/target/ipu/place/layout.h"
#include "superstep/target/ports.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep {
namespace {

using namespace target::ipu;

// Operators whose results have more than a few elements and that stay on one tile.
void find_whole(const graph::Graph& graph, std::set<std::string>& whole, std::set<std::string>& missing) {
  bsp::Graph device(bsp::gc200_device());
  for (const graph::Node& node : graph.nodes()) {
    const Operation operation = operation_of(graph, node);
    std::int64_t elements = 0;
    for (const graph::ValueType* type : operation.outputs)
      elements = std::max(elements, type ? type->shape.element_count() : 0);
    const auto operand = [&](std::size_t i) {
      const graph::ValueType& type = graph.type(node.inputs[i]);
      return device.add_variable(bsp::is_device_type(type.element) ? type.element : ElementType::i32,
                                 type.shape);
    };
    if (!op::get(node.op).evaluate) missing.insert(node.op);
    if (elements <= 16 || layout_views(operation, device, operand)) continue;
    if (cuts_of(operation).axes.empty()) whole.insert(node.op);
  }
}

TEST(IpuZoo, OperatorsAreCut) {
  std::set<std::string> whole, missing;
  for (const workload::Workload& workload : workload::workloads()) {
    if (workload.parameters > 8'000'000) continue;  // their layers are those of the smaller ones
    const graph::Graph model = workload::build_model(workload, 2);
    find_whole(target::prepare_graph(model), whole, missing);
    find_whole(target::prepare_graph(
                   transform::make_training_step(model, workload.training.loss, workload.training.optimizer)),
               whole, missing);
  }
  for (const std::string& op : missing) ADD_FAILURE() << op << " has no evaluation";
  for (const std::string& op : whole) ADD_FAILURE() << op << " stays on one tile";
}

}  // namespace
}  // namespace superstep
