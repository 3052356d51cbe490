#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "superstep/base/error.h"
#include "superstep/target/ipu/chips/chips.h"
#include "superstep/target/ipu/lower/node_lowering.h"
#include "superstep/target/ipu/place/states.h"

namespace superstep::target::ipu {
namespace {

using graph::ValueId;

// One stage on its chip.
struct Stage {
  std::unique_ptr<NodeLowering> nodes;
  std::set<ValueId> arriving;           // values that come from the stage before
  bsp::Sequence inputs, body, outputs;  // from the host, the operators, to the host
};

class PipelineLowering {
 public:
  PipelineLowering(const graph::Graph& graph, const bsp::Device& device,
                   const machine::ipu::Hardware& hardware, const ChipLayout& layout,
                   const LowerOptions& options)
      : graph_(graph),
        layout_(layout),
        options_(options),
        stage_of_node_(stages_of(graph, layout.shares)),
        producer_(graph.value_count(), 0),
        last_reader_(graph.value_count(), 0),
        out_{.graph = bsp::Graph(device, static_cast<std::uint32_t>(layout.replicas))} {
    const std::uint32_t tiles = device.tiles_per_ipu;
    for (std::uint32_t s = 0; s < layout.shares.size(); ++s)
      stages_.push_back(
          {std::make_unique<NodeLowering>(graph, out_.graph.create_virtual_graph(s * tiles, (s + 1) * tiles),
                                          hardware, fmt::format("{}.", s)),
           {},
           {},
           {},
           {}});
  }

  LoweredGraph run() {
    refuse_state();
    follow_values();
    for (std::size_t s = 0; s < stages_.size(); ++s) variables(s);
    const LoweringBudget budget(graph_, options_);
    const Fusion fusion(graph_, stage_of_node_);
    for (std::size_t number = 0; number < graph_.node_count(); ++number) {
      if (fusion.is_inside(number)) continue;
      Stage& stage = stages_[stage_of_node_[number]];
      stage.nodes->lower(graph_.node(graph::NodeId(number)), fusion.at(number), stage.body, out_.steps);
      budget.lowered(out_.steps.size());
    }
    outputs();
    for (Stage& stage : stages_) stage.nodes->values().place_all_waiting();
    turns();
    return std::move(out_);
  }

 private:
  void refuse_state() const {
    for (const graph::Update& update : graph_.updates())
      if (update.next.valid() && update.next != update.state)
        throw Error(ErrorCode::unsupported, "a pipeline does not run graphs that change a state",
                    "state " + graph_.value(update.state).name, "leave --pipeline out");
  }

  bool is_constant(ValueId id) const { return graph_.value(id).kind == graph::ValueKind::constant; }

  // Where every value is made and last read.
  void follow_values() {
    std::size_t number = 0;
    for (const graph::Node& node : graph_.nodes()) {
      const std::size_t stage = stage_of_node_[number++];
      for (const ValueId id : node.outputs)
        if (id.valid()) producer_[id.index()] = last_reader_[id.index()] = stage;
      for (const ValueId id : node.inputs) {
        if (!id.valid() || is_constant(id)) continue;
        const graph::ValueKind kind = graph_.value(id).kind;
        if (kind == graph::ValueKind::computed)
          last_reader_[id.index()] = std::max(last_reader_[id.index()], stage);
        else
          readers_[id].insert(stage);
      }
    }
    for (const graph::Output& output : graph_.outputs())  // what passes through unchanged
      if (graph_.value(output.value).kind != graph::ValueKind::computed && !is_constant(output.value))
        readers_[output.value].insert(0);
    for (std::size_t i = 0; i < graph_.value_count(); ++i)
      for (std::size_t s = producer_[i] + 1; s <= last_reader_[i]; ++s)
        stages_[s].arriving.insert(ValueId(i));
  }

  // Inputs, states and arriving values of a stage. Each stage streams its own inputs, when it comes to them.
  void variables(std::size_t s) {
    Stage& stage = stages_[s];
    Values& values = stage.nodes->values();
    const std::string suffix = s == 0 ? "" : fmt::format("@{}", s);
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId id = graph_.inputs()[i];
      if (!readers_[id].contains(s)) continue;
      const graph::Value& value = graph_.value(id);
      const bsp::Tensor tensor = values.plain_variable(value.name + suffix, value.type);
      values.add_waiting(id, tensor);
      if (tensor.num_elements() == 0) continue;
      const std::string handle = "in:" + value.name + suffix;
      stage.inputs.add(
          bsp::Copy(out_.graph.add_host_to_device_fifo(handle, value.type.element, tensor.num_elements()),
                    tensor, value.name + suffix));
      out_.inputs.push_back({handle, i});
    }
    for (const ValueId id : graph_.states()) {
      std::vector<std::string>& handles = out_.states[graph_.value(id).name];
      // A state that nobody reads is kept on the first chip.
      if (!readers_[id].contains(s) && !(s == 0 && readers_[id].empty())) continue;
      add_state(graph_, id, stage.nodes->device(), values, suffix, options_.data);
      handles.push_back(graph_.value(id).name + suffix);
    }
    for (const ValueId id : stage.arriving) {
      const graph::Value& value = graph_.value(id);
      values.add_waiting(id, values.plain_variable(fmt::format("{}@{}", value.name, s), value.type));
    }
  }

  void outputs() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const graph::Output& output = graph_.outputs()[i];
      Stage& stage = stages_[producer_[output.value.index()]];
      const bsp::Tensor value = stage.nodes->values().tensor(output.value);
      if (value.num_elements() == 0) continue;
      const std::string handle = "out:" + output.name;
      stage.outputs.add(bsp::Copy(
          value, out_.graph.add_device_to_host_fifo(handle, value.element_type(), value.num_elements()),
          output.name));
      out_.outputs.push_back({handle, i});
    }
  }

  // What the stages [first, last] hand on: one copy for each element type, all at the same time.
  void hand_on(std::size_t first, std::size_t last, bsp::Sequence& program) {
    std::map<bsp::Type, std::pair<std::vector<bsp::Tensor>, std::vector<bsp::Tensor>>> moves;
    for (std::size_t s = first; s <= last && s + 1 < stages_.size(); ++s)
      for (const ValueId id : stages_[s + 1].arriving) {
        const bsp::Tensor from = stages_[s].nodes->values().tensor(id),
                          to = stages_[s + 1].nodes->values().tensor(id);
        if (from.num_elements() == 0) continue;
        auto& [sources, sinks] = moves[from.element_type()];
        sources.push_back(from.flatten());
        sinks.push_back(to.flatten());
      }
    for (const auto& [type, pair] : moves)
      program.add(bsp::Copy(bsp::concat(pair.first), bsp::concat(pair.second),
                            fmt::format("hand on, stages {} to {}", first, last)));
  }

  bsp::Sequence turn(std::size_t first, std::size_t last) {
    bsp::Sequence program;
    for (std::size_t s = first; s <= last; ++s) program.add(stages_[s].inputs);
    for (std::size_t s = first; s <= last; ++s) program.add(stages_[s].body);
    for (std::size_t s = first; s <= last; ++s) program.add(stages_[s].outputs);
    hand_on(first, last, program);
    return program;
  }

  // In turn t stage s has micro-batch t - s, where there is one.
  void turns() {
    const auto count = static_cast<std::size_t>(layout_.micro_batches), stages = stages_.size();
    const auto first = [&](std::size_t t) { return t + 1 > count ? t + 1 - count : 0; };
    const auto last = [&](std::size_t t) { return std::min(t, stages - 1); };
    for (std::size_t t = 0; t < count + stages - 1;) {
      std::size_t end = t + 1;
      while (end < count + stages - 1 && first(end) == first(t) && last(end) == last(t)) ++end;
      const bsp::Sequence program = turn(first(t), last(t));
      if (end - t > 1)
        out_.program.add(bsp::Repeat(end - t, program));
      else
        out_.program.add(program);
      t = end;
    }
  }

  const graph::Graph& graph_;
  const ChipLayout& layout_;
  const LowerOptions& options_;
  const std::vector<std::size_t> stage_of_node_;
  std::vector<std::size_t> producer_, last_reader_;   // by value: stages; of computed values
  std::map<ValueId, std::set<std::size_t>> readers_;  // of inputs and states
  LoweredGraph out_;
  std::vector<Stage> stages_;
};

}  // namespace

LoweredGraph lower_pipeline(const graph::Graph& graph, const bsp::Device& device,
                            const machine::ipu::Hardware& hardware, const ChipLayout& layout,
                            const LowerOptions& options) {
  return PipelineLowering(graph, device, hardware, layout, options).run();
}

}  // namespace superstep::target::ipu
