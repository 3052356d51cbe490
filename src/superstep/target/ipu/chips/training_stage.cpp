#include "superstep/target/ipu/chips/training_stage.h"

#include <fmt/format.h>

#include "superstep/target/ipu/place/states.h"

namespace superstep::target::ipu {

using graph::Phase;
using graph::ValueId;

TrainingStage::TrainingStage(const graph::Graph& graph, const ValueRoutes& routes, std::size_t number,
                             std::size_t depth, bsp::Graph device, const machine::ipu::Hardware& hardware,
                             const std::string& prefix)
    : graph_(graph),
      routes_(routes),
      number_(number),
      depth_(depth),
      hardware_(hardware),
      nodes_(graph, std::move(device), hardware, prefix) {}

// The variables of a value that no earlier value has are its own.
void TrainingStage::remember(ValueId id) {
  const bsp::Tensor tensor = values().tensor(id);
  for (const bsp::Region& region : tensor.view().regions()) written_.try_emplace(region.variable, id, tensor);
}

void TrainingStage::add_inputs(LoweredGraph& out, const std::vector<bool>& of_turns, bsp::Sequence& update) {
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const ValueId id = graph_.inputs()[i];
    if (!routes_.reads(number_, id)) continue;
    const graph::Value& value = graph_.value(id);
    const std::string name = value.name + suffix();
    const bsp::Tensor tensor = values().plain_variable(name, value.type);
    values().add_waiting(id, tensor);
    remember(id);
    if (tensor.num_elements() == 0) continue;
    const bsp::Copy copy(
        out.graph.add_host_to_device_fifo("in:" + name, value.type.element, tensor.num_elements()), tensor,
        name);
    (of_turns[i] ? inputs_ : update).add(copy);
    out.inputs.push_back({"in:" + name, i});
  }
}

void TrainingStage::add_states(LoweredGraph& out, bool data) {
  for (const ValueId id : graph_.states()) {
    std::vector<std::string>& handles = out.states[graph_.value(id).name];
    if (!routes_.reads(number_, id)) continue;
    add_state(graph_, id, device(), values(), suffix(), data);
    handles.push_back(graph_.value(id).name + suffix());
  }
}

void TrainingStage::add_rising() {
  for (const ValueId id : routes_.rising(number_)) {
    const graph::Value& value = graph_.value(id);
    values().add_waiting(id, values().plain_variable(value.name + suffix(), value.type));
    remember(id);
  }
}

void TrainingStage::add_falling() {
  for (const ValueId id : routes_.falling(number_)) {
    const graph::Value& value = graph_.value(id);
    values().add_waiting(id, values().plain_variable(fmt::format("{}@{}", value.name, number_), value.type));
  }
}

void TrainingStage::lower(const graph::Node& node, const FusedNode* fused, bsp::Sequence& program,
                          std::vector<LoweredStep>& steps) {
  nodes_.lower(node, fused, program, steps);
  if (node.phase != Phase::forward) return;
  for (const ValueId id : fused ? fused->node.outputs : node.outputs)
    if (id.valid() && values().is_made(id)) remember(id);
}

void TrainingStage::keep() {
  if (depth_ < 2 || routes_.kept(number_).empty()) return;
  std::map<bsp::VariableId, ValueId> wanted;
  for (const ValueId id : routes_.kept(number_))
    for (const bsp::Region& region : values().tensor(id).view().regions())
      if (written_.contains(region.variable)) wanted.emplace(region.variable, id);
  if (wanted.empty()) return;
  stash_.emplace(device(), hardware_, depth_, fmt::format("stage {} stash", number_));
  for (const auto& [variable, reader] : wanted) {
    const auto& [id, tensor] = written_.at(variable);
    values().place_waiting(tensor);
    stash_->add(tensor, graph_.value(id).name + suffix());
  }
}

void TrainingStage::fix_borders() {
  for (const ValueId id : routes_.rising(number_)) {
    const bsp::Tensor tensor = values().tensor(id);
    values().place_waiting(tensor);
    arrivals_.emplace(id, device().clone(tensor, graph_.value(id).name + suffix() + "/arrival"));
    if (tensor.num_elements() > 0) unpack_.add(bsp::Copy(arrivals_.at(id), tensor));
  }
  for (const ValueId id : routes_.leaving_up(number_)) leaving_up_.emplace(id, values().tensor(id));
  for (const ValueId id : routes_.leaving_down(number_)) {
    const bsp::Tensor made = values().tensor(id);
    const bool passes = routes_.stage_of(id) != number_;
    leaving_down_.emplace(id, passes ? made : held(id, made));
  }
}

// The next forward turn comes before the exchange: what it writes is copied first.
bsp::Tensor TrainingStage::held(ValueId id, const bsp::Tensor& made) {
  bool overwritten = false;
  for (const bsp::Region& region : made.view().regions())
    overwritten = overwritten || written_.contains(region.variable);
  if (!overwritten || made.num_elements() == 0) return made;
  values().place_waiting(made);
  const bsp::Tensor copy = device().clone(made, graph_.value(id).name + "/held");
  hold_.add(bsp::Copy(made, copy));
  return copy;
}

bsp::Sequence TrainingStage::forward_turn() const {
  bsp::Sequence program;
  for (const bsp::Sequence* part : {&inputs_, &unpack_, &forward, &forward_outputs})
    if (!part->empty()) program.add(*part);
  if (stash_) program.add(stash_->store());
  return program;
}

bsp::Sequence TrainingStage::backward_turn() const {
  bsp::Sequence program;
  if (stash_) program.add(stash_->restore());
  for (const bsp::Sequence* part : {&backward, &backward_outputs, &hold_})
    if (!part->empty()) program.add(*part);
  return program;
}

}  // namespace superstep::target::ipu
