#include "superstep/target/ipu/place/value_routes.h"

namespace superstep::target::ipu {

using graph::Phase;
using graph::ValueId;
using graph::ValueKind;

ValueRoutes::ValueRoutes(const graph::Graph& graph, std::span<const std::size_t> stages, std::size_t count)
    : graph_(graph),
      made_(graph.value_count()),
      rising_(count),
      falling_(count),
      kept_(count),
      reads_(count),
      in_turns_(count) {
  std::size_t number = 0;
  for (const graph::Node& node : graph.nodes()) {
    const std::size_t stage = stages[number++];
    for (const ValueId id : node.inputs)
      if (id.valid()) read(node, stage, id);
    for (const ValueId id : node.outputs)
      if (id.valid()) made_[id.index()] = {stage, node.phase};
  }
  for (const graph::Output& output : graph.outputs())  // what passes through unchanged
    if (!is_computed(output.value) && graph.value(output.value).kind != ValueKind::constant) {
      reads_[0].insert(output.value);
      in_turns_[0].insert(output.value);
    }
  for (const graph::Update& update : graph.updates())
    if (update.next.valid() && !is_computed(update.next) && !is_read(update.next))
      reads_[0].insert(update.next);
  for (const ValueId id : graph.states())
    if (!is_read(id)) reads_[0].insert(id);
}

bool ValueRoutes::is_read(ValueId id) const {
  for (const std::set<ValueId>& ids : reads_)
    if (ids.contains(id)) return true;
  return false;
}

void ValueRoutes::read(const graph::Node& node, std::size_t stage, ValueId id) {
  const ValueKind kind = graph_.value(id).kind;
  if (kind == ValueKind::constant) return;
  const bool update = node.phase == Phase::update, backward = node.phase == Phase::backward;
  if (kind != ValueKind::computed) {
    reads_[stage].insert(id);
    if (!update) in_turns_[stage].insert(id);
    if (backward && kind == ValueKind::input) kept_[stage].insert(id);
    return;
  }
  const Made& made = made_[id.index()];
  if (update) {
    if (made.phase != Phase::update && averaged_.insert(id).second) gradients_.push_back(id);
    return;
  }
  for (std::size_t s = made.stage + 1; s <= stage; ++s) rising_[s].insert(id);
  for (std::size_t s = stage; s < made.stage; ++s) falling_[s].insert(id);
  if (backward && made.phase == Phase::forward) kept_[std::max(stage, made.stage)].insert(id);
}

}  // namespace superstep::target::ipu
