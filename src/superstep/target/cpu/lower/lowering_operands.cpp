// What the lowerers ask of values, and the memory that they lie in.
#include <utility>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

std::size_t aligned(std::size_t bytes) { return round_up(bytes, arena_alignment); }

}  // namespace

const View& Lowering::view(ValueId id) const {
  // In the update a value of the body is its accumulator, which is row-major whatever the body's layout.
  if (section_ == Section::update && accumulator_of_.contains(id)) {
    View& view = accumulator_views_[id];
    view = {id, 0, shape(id).row_major_strides()};
    return view;
  }
  return layout_.views[id.index()];
}

// In the update: the value of the body whose sum it is, or a view of; nothing where there is none.
std::optional<ValueId> Lowering::summed(ValueId id) const {
  if (section_ != Section::update) return std::nullopt;
  if (accumulator_of_.contains(id)) return id;
  const ValueId root = layout_.views[id.index()].root;
  if (section_of_value(id) != Section::update || !accumulator_of_.contains(root)) return std::nullopt;
  return root;
}

ElementType Lowering::element_in_memory(ValueId id) const {
  return summed(id) ? ElementType::f32 : type(id).element;
}

bool Lowering::is_row_major(ValueId id) const {
  const Strides dense = shape(id).row_major_strides();
  const Strides& strides = view(id).strides;
  for (int axis = 0; axis < shape(id).rank(); ++axis)
    if (shape(id)[axis] > 1 &&
        strides[static_cast<std::size_t>(axis)] != dense[static_cast<std::size_t>(axis)])
      return false;
  return true;
}

Strides Lowering::broadcast_strides(ValueId id, const Shape& target) const {
  const Shape& own = shape(id);
  Strides strides(static_cast<std::size_t>(target.rank()), 0);
  const int skip = target.rank() - own.rank();
  for (int axis = 0; axis < own.rank(); ++axis)
    if (own[axis] != 1)
      strides[static_cast<std::size_t>(axis + skip)] = view(id).strides[static_cast<std::size_t>(axis)];
  return strides;
}

std::span<const NodeId> Lowering::consumers(ValueId id) const { return consumers_[id.index()]; }

ValueId Lowering::widened(ValueId id) const {
  const ElementType element = type(id).element;
  const auto readers = consumers(id);
  if ((element != ElementType::bf16 && element != ElementType::f16) || readers.size() != 1 ||
      leaves_[id.index()])
    return id;
  const Node& reader = graph_.node(readers[0]);
  if (reader.op != "Cast" || type(reader.outputs[0]).element != ElementType::f32) return id;
  const int group = fusion_.group_of[readers[0].index()];
  if (group >= 0 && fusion_.groups[static_cast<std::size_t>(group)].members.size() != 1) return id;
  if (view(reader.outputs[0]).root != reader.outputs[0]) return id;
  return reader.outputs[0];
}

bool Lowering::is_stored(ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind != graph::ValueKind::computed) return true;
  const int group = fusion_.group_of[value.producer.index()];
  return group < 0 || fusion_.groups[static_cast<std::size_t>(group)].root == value.producer;
}

ValueId Lowering::unrounded(ValueId id) const {
  ValueId last = id;
  while (const auto source = before_cast(graph_, id)) {
    id = *source;
    if (is_stored(id)) last = id;
  }
  return last;
}

void Lowering::skip_widening(ValueId id) {
  if (widened(id) != id) mark_done(consumers(id)[0]);
}

std::optional<NodeId> Lowering::tap_numbers_of(ValueId indices) const {
  const auto found = tap_numbers_.find(indices);
  return found == tap_numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<DraftOperand> Lowering::kept_for(NodeId reader) const {
  const auto found = kept_.find(reader);
  return found == kept_.end() ? std::vector<DraftOperand>() : found->second;
}

const FusionGroup* Lowering::take_deferred(ValueId result) {
  const auto found = deferred_.find(result);
  if (found == deferred_.end()) return nullptr;
  const FusionGroup* group = found->second;
  deferred_.erase(found);
  return group;
}

Operand Lowering::state_operand(ValueId state) const { return std::get<Operand>(placed_.at(state)); }

DraftOperand Lowering::read(ValueId id) {
  const View& where = view(id);
  if (const auto sum = summed(id))
    return Operand{Space::accumulator, 0,
                   accumulator_of_.at(*sum) + static_cast<std::size_t>(where.offset) * sizeof(float)};
  if (!placed_.contains(where.root)) lower_waiting(where.root);
  const auto found = placed_.find(where.root);
  if (found == placed_.end())
    throw Error(ErrorCode::internal, "read before it was written", "value %" + graph_.value(id).name);
  DraftOperand operand = found->second;
  const std::size_t bytes = static_cast<std::size_t>(where.offset) * size_in_bytes(type(id).element);
  std::visit([&](auto& place) { place.offset += bytes; }, operand);
  return operand;
}

// Parameters, and what is made of them, rounded ahead are mostly read behind their Cast, when they are
// packed, zeros are mostly added to by kernels that clear their own sums, and bytes are read as they are by
// products that add them: such a node runs where somebody reads its result alone. Whether a kernel does is
// known when it was prepared, not before.
bool Lowering::waits_for_readers(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.op == "ConstantOfShape") return is_zero(graph_, node.outputs[0]);
  if (is_read_bytes(graph_, node)) return true;
  if (section_of_[id.index()] != Section::prepare || node.op != "Cast") return false;
  const int group = fusion_.group_of[id.index()];
  return group < 0 || fusion_.groups[static_cast<std::size_t>(group)].members.size() == 1;
}

// What was put off until somebody reads it: a node that waits, or a group that waits for another reader.
void Lowering::lower_waiting(ValueId id) {
  const graph::Value& value = graph_.value(id);
  if (value.kind != graph::ValueKind::computed) return;
  const FusionGroup* const group = take_deferred(id);
  if (!group && !waits_for_readers(value.producer)) return;
  const Section here = std::exchange(section_, section_of_[value.producer.index()]);
  std::vector<Refusal> refusals = std::exchange(refusals_, {});
  group ? lower_group_alone(*this, *group) : lower_node(value.producer);
  refusals_ = std::move(refusals);
  section_ = here;
}

DraftOperand Lowering::write(ValueId id) {
  if (const auto found = placed_.find(id); found != placed_.end()) return found->second;
  if (const View& part = view(id); part.root != id) {  // of a concatenation
    DraftOperand operand = write(part.root);
    const std::size_t bytes = static_cast<std::size_t>(part.offset) * size_in_bytes(type(id).element);
    std::visit([&](auto& place) { place.offset += bytes; }, operand);
    return operand;
  }
  return placed_[id] = place_for(id);
}

// What `prepare` makes is kept, and an output that needs no copy is the caller's memory; everything else is a
// block of the section's arena.
DraftOperand Lowering::place_for(ValueId root) {
  const std::size_t bytes = byte_count(root);
  if (section_ == Section::prepare) return Operand{Space::shared, 0, shared_bytes(bytes)};
  const auto output = output_of_.find(root);
  if (section_ != Section::body || output == output_of_.end()) return temporary(bytes);
  plan_.output_bytes += bytes;
  return Operand{Space::output, output->second, 0};
}

bool Lowering::take_over(ValueId from, ValueId to) {
  const auto alone = [&](ValueId id) { return view(id).root == id && !leaves_section(id); };
  if (!alone(from) || view(to).root != to || consumers(from).size() != 1) return false;
  if (view(from).strides != view(to).strides || type(from) != type(to)) return false;
  const auto found = placed_.find(from);
  if (found == placed_.end() || !std::holds_alternative<BlockOperand>(found->second)) return false;
  return placed_.emplace(to, found->second).second;
}

DraftOperand Lowering::temporary(std::size_t bytes) {
  Draft& current = draft(section_);
  current.blocks.push_back({.bytes = bytes, .first = static_cast<int>(current.steps.size()), .last = -1});
  return BlockOperand{current.blocks.size() - 1, 0};
}

DraftOperand Lowering::packed(ValueId source, const std::string& tag, kernels::KernelPointer kernel,
                              std::size_t bytes) {
  const auto key = std::pair(source, tag);
  if (const auto found = packed_.find(key); found != packed_.end()) return found->second;
  const Section here = section_;
  DraftOperand place;
  // Where every run has new weights and one micro-batch, what is packed of them lives as long as it is read.
  const bool kept = here == Section::prepare || !whole_batch_ || !plan_.trains;
  if (kept && section_of_value(view(source).root) == Section::prepare) {
    section_ = Section::prepare;
    place = Operand{Space::shared, 0, shared_bytes(bytes)};
  } else {
    place = temporary(bytes);
  }
  emit("pack", graph_.value(source).name, std::move(kernel), {read(source)}, {place});
  section_ = here;
  return packed_[key] = place;
}

std::size_t Lowering::byte_count(ValueId id) const {
  return static_cast<std::size_t>(shape(id).element_count()) * size_in_bytes(type(id).element);
}

std::size_t Lowering::shared_bytes(std::size_t bytes) {
  const std::size_t offset = plan_.shared_bytes;
  plan_.shared_bytes += aligned(bytes);
  shared_pieces_.push_back({offset, aligned(bytes)});
  return offset;
}

std::size_t Lowering::accumulator_bytes(std::size_t bytes) {
  const std::size_t offset = plan_.accumulator_bytes;
  plan_.accumulator_slots.push_back(offset);
  plan_.accumulator_bytes += aligned(bytes);
  return offset;
}

}  // namespace superstep::target::cpu
