#include <fmt/format.h>

#include <bit>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/target/ipu/chips/chips.h"
#include "superstep/target/ipu/chips/training_stage.h"
#include "superstep/target/ipu/lower/sums.h"
#include "superstep/target/ipu/place/states.h"

namespace superstep::target::ipu {
namespace {

using graph::Phase;
using graph::ValueId;

// In turn t stage s takes micro-batch t - s forward and micro-batch t - 2 (stages - 1) + s backward. Between
// the two halves of a turn everything that crosses a border does, in one exchange: what the forward half
// made, and what the backward half of the turn before made.
class TrainingLowering {
 public:
  TrainingLowering(const graph::Graph& graph, const bsp::Device& device,
                   const machine::ipu::Hardware& hardware, const ChipLayout& layout,
                   const LowerOptions& options)
      : graph_(graph),
        hardware_(hardware),
        layout_(layout),
        options_(options),
        budget_(graph, options),
        stage_of_node_(stages_of(graph, layout.shares)),
        fusion_(graph, stage_of_node_),
        routes_(graph, stage_of_node_, layout.shares.size()),
        out_{.graph = bsp::Graph(device, static_cast<std::uint32_t>(layout.replicas))} {
    const std::size_t count = layout.shares.size();
    const std::uint32_t tiles = device.tiles_per_ipu;
    for (std::size_t s = 0; s < count; ++s) {
      const auto first = static_cast<std::uint32_t>(s) * tiles;
      stages_.push_back(std::make_unique<TrainingStage>(
          graph, routes_, s, 2 * (count - 1 - s) + 1, out_.graph.create_virtual_graph(first, first + tiles),
          hardware, count > 1 ? fmt::format("{}.", s) : std::string()));
    }
  }

  LoweredGraph run() {
    refuse();
    inputs_and_states();
    for (auto& stage : stages_) stage->add_rising();
    lower(Phase::forward);
    for (auto& stage : stages_) {
      stage->keep();
      stage->add_falling();
    }
    lower(Phase::backward);
    outputs(Phase::forward);
    outputs(Phase::backward);
    for (auto& stage : stages_) stage->fix_borders();
    gradient_sums();
    turns();
    all_reduce();
    lower(Phase::update);
    outputs(Phase::update);
    new_states();
    out_.program.add(update_);
    return std::move(out_);
  }

 private:
  std::size_t last_stage() const { return stages_.size() - 1; }
  bool sums_gradients() const { return layout_.micro_batches * layout_.replicas > 1; }

  void refuse() const {
    if (!std::has_single_bit(static_cast<unsigned>(layout_.replicas)))
      throw Error(ErrorCode::unsupported,
                  fmt::format("gradients of {} replicas cannot be exchanged in pairs", layout_.replicas),
                  "--replicas", "take a power of two");
    for (const graph::Update& update : graph_.updates())
      if (update.next.valid() && update.next != update.state && routes_.is_computed(update.next) &&
          routes_.phase_of(update.next) != Phase::update)
        throw Error(ErrorCode::unsupported,
                    "changes in the forward pass: micro-batches and replicas would each have their own",
                    "state " + graph_.value(update.state).name, "train it on one chip without --accumulate");
  }

  // An input that only updates read is taken once a run, others once a micro-batch.
  void inputs_and_states() {
    std::vector<bool> of_turns;
    for (const ValueId id : graph_.inputs()) {
      of_turns.push_back(false);
      for (std::size_t s = 0; s < stages_.size(); ++s)
        of_turns.back() = of_turns.back() || routes_.reads_in_turns(s, id);
    }
    for (auto& stage : stages_) {
      stage->add_inputs(out_, of_turns, update_);
      stage->add_states(out_, options_.data);
    }
  }

  void lower(Phase phase) {
    for (std::size_t number = 0; number < graph_.node_count(); ++number) {
      const graph::Node& node = graph_.node(graph::NodeId(number));
      const std::size_t stage = stage_of_node_[number];
      if (node.phase != phase || fusion_.is_inside(number)) continue;
      const FusedNode* fused = fusion_.at(number);
      if (phase == Phase::update) fetch(fused ? fused->node : node, stage);
      stages_[stage]->lower(node, fused,
                            phase == Phase::forward    ? stages_[stage]->forward
                            : phase == Phase::backward ? stages_[stage]->backward
                                                       : update_,
                            out_.steps);
      budget_.lowered(out_.steps.size());
    }
  }

  // What an update reads of other stages comes over the links.
  void fetch(const graph::Node& node, std::size_t stage) {
    for (const ValueId id : node.inputs)
      if (id.valid() && routes_.is_computed(id) && routes_.stage_of(id) != stage &&
          fetched_.emplace(id, stage).second) {
        const bsp::Tensor from = stages_[routes_.stage_of(id)]->values().tensor(id);
        Values& values = stages_[stage]->values();
        const bsp::Tensor to = values.plain_variable(
            fmt::format("{}@{}/fetched", graph_.value(id).name, stage), graph_.type(id));
        values.add_waiting(id, to);
        if (to.num_elements() > 0) update_.add(bsp::Copy(from, to, graph_.value(id).name));
      }
  }

  void outputs(Phase phase) {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const graph::Output& output = graph_.outputs()[i];
      if (routes_.phase_of(output.value) != phase) continue;
      TrainingStage& stage = *stages_[routes_.stage_of(output.value)];
      const bsp::Tensor value = stage.values().tensor(output.value);
      if (value.num_elements() == 0) continue;
      const std::string handle = "out:" + output.name;
      bsp::Sequence& program = phase == Phase::forward    ? stage.forward_outputs
                               : phase == Phase::backward ? stage.backward_outputs
                                                          : update_;
      program.add(bsp::Copy(
          value, out_.graph.add_device_to_host_fifo(handle, value.element_type(), value.num_elements()),
          output.name));
      out_.outputs.push_back({handle, i});
    }
  }

  // Sums of the gradients of a stage, beside those of the micro-batch; updates read the sums.
  struct Sums {
    std::vector<bsp::Tensor> sums, fresh;
    bsp::Sequence first, more;  // takes the first micro-batch's, adds another's
  };

  void gradient_sums() {
    sums_.resize(stages_.size());
    if (!sums_gradients()) return;
    for (const ValueId id : routes_.gradients()) {
      if (graph_.type(id).element != ElementType::f32)
        throw Error(ErrorCode::unsupported, "only f32 gradients are accumulated",
                    "value " + graph_.value(id).name);
      const std::size_t stage = routes_.stage_of(id);
      const bsp::Tensor gradient = stages_[stage]->values().tensor(id);
      stages_[stage]->values().place_waiting(gradient);
      const bsp::Tensor sum = stages_[stage]->device().clone(gradient, graph_.value(id).name + "/sum");
      sums_[stage].fresh.push_back(gradient);
      sums_[stage].sums.push_back(sum);
      sums_[stage].first.add(bsp::Copy(gradient, sum));
      stages_[stage]->values().set(id, sum);
    }
    if (layout_.micro_batches == 1) return;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (!sums_[s].sums.empty())
        sums_[s].more.add(bsp::Execute(add_into(stages_[s]->device(), hardware_, sums_[s].sums,
                                                sums_[s].fresh, "accumulate gradients" + suffix(s))));
  }

  std::string suffix(std::size_t stage) const {
    return stages_.size() > 1 ? fmt::format(", stage {}", stage) : std::string();
  }

  enum class Backward : std::uint8_t { none, first, more };
  struct Turn {
    std::vector<bool> forward, falls;  // `falls`: the turn before had a backward half there
    std::vector<Backward> backward;
    friend bool operator==(const Turn&, const Turn&) = default;
  };

  Turn turn_at(std::int64_t t) const {
    const auto count = static_cast<std::int64_t>(layout_.micro_batches);
    Turn turn;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto stage = static_cast<std::int64_t>(s);
      const std::int64_t up = t - stage, down = t - 2 * static_cast<std::int64_t>(last_stage()) + stage;
      const auto runs = [&](std::int64_t micro_batch) { return micro_batch >= 0 && micro_batch < count; };
      turn.forward.push_back(runs(up));
      turn.falls.push_back(s > 0 && runs(down - 1));
      turn.backward.push_back(!runs(down) ? Backward::none : down == 0 ? Backward::first : Backward::more);
    }
    return turn;
  }

  void turns() {
    const std::int64_t count = layout_.micro_batches + 2 * static_cast<std::int64_t>(last_stage());
    for (auto& stage : stages_) {
      forward_.push_back(stage->forward_turn());
      backward_.push_back(stage->backward_turn());
    }
    for (std::int64_t t = 0; t < count;) {
      const Turn turn = turn_at(t);
      std::int64_t end = t + 1;
      while (end < count && turn_at(end) == turn) ++end;
      const bsp::Sequence program = program_of(turn);
      if (end - t > 1)
        out_.program.add(bsp::Repeat(static_cast<std::uint64_t>(end - t), program));
      else
        out_.program.add(program);
      t = end;
    }
  }

  bsp::Sequence program_of(const Turn& turn) {
    bsp::Sequence program;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (turn.forward[s]) program.add(forward_[s]);
    cross_borders(turn, program);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (turn.backward[s] == Backward::none) continue;
      program.add(backward_[s]);
      const bsp::Sequence& sum = turn.backward[s] == Backward::first ? sums_[s].first : sums_[s].more;
      if (!sum.empty()) program.add(sum);
    }
    return program;
  }

  // One copy for each element type, all at the same time.
  void cross_borders(const Turn& turn, bsp::Sequence& program) {
    std::map<bsp::Type, std::pair<std::vector<bsp::Tensor>, std::vector<bsp::Tensor>>> moves;
    const auto move = [&](const bsp::Tensor& from, const bsp::Tensor& to) {
      if (from.num_elements() == 0) return;
      moves[from.element_type()].first.push_back(from.flatten());
      moves[from.element_type()].second.push_back(to.flatten());
    };
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (turn.forward[s])
        for (const auto& [id, tensor] : stages_[s]->leaving_up())
          move(tensor, stages_[s + 1]->entering_up(id));
      if (turn.falls[s])
        for (const auto& [id, tensor] : stages_[s]->leaving_down())
          move(tensor, stages_[s - 1]->entering_down(id));
    }
    for (const auto& [type, pair] : moves)
      program.add(
          bsp::Copy(bsp::concat(pair.first), bsp::concat(pair.second), "activations up, gradients down"));
  }

  // Partners exchange sums and add: after log2(replicas) turns every replica has the sum of all, and since
  // a + b is b + a, the same bits.
  void all_reduce() {
    if (!sums_gradients()) return;
    const auto replicas = static_cast<std::uint32_t>(layout_.replicas);
    if (replicas > 1) exchange_with_partners(replicas);
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (!sums_[s].sums.empty())
        out_.program.add(bsp::Execute(scale_by(stages_[s]->device(), hardware_, sums_[s].sums,
                                               1.0 / (layout_.micro_batches * layout_.replicas),
                                               "mean gradients" + suffix(s))));
  }

  void exchange_with_partners(std::uint32_t replicas) {
    std::vector<bsp::Tensor> flat, flat_theirs;
    std::vector<bsp::ComputeSet> additions;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      std::vector<bsp::Tensor> theirs;
      for (const bsp::Tensor& sum : sums_[s].sums) {
        theirs.push_back(stages_[s]->device().clone(sum));
        flat.push_back(sum.flatten());
        flat_theirs.push_back(theirs.back().flatten());
      }
      if (!theirs.empty())
        additions.push_back(add_into(stages_[s]->device(), hardware_, sums_[s].sums, theirs,
                                     "add the partner's gradients" + suffix(s)));
    }
    if (flat.empty()) return;
    for (std::uint32_t distance = 1; distance < replicas; distance *= 2) {
      std::vector<std::uint32_t> partner;
      for (std::uint32_t r = 0; r < replicas; ++r) partner.push_back(r ^ distance);
      out_.program.add(bsp::CrossReplicaCopy(bsp::concat(flat), bsp::concat(flat_theirs), partner,
                                             fmt::format("gradients of the partner at {}", distance)));
      for (const bsp::ComputeSet& add : additions) out_.program.add(bsp::Execute(add));
    }
    out_.program.add(bsp::AssumeEqualAcrossReplicas(bsp::concat(flat), "summed gradients"));
  }

  // Every stage that has a state gets its new value.
  void new_states() {
    for (auto& stage : stages_) stage->values().place_all_waiting();
    std::vector<NextState> list;
    for (const graph::Update& update : graph_.updates()) {
      if (!update.next.valid() || update.next == update.state) continue;
      const bsp::Tensor next = stages_[having(update.next)]->values().tensor(update.next);
      for (std::size_t s = 0; s < stages_.size(); ++s)
        if (routes_.reads(s, update.state))
          list.push_back({graph_.value(update.state).name, next, stages_[s]->values().tensor(update.state)});
    }
    add_new_states(out_.graph, std::move(list), update_);
  }

  std::size_t having(ValueId id) const {
    std::size_t stage = routes_.stage_of(id);
    const bool anywhere = routes_.is_computed(id) || graph_.value(id).kind == graph::ValueKind::constant;
    while (!anywhere && !routes_.reads(stage, id)) ++stage;
    return stage;
  }

  const graph::Graph& graph_;
  const machine::ipu::Hardware& hardware_;
  const ChipLayout& layout_;
  const LowerOptions& options_;
  LoweringBudget budget_;
  const std::vector<std::size_t> stage_of_node_;
  const Fusion fusion_;
  const ValueRoutes routes_;
  LoweredGraph out_;
  std::vector<std::unique_ptr<TrainingStage>> stages_;
  std::vector<bsp::Sequence> forward_, backward_;  // by stage
  std::vector<Sums> sums_;                         // by stage
  std::set<std::pair<ValueId, std::size_t>> fetched_;
  bsp::Sequence update_;
};

}  // namespace

LoweredGraph lower_training(const graph::Graph& graph, const bsp::Device& device,
                            const machine::ipu::Hardware& hardware, const ChipLayout& layout,
                            const LowerOptions& options) {
  return TrainingLowering(graph, device, hardware, layout, options).run();
}

}  // namespace superstep::target::ipu
