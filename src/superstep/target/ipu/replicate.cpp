#include <fmt/format.h>

#include <bit>
#include <memory>
#include <set>

#include "superstep/base/error.h"
#include "superstep/target/ipu/chips.h"
#include "superstep/target/ipu/node_lowering.h"
#include "superstep/target/ipu/states.h"
#include "superstep/target/ipu/sums.h"

namespace superstep::target::ipu {
namespace {

using graph::Phase;
using graph::ValueId;

class TrainingLowering {
 public:
  TrainingLowering(const graph::Graph& graph, const bsp::Target& target,
                   const machine::ipu::Hardware& hardware, const ChipLayout& layout)
      : graph_(graph),
        hardware_(hardware),
        layout_(layout),
        by_update_(graph.value_count(), false),
        out_{.graph = bsp::Graph(target, static_cast<std::uint32_t>(layout.replicas))},
        nodes_(graph, out_.graph.create_virtual_graph(0, target.tiles_per_ipu), hardware),
        values_(nodes_.values()) {}

  LoweredGraph run() {
    refuse();
    inputs_and_states();
    for (const graph::Node& node : graph_.nodes())
      if (node.phase != Phase::update) nodes_.lower(node, body_, out_.steps);
    outputs(false, body_);
    micro_batches();
    all_reduce();
    for (const graph::Node& node : graph_.nodes())
      if (node.phase == Phase::update) nodes_.lower(node, update_, out_.steps);
    outputs(true, update_);
    add_updates(graph_, nodes_.device(), values_, update_);
    values_.place_all_waiting();
    out_.program.add(update_);
    return std::move(out_);
  }

 private:
  void refuse() {
    if (layout_.shares.size() > 1)
      throw Error(ErrorCode::unsupported, "training is not executed over the stages of a pipeline",
                  graph_.name(), "use --replicas and --accumulate; `superstep predict` models pipelines");
    if (!std::has_single_bit(static_cast<unsigned>(layout_.replicas)))
      throw Error(ErrorCode::unsupported,
                  fmt::format("gradients of {} replicas cannot be exchanged in pairs", layout_.replicas),
                  "--replicas", "take a power of two");
    for (const graph::Node& node : graph_.nodes())
      for (const ValueId id : node.outputs)
        if (id.valid()) by_update_[id.index()] = node.phase == Phase::update;
    for (const graph::Update& update : graph_.updates())
      if (update.next.valid() && update.next != update.state && is_computed(update.next) &&
          !by_update_[update.next.index()])
        throw Error(ErrorCode::unsupported,
                    "changes in the forward pass: micro-batches and replicas would each have their own",
                    "state " + graph_.value(update.state).name, "train it on one chip without --accumulate");
  }

  bool is_computed(ValueId id) const { return graph_.value(id).kind == graph::ValueKind::computed; }

  void inputs_and_states() {
    std::set<ValueId> of_body;
    for (const graph::Node& node : graph_.nodes())
      if (node.phase != Phase::update) of_body.insert(node.inputs.begin(), node.inputs.end());
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId id = graph_.inputs()[i];
      const graph::Value& value = graph_.value(id);
      const bsp::Tensor tensor = values_.plain_variable(value.name, value.type);
      values_.add_waiting(id, tensor);
      if (tensor.num_elements() == 0) continue;
      (of_body.contains(id) ? body_ : update_)
          .add(bsp::Copy(out_.graph.add_host_to_device_fifo("in:" + value.name, value.type.element,
                                                            tensor.num_elements()),
                         tensor, value.name));
      out_.inputs.push_back({"in:" + value.name, i});
    }
    for (const ValueId id : graph_.states()) {
      add_state(graph_, id, nodes_.device(), values_);
      out_.states[graph_.value(id).name] = {graph_.value(id).name};
    }
  }

  void outputs(bool of_update, bsp::Sequence& program) {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const graph::Output& output = graph_.outputs()[i];
      if (by_update_[output.value.index()] != of_update) continue;
      const bsp::Tensor value = values_.tensor(output.value);
      if (value.num_elements() == 0) continue;
      const std::string handle = "out:" + output.name;
      program.add(bsp::Copy(
          value, out_.graph.add_device_to_host_fifo(handle, value.element_type(), value.num_elements()),
          output.name));
      out_.outputs.push_back({handle, i});
    }
  }

  // Values that pass from backward to update, each once.
  std::vector<ValueId> gradients() const {
    std::vector<ValueId> found;
    std::set<ValueId> seen;
    for (const graph::Node& node : graph_.nodes()) {
      if (node.phase != Phase::update) continue;
      for (const ValueId id : node.inputs)
        if (id.valid() && is_computed(id) && !by_update_[id.index()] && seen.insert(id).second) {
          if (graph_.type(id).element != ElementType::f32)
            throw Error(ErrorCode::unsupported, "only f32 gradients are accumulated",
                        "value " + graph_.value(id).name);
          found.push_back(id);
        }
    }
    return found;
  }

  // The body for every micro-batch, its gradients summed; the update then reads the sums.
  void micro_batches() {
    const std::vector<ValueId> found = gradients();
    out_.program.add(body_);
    if (layout_.micro_batches * layout_.replicas == 1) return;
    std::vector<bsp::Tensor> fresh;
    for (const ValueId id : found) {
      const bsp::Tensor gradient = values_.tensor(id);
      const bsp::Tensor sum = nodes_.device().clone(gradient, graph_.value(id).name + "/sum");
      fresh.push_back(gradient);
      sums_.push_back(sum);
      values_.set(id, sum);
      out_.program.add(bsp::Copy(gradient, sum));
    }
    if (layout_.micro_batches == 1) return;
    bsp::Sequence more;
    more.add(body_);
    more.add(bsp::Execute(add_into(nodes_.device(), hardware_, sums_, fresh, "accumulate gradients")));
    out_.program.add(bsp::Repeat(static_cast<std::uint64_t>(layout_.micro_batches - 1), more));
  }

  // Partners exchange sums and add: after log2(replicas) turns every replica has the sum of all, and since
  // a + b is b + a, the same bits.
  void all_reduce() {
    if (sums_.empty()) return;
    const auto replicas = static_cast<std::uint32_t>(layout_.replicas);
    if (replicas > 1) {
      std::vector<bsp::Tensor> theirs, flat, flat_theirs;
      for (const bsp::Tensor& sum : sums_) {
        theirs.push_back(nodes_.device().clone(sum));
        flat.push_back(sum.flatten());
        flat_theirs.push_back(theirs.back().flatten());
      }
      const bsp::ComputeSet add =
          add_into(nodes_.device(), hardware_, sums_, theirs, "add the partner's gradients");
      for (std::uint32_t distance = 1; distance < replicas; distance *= 2) {
        std::vector<std::uint32_t> partner;
        for (std::uint32_t r = 0; r < replicas; ++r) partner.push_back(r ^ distance);
        out_.program.add(bsp::CrossReplicaCopy(bsp::concat(flat), bsp::concat(flat_theirs), partner,
                                               fmt::format("gradients of the partner at {}", distance)));
        out_.program.add(bsp::Execute(add));
      }
      out_.program.add(bsp::AssumeEqualAcrossReplicas(bsp::concat(flat), "summed gradients"));
    }
    out_.program.add(
        bsp::Execute(scale_by(nodes_.device(), hardware_, sums_,
                              1.0 / (layout_.micro_batches * layout_.replicas), "mean gradients")));
  }

  const graph::Graph& graph_;
  const machine::ipu::Hardware& hardware_;
  const ChipLayout& layout_;
  std::vector<bool> by_update_;  // by value: made by a node of phase update
  LoweredGraph out_;
  NodeLowering nodes_;
  Values& values_;
  bsp::Sequence body_, update_;
  std::vector<bsp::Tensor> sums_;
};

}  // namespace

LoweredGraph lower_training(const graph::Graph& graph, const bsp::Target& target,
                            const machine::ipu::Hardware& hardware, const ChipLayout& layout) {
  return TrainingLowering(graph, target, hardware, layout).run();
}

}  // namespace superstep::target::ipu
