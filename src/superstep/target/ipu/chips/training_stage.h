// One stage of a training step on its chip: its programs for the forward and the backward turn.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "superstep/target/ipu/chips/stash.h"
#include "superstep/target/ipu/lower/node_lowering.h"
#include "superstep/target/ipu/place/value_routes.h"

namespace superstep::target::ipu {

class TrainingStage {
 public:
  // `depth`: micro-batches whose values a stage has between its two halves of a turn, at most.
  TrainingStage(const graph::Graph& graph, const ValueRoutes& routes, std::size_t number, std::size_t depth,
                bsp::Graph device, const machine::ipu::Hardware& hardware, const std::string& prefix);

  Values& values() { return nodes_.values(); }
  bsp::Graph& device() { return nodes_.device(); }
  std::string suffix() const { return number_ == 0 ? std::string() : "@" + std::to_string(number_); }

  // In this order. Inputs that are not `of_turns` are streamed by `update`, the others in every forward turn.
  void add_inputs(LoweredGraph& out, const std::vector<bool>& of_turns, bsp::Sequence& update);
  void add_states(LoweredGraph& out, bool data);
  // What comes from the stage below; then forward nodes are lowered.
  void add_rising();
  // What the backward turn needs of the forward turn, and what comes from the stage above; then backward
  // nodes are lowered.
  void keep();
  void add_falling();
  // What leaves and enters in the exchange between the halves of a turn.
  void fix_borders();

  // Appends to `program`, which runs when it is this stage's turn.
  void lower(const graph::Node& node, const FusedNode* fused, bsp::Sequence& program,
             std::vector<LoweredStep>& steps);

  const std::map<graph::ValueId, bsp::Tensor>& leaving_up() const { return leaving_up_; }
  const std::map<graph::ValueId, bsp::Tensor>& leaving_down() const { return leaving_down_; }
  const bsp::Tensor& entering_up(graph::ValueId id) const { return arrivals_.at(id); }
  bsp::Tensor entering_down(graph::ValueId id) { return values().tensor(id); }

  // The two halves of a turn, when everything above is done.
  bsp::Sequence forward_turn() const;
  bsp::Sequence backward_turn() const;
  bsp::Sequence forward, forward_outputs, backward, backward_outputs;

 private:
  void remember(graph::ValueId id);
  bsp::Tensor held(graph::ValueId id, const bsp::Tensor& made);

  const graph::Graph& graph_;
  const ValueRoutes& routes_;
  const std::size_t number_, depth_;
  const machine::ipu::Hardware& hardware_;
  NodeLowering nodes_;
  bsp::Sequence inputs_, unpack_, hold_;
  // Variables that a forward turn writes, as the whole tensors that were made first.
  std::map<bsp::VariableId, std::pair<graph::ValueId, bsp::Tensor>> written_;
  std::map<graph::ValueId, bsp::Tensor> arrivals_, leaving_up_, leaving_down_;
  std::optional<Stash> stash_;
};

}  // namespace superstep::target::ipu
