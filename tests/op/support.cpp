#include "tests/op/support.h"

#include "superstep/op/arithmetic.h"
#include "superstep/op/rules.h"
#include "superstep/op/unary.h"

namespace superstep::op::test {

void expect_decomposition(const Function& function, const std::vector<Tensor>& inputs, double tolerance) {
  const Function decomposed = [&](Builder& builder, std::span<const Var> vars) {
    const std::vector<Var> outputs = function(builder, vars);
    const graph::Node node = builder.graph().nodes().back();
    std::vector<Var> node_inputs, node_outputs;
    for (graph::ValueId id : node.inputs) node_inputs.push_back(id.valid() ? builder.var(id) : Var());
    for (graph::ValueId id : node.outputs) node_outputs.push_back(id.valid() ? builder.var(id) : Var());
    const DerivativeContext context{builder, node.attributes, node_inputs, node_outputs};
    const Definition& definition = get(node.op);
    if (!definition.decompose) throw Error(ErrorCode::internal, "has no decomposition", node.op);
    std::vector<Var> parts = definition.decompose(context);
    parts.resize(outputs.size());
    return parts;
  };
  const std::vector<Tensor> whole = results(function, inputs), parts = results(decomposed, inputs);
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) expect_equal(whole[i], parts[i], tolerance);
}

void expect_negative_control(const Function&, const std::vector<Tensor>&) {}

}  // namespace superstep::op::test
