#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {

const Node* Site::made_by(Var value, std::string_view op) const {
  const graph::Value& found = builder.graph().value(value.id());
  if (found.kind != graph::ValueKind::computed) return nullptr;
  const Node& made = builder.graph().node(found.producer);
  if (node.phase == Phase::update && made.phase != Phase::update) return nullptr;
  return op.empty() || made.op == op ? &made : nullptr;
}

const Tensor* Site::constant(Var value) const {
  const graph::Value& found = builder.graph().value(value.id());
  return found.kind == graph::ValueKind::constant ? &found.data : nullptr;
}

bool Site::is_all(std::size_t input, double number) const {
  const Tensor* data = has(input) ? constant(inputs[input]) : nullptr;
  if (!data || data->element_count() == 0) return false;
  for (std::int64_t i = 0; i < data->element_count(); ++i)
    if (data->at(i) != number) return false;
  return true;
}

}  // namespace superstep::transform
