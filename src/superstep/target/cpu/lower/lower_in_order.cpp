// The order of things: what several nodes become together is found first, then each section is lowered node
// by node.
#include <algorithm>
#include <utility>

#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/operators/lower_attention.h"
#include "superstep/target/cpu/lower/operators/lower_softmax.h"
#include "superstep/target/cpu/passes/attention_match.h"
#include "superstep/target/cpu/plan/gradient_ranges.h"

namespace superstep::target::cpu {

Plan Lowering::run() {
  divide();
  place_states();
  plan_accumulators();
  std::vector<bool> taken(graph_.node_count(), false);
  find_attention(taken);
  find_softmax_gradients(taken);
  fusion_ = find_fusion(graph_, leaves_, section_of_, taken);
  find_early_updates();
  for (Section section : {Section::prepare, Section::body, Section::update}) lower_section(section);
  shorten_prepare();
  plan_.prepare = resolve(draft(Section::prepare), Space::arena, prepare_bytes_);
  plan_.body = resolve(draft(Section::body), Space::arena, plan_.arena_bytes);
  plan_.arena_bytes = std::max(plan_.arena_bytes, prepare_bytes_);
  if (!runs_once()) plan_.added_to = summed_ranges(plan_);
  plan_.update = resolve(draft(Section::update), Space::update, plan_.update_bytes);
  return std::move(plan_);
}

// The nodes that attentions take over, so that no element-wise group does.
void Lowering::find_attention(std::vector<bool>& taken) {
  section_ = Section::body;
  std::vector<SoftmaxGradient> gradients;
  for (std::size_t i = 0; i < graph_.node_count(); ++i)
    if (auto match = match_softmax_gradient(graph_, NodeId(i), consumers_))
      gradients.push_back(std::move(*match));
  for (AttentionMatch& match : find_attentions(*this, gradients)) {
    if (!attention_fits(*this, match)) continue;
    for (NodeId inner : match.inner) mark_done(inner), taken[inner.index()] = true;
    taken[match.root.index()] = true;
    if (match.gradient)
      for (NodeId inner : match.gradient->inner) {
        taken[inner.index()] = true;
        if (inner != match.gradient->first) mark_done(inner);
      }
    attentions_.push_back(std::move(match));
  }
}

std::vector<ValueId> Lowering::values_of_attentions() {
  divide();
  plan_accumulators();
  std::vector<bool> taken(graph_.node_count(), false);
  find_attention(taken);
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    if (!taken[i]) continue;
    const Node& node = graph_.nodes()[i];
    for (const auto* ids : {&node.inputs, &node.outputs})
      std::ranges::copy_if(*ids, std::back_inserter(values), &ValueId::valid);
  }
  return values;
}

bool Lowering::lower_attention_at(NodeId id) {
  for (const AttentionMatch& match : attentions_) {
    if (match.root != id && !(match.gradient && match.gradient->first == id)) continue;
    match.root == id ? lower_attention(*this, match) : lower_attention_gradient(*this, match);
    mark_done(id);
    return true;
  }
  return false;
}

// The nodes that softmax gradients take over.
void Lowering::find_softmax_gradients(std::vector<bool>& taken) {
  section_ = Section::body;
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    if (taken[i]) continue;
    const auto match = match_softmax_gradient(graph_, NodeId(i), consumers_);
    if (!match || !softmax_gradient_fits(*this, *match)) continue;
    softmax_gradients_.emplace(match->root, *match);
    taken[i] = true;
    for (NodeId inner : match->inner) {
      mark_done(inner);
      taken[inner.index()] = true;
    }
  }
}

void Lowering::lower_section(Section section) {
  section_ = section;
  if (section == Section::body) {
    copy_inputs();
    find_written_outputs();
  }
  for (std::size_t i = 0; i < graph_.node_count(); ++i) lower_at(section, NodeId(i));
  if (section == Section::body) {
    for (const auto& [value, offset] : accumulator_of_)
      if (!accumulated_.contains(value)) accumulate(value, offset);
    copy_outputs(Section::body);
  }
  if (section == Section::update) {
    finish_updates();
    copy_outputs(Section::update);
  }
}

void Lowering::lower_at(Section section, NodeId id) {
  const std::size_t i = id.index();
  const bool waits = is_early(id) || waits_for_readers(id) || waits_for_optimizer(id);
  if (section_of_[i] == section && !layout_.is_alias[i] && !done_[i] && !waits) lower_node(id);
  if (section != Section::body) return;
  if (const auto due = early_updates_.find(static_cast<int>(i)); due != early_updates_.end())
    for (NodeId optimizer : due->second) lower_node(optimizer);
}

void Lowering::lower_node(NodeId id) {
  refusals_.clear();
  if (lower_attention_at(id)) return;
  if (const auto found = softmax_gradients_.find(id); found != softmax_gradients_.end()) {
    if (const Lowered done = lower_softmax_gradient(*this, found->second); !done)
      throw Error(ErrorCode::internal, to_string(done.error()), graph_.node(id).name);
    return mark_done(id);
  }
  const int group = fusion_.group_of[id.index()];
  if (group >= 0) {
    const FusionGroup& members = fusion_.groups[static_cast<std::size_t>(group)];
    if (members.root != id || done_[id.index()]) return;  // runs at its root's place
    lower_group(*this, members);
    for (NodeId member : members.members) mark_done(member);
    if (members.product) mark_done(*members.product);
    return;
  }
  lower_single(*this, id);
  mark_done(id);
}

}  // namespace superstep::target::cpu
