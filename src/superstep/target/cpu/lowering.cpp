#include "superstep/target/cpu/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "superstep/target/cpu/kernels/copy.h"
#include "superstep/target/cpu/kernels/vector_program.h"
#include "superstep/target/cpu/lower_elementwise.h"
#include "superstep/target/cpu/lower_lookup.h"
#include "superstep/target/cpu/lower_softmax.h"

namespace superstep::target::cpu {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
}

std::size_t byte_count(const graph::ValueType& type) {
  return static_cast<std::size_t>(type.shape.element_count()) * size_in_bytes(type.element);
}

constexpr int never = std::numeric_limits<int>::max();

// Elements of a parameter from which on a pass of its own costs nothing beside the memory it saves: 256 kB.
constexpr std::int64_t smallest_early_update = 1 << 16;

// Random masks look as if they depended on state alone, but differ from one micro-batch to the next.
bool depends_on_micro_batch(const Node& node) { return node.op == "superstep.RandomMask"; }

}  // namespace

std::unexpected<Refusal> refuse(const char* implementation, std::string reason) {
  return std::unexpected(Refusal{implementation, std::move(reason)});
}

Lowering::Lowering(const Graph& graph, const std::vector<bool>& batched_output, bool whole_batch)
    : graph_(graph),
      batched_output_(batched_output),
      whole_batch_(whole_batch),
      layout_(assign_layout(graph)),
      section_of_(graph.node_count(), Section::body),
      done_(graph.node_count(), false),
      consumers_(graph.value_count()),
      leaves_(graph.value_count(), false) {}

Plan Lowering::run() {
  divide();
  place_states();
  plan_accumulators();
  const std::vector<bool> taken = find_softmax_gradients();
  skip_zeros();
  fusion_ = find_fusion(graph_, leaves_, section_of_, taken);
  find_early_updates();
  for (Section section : {Section::prepare, Section::body, Section::update}) lower_section(section);
  plan_.prepare = resolve(draft(Section::prepare), Space::arena, prepare_bytes_);
  plan_.body = resolve(draft(Section::body), Space::arena, plan_.arena_bytes);
  plan_.arena_bytes = std::max(plan_.arena_bytes, prepare_bytes_);
  plan_.update = resolve(draft(Section::update), Space::update, plan_.update_bytes);
  return std::move(plan_);
}

// ---- preparation -----------------------------------------------------------------------------------

void Lowering::divide() {
  plan_.trains = !graph_.updates().empty();
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.nodes()[i];
    for (ValueId input : node.inputs)
      if (input.valid()) consumers_[input.index()].push_back(NodeId(i));
    if (node.phase == graph::Phase::update) {
      section_of_[i] = Section::update;
      continue;
    }
    const bool known_before = std::ranges::all_of(node.inputs, [&](ValueId input) {
      return !input.valid() || section_of_value(input) == Section::prepare;
    });
    if (known_before && !depends_on_micro_batch(node)) section_of_[i] = Section::prepare;
  }
  for (std::size_t i = 0; i < graph_.node_count(); ++i)
    if (updates_early(NodeId(i))) section_of_[i] = Section::body;
  for (const graph::Output& output : graph_.outputs()) leaves_[output.value.index()] = true;
  for (const graph::Update& update : graph_.updates()) leaves_[update.next.index()] = true;
  for (std::size_t i = 0; i < graph_.node_count(); ++i)
    for (ValueId input : graph_.nodes()[i].inputs)
      if (input.valid() && section_of_value(input) != section_of_[i]) leaves_[input.index()] = true;
}

// A large parameter whose gradient nothing else waits for is updated as soon as that gradient is there and
// nobody reads the old values any more: the gradient is still in cache, and its memory serves the next one.
// Small ones are updated together, in one pass over flat memory.
bool Lowering::updates_early(NodeId optimizer) const {
  const Node& node = graph_.node(optimizer);
  if (!whole_batch_ || section_of_[optimizer.index()] != Section::update || !is_optimizer(node)) return false;
  const ValueId parameter = node.inputs[0], gradient = node.inputs[1];
  if (shape(parameter).element_count() < smallest_early_update) return false;
  const View& where = layout_.views[gradient.index()];
  const bool is_ready_in_body = section_of_value(gradient) == Section::body &&
                                graph_.value(where.root).kind == graph::ValueKind::computed &&
                                type(gradient).element == ElementType::f32 &&
                                where.strides == shape(gradient).row_major_strides();
  if (!is_ready_in_body || last_reader(parameter) == never) return false;
  for (const graph::Output& output : graph_.outputs())
    if (output.value == gradient) return false;
  // Parameter and moments are states that this node alone updates; the rest of its inputs are there before.
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (!input.valid() || input == gradient) continue;
    if (graph_.value(input).kind == graph::ValueKind::computed) return false;
  }
  for (ValueId output : node.outputs)
    if (output.valid() && !consumers_[output.index()].empty()) return false;
  return graph_.update_of(parameter) == node.outputs[0];
}

// The last node of the body that reads the value or a view of it; `never` where somebody reads it later.
int Lowering::last_reader(ValueId id) const {
  int last = -1;
  for (const graph::Output& output : graph_.outputs())
    if (output.value == id) return never;
  for (const graph::Update& update : graph_.updates())
    if (update.next == id) return never;
  for (NodeId reader : consumers_[id.index()]) {
    const Node& node = graph_.node(reader);
    if (is_optimizer(node) && node.inputs[0] == id) continue;
    if (node.phase == graph::Phase::update) return never;
    last = std::max(last, place_of(reader));
    if (!layout_.is_alias[reader.index()]) continue;
    for (ValueId output : node.outputs)
      if (output.valid()) last = std::max(last, last_reader(output));
  }
  return last;
}

// Where in the body a node runs: fused ones at the place of the last of their group.
int Lowering::place_of(NodeId id) const {
  int place = static_cast<int>(id.index());
  if (fusion_.group_of.empty()) return place;
  if (const int group = fusion_.group_of[id.index()]; group >= 0)
    place = static_cast<int>(fusion_.groups[static_cast<std::size_t>(group)].root.index());
  for (const auto& [root, match] : softmax_gradients_)
    if (std::ranges::find(match.inner, id) != match.inner.end())
      place = std::max(place, static_cast<int>(root.index()));
  return place;
}

// The node of the body after which the value is in memory.
int Lowering::made_at(ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind != graph::ValueKind::computed) return -1;
  if (!layout_.is_alias[value.producer.index()]) return place_of(value.producer);
  int made = -1;
  for (ValueId input : graph_.node(value.producer).inputs)
    if (input.valid()) made = std::max(made, made_at(input));
  return made;
}

// A node of the update that divide() has put into the body.
bool Lowering::is_early(NodeId id) const {
  return section_of_[id.index()] == Section::body && graph_.node(id).phase == graph::Phase::update;
}

void Lowering::find_early_updates() {
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (!is_early(NodeId(i))) continue;
    const int made = made_at(node.inputs[1]);
    early_updates_[std::max(made, last_reader(node.inputs[0]))].push_back(NodeId(i));
  }
}

Section Lowering::section_of_value(ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind == graph::ValueKind::computed) return section_of_[value.producer.index()];
  return value.kind == graph::ValueKind::input ? Section::body : Section::prepare;
}

std::size_t Lowering::shared_bytes(std::size_t bytes) {
  const std::size_t offset = plan_.shared_bytes;
  plan_.shared_bytes += aligned(bytes);
  return offset;
}

std::size_t Lowering::accumulator_bytes(std::size_t bytes) {
  const std::size_t offset = plan_.accumulator_bytes;
  plan_.accumulator_slots.push_back(offset);
  plan_.accumulator_bytes += aligned(bytes);
  return offset;
}

// States lie one after another in the order in which the optimiser reads them, first all parameters, then
// all first moments, then all second moments: one pass over flat memory updates them. Those with a pass of
// their own stand behind.
void Lowering::place_states() {
  const auto place = [&](ValueId id) {
    if (!id.valid() || graph_.value(id).kind != graph::ValueKind::state || placed_.contains(id)) return;
    const graph::Value& value = graph_.value(id);
    const std::size_t offset = shared_bytes(byte_count(value.type));
    placed_[id] = Operand{Space::shared, 0, offset};
    plan_.states.push_back({value.name, value.type, offset});
    plan_.initial.emplace_back(offset, value.data);
  };
  for (const Section section : {Section::update, Section::body})
    for (std::size_t input : {0u, 2u, 3u})  // parameter, then moments: see op/optimizer.h
      for (std::size_t i = 0; i < graph_.node_count(); ++i) {
        const Node& node = graph_.nodes()[i];
        if (is_optimizer(node) && section_of_[i] == section && input < node.inputs.size())
          place(node.inputs[input]);
      }
  for (ValueId state : graph_.states()) place(state);
  for (std::size_t i = 0; i < graph_.value_count(); ++i) {
    const graph::Value& value = graph_.values()[i];
    if (value.kind != graph::ValueKind::constant) continue;
    const std::size_t offset = shared_bytes(byte_count(value.type));
    placed_[ValueId(i)] = Operand{Space::shared, 0, offset};
    plan_.initial.emplace_back(offset, value.data);
  }
}

// What leaves the body other than as a batched output is summed over micro-batches: gradients (in the
// optimiser's order, so that they are flat beside the parameters), new states, scalar outputs.
void Lowering::plan_accumulators() {
  const auto add = [&](ValueId id) {
    if (!id.valid() || accumulator_of_.contains(id) || section_of_value(id) != Section::body) return;
    if (graph_.value(id).kind == graph::ValueKind::input) return;
    if (!is_floating(type(id).element))
      throw Error(ErrorCode::unsupported, "only floating-point values can be averaged over micro-batches",
                  "value %" + graph_.value(id).name, "compile with the micro-batch equal to the batch");
    accumulator_of_[id] =
        accumulator_bytes(static_cast<std::size_t>(shape(id).element_count()) * sizeof(float));
  };
  const auto in_update = [&](std::size_t node) { return section_of_[node] == Section::update; };
  for (std::size_t i = 0; i < graph_.node_count(); ++i)
    if (in_update(i) && is_optimizer(graph_.nodes()[i])) add(graph_.nodes()[i].inputs[1]);
  for (std::size_t i = 0; i < graph_.node_count(); ++i)
    if (in_update(i))
      for (ValueId input : graph_.nodes()[i].inputs) add(input);
  for (const graph::Update& update : graph_.updates())
    if (const graph::Value& next = graph_.value(update.next);
        next.kind != graph::ValueKind::computed || !is_optimizer(graph_.node(next.producer)))
      add(update.next);
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i].value;
    if (batched_output_[i] || section_of_value(value) != Section::body) continue;
    add(value);
    if (accumulator_of_.contains(value))
      plan_.averaged.push_back({static_cast<std::uint32_t>(i), accumulator_of_[value],
                                static_cast<std::size_t>(shape(value).element_count())});
  }
}

// The nodes that softmax gradients take over, so that no element-wise group does.
std::vector<bool> Lowering::find_softmax_gradients() {
  std::vector<bool> taken(graph_.node_count(), false);
  section_ = Section::body;
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const auto match = match_softmax_gradient(graph_, NodeId(i), consumers_);
    if (!match || !softmax_gradient_fits(*this, *match)) continue;
    softmax_gradients_.emplace(match->root, *match);
    taken[i] = true;
    for (NodeId inner : match->inner) {
      mark_done(inner);
      taken[inner.index()] = true;
    }
  }
  return taken;
}

// Zeros that scatters alone add to are never made.
void Lowering::skip_zeros() {
  const auto adds_to_zeros = [&](NodeId id) {
    const Node& node = graph_.node(id);
    return (node.op == "ScatterND" && adds_rows_to_zeros(graph_, node)) ||
           (node.op == "ScatterElements" && adds_elements_to_zeros(graph_, node));
  };
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (node.op != "ConstantOfShape" || !is_zero(graph_, node.outputs[0])) continue;
    const auto readers = consumers(node.outputs[0]);
    bool left_out = !readers.empty();
    for (const graph::Output& output : graph_.outputs())
      left_out = left_out && output.value != node.outputs[0];
    if (left_out && std::ranges::all_of(readers, adds_to_zeros)) mark_done(NodeId(i));
  }
}

// ---- sections --------------------------------------------------------------------------------------

void Lowering::lower_section(Section section) {
  section_ = section;
  if (section == Section::body) copy_inputs();
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
  const bool waits = is_early(id) || waits_for_readers(id);
  if (section_of_[i] == section && !layout_.is_alias[i] && !done_[i] && !waits) lower_node(id);
  if (section != Section::body) return;
  if (const auto due = early_updates_.find(static_cast<int>(i)); due != early_updates_.end())
    for (NodeId optimizer : due->second) lower_node(optimizer);
}

void Lowering::lower_node(NodeId id) {
  refusals_.clear();
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

void Lowering::copy_inputs() {
  for (std::size_t port = 0; port < graph_.inputs().size(); ++port) {
    const ValueId id = graph_.inputs()[port];
    const Operand user{Space::input, static_cast<std::uint32_t>(port), 0};
    if (is_row_major(id)) {
      placed_[id] = user;
      continue;
    }
    auto kernel = kernels::prepare(kernels::StridedCopy{.extents = shape(id).extents(),
                                                        .x_strides = shape(id).row_major_strides(),
                                                        .y_strides = view(id).strides,
                                                        .x_type = type(id).element,
                                                        .y_type = type(id).element});
    if (!kernel)
      throw Error(ErrorCode::internal, to_string(kernel.error()), "copy of input " + graph_.value(id).name);
    emit("copy", graph_.value(id).name, std::move(*kernel), {user}, {write(id)});
  }
}

void Lowering::copy_outputs(Section section) {
  for (std::size_t port = 0; port < graph_.outputs().size(); ++port) {
    const graph::Output& output = graph_.outputs()[port];
    const Section home = section_of_value(output.value);
    const bool here = home == Section::update ? section == Section::update : section == Section::body;
    if (!here || accumulator_averages(static_cast<std::uint32_t>(port))) continue;
    auto kernel = kernels::prepare(kernels::StridedCopy{.extents = shape(output.value).extents(),
                                                        .x_strides = view(output.value).strides,
                                                        .y_strides = shape(output.value).row_major_strides(),
                                                        .x_type = type(output.value).element,
                                                        .y_type = type(output.value).element});
    if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "copy of output " + output.name);
    emit("copy", output.name, std::move(*kernel), {read(output.value)},
         {Operand{Space::output, static_cast<std::uint32_t>(port), 0}});
  }
}

bool Lowering::accumulator_averages(std::uint32_t port) const {
  return std::ranges::any_of(plan_.averaged,
                             [&](const AveragedOutput& output) { return output.port == port; });
}

// Adds a value that leaves the body into its accumulator, for producers that cannot do it themselves.
void Lowering::accumulate(ValueId id, std::size_t offset) {
  kernels::VectorProgram program(shape(id).extents());
  const Strides dense = shape(id).row_major_strides();
  const auto sum = program.input(ElementType::f32, dense);
  const auto term = program.input(type(id).element, view(id).strides);
  program.store(program.binary(kernels::VectorOp::add, sum, term), ElementType::f32, dense);
  auto kernel = kernels::prepare(program);
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "sum of " + graph_.value(id).name);
  const Operand slot{Space::accumulator, 0, offset};
  emit("accumulate", graph_.value(id).name, std::move(*kernel), {slot, read(id)}, {slot});
}

// A counter that addresses random masks goes on by the samples of the batch, not of one micro-batch.
bool Lowering::counts_samples(const graph::Update& update) {
  const auto readers = consumers(update.state);
  const bool addresses_masks = std::ranges::any_of(
      readers, [&](NodeId reader) { return graph_.node(reader).op == "superstep.RandomMask"; });
  if (!addresses_masks) return false;
  const graph::Value& next = graph_.value(update.next);
  if (next.kind != graph::ValueKind::computed || graph_.node(next.producer).op != "Add") return false;
  const Node& sum = graph_.node(next.producer);
  for (std::size_t side : {0u, 1u}) {
    if (sum.inputs[side] != update.state) continue;
    if (const auto increment = uniform_constant(graph_, sum.inputs[1 - side])) {
      plan_.counters.push_back({state_operand(update.state).offset, static_cast<std::int64_t>(*increment)});
      return true;
    }
  }
  return false;
}

// New state that was not written in place is copied to where the state lives, when everybody has read it.
void Lowering::finish_updates() {
  for (const graph::Update& update : graph_.updates()) {
    if (in_place_.contains(update.next) || update.next == update.state || counts_samples(update)) continue;
    if (graph_.value(update.next).kind == graph::ValueKind::state)
      throw Error(ErrorCode::unsupported, "a state that takes over another state's value",
                  "state %" + graph_.value(update.state).name);
    const graph::ValueType& state = type(update.state);
    const bool from_body = accumulator_of_.contains(update.next);
    auto kernel =
        kernels::prepare(kernels::StridedCopy{.extents = state.shape.extents(),
                                              .x_strides = view(update.next).strides,
                                              .y_strides = state.shape.row_major_strides(),
                                              .x_type = from_body ? ElementType::f32 : state.element,
                                              .y_type = state.element});
    if (!kernel)
      throw Error(ErrorCode::internal, to_string(kernel.error()),
                  "update of " + graph_.value(update.state).name);
    emit("copy", graph_.value(update.state).name, std::move(*kernel), {read(update.next)},
         {state_operand(update.state)});
  }
}

// ---- questions -------------------------------------------------------------------------------------

const View& Lowering::view(ValueId id) const {
  // In the update a value of the body is its accumulator, which is row-major whatever the body's layout.
  if (section_ == Section::update && accumulator_of_.contains(id)) {
    View& view = accumulator_views_[id];
    view = {id, 0, shape(id).row_major_strides()};
    return view;
  }
  return layout_.views[id.index()];
}

ElementType Lowering::element_in_memory(ValueId id) const {
  return section_ == Section::update && accumulator_of_.contains(id) ? ElementType::f32 : type(id).element;
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

// ---- memory ----------------------------------------------------------------------------------------

DraftOperand Lowering::read(ValueId id) {
  if (section_ == Section::update)
    if (const auto found = accumulator_of_.find(id); found != accumulator_of_.end())
      return Operand{Space::accumulator, 0, found->second};
  const View& where = view(id);
  if (!placed_.contains(where.root)) lower_waiting(where.root);
  const auto found = placed_.find(where.root);
  if (found == placed_.end())
    throw Error(ErrorCode::internal, "read before it was written", "value %" + graph_.value(id).name);
  DraftOperand operand = found->second;
  const std::size_t bytes = static_cast<std::size_t>(where.offset) * size_in_bytes(type(id).element);
  std::visit([&](auto& place) { place.offset += bytes; }, operand);
  return operand;
}

// Parameters rounded ahead are mostly read behind their Cast, when they are packed: it runs where somebody
// reads its result alone.
bool Lowering::waits_for_readers(NodeId id) const {
  const Node& node = graph_.node(id);
  if (section_of_[id.index()] != Section::prepare || node.op != "Cast") return false;
  const int group = fusion_.group_of[id.index()];
  if (group >= 0 && fusion_.groups[static_cast<std::size_t>(group)].members.size() != 1) return false;
  const graph::ValueKind kind = graph_.value(node.inputs[0]).kind;
  return kind == graph::ValueKind::state || kind == graph::ValueKind::constant;
}

void Lowering::lower_waiting(ValueId id) {
  const graph::Value& value = graph_.value(id);
  if (value.kind != graph::ValueKind::computed || !waits_for_readers(value.producer)) return;
  const Section here = std::exchange(section_, Section::prepare);
  std::vector<Refusal> refusals = std::exchange(refusals_, {});
  lower_node(value.producer);
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
  // What `prepare` makes is kept; everything else is a block of the section's arena.
  if (section_ == Section::prepare)
    placed_[id] = Operand{Space::shared, 0, shared_bytes(byte_count(type(id)))};
  else
    placed_[id] = temporary(byte_count(type(id)));
  return placed_[id];
}

DraftOperand Lowering::temporary(std::size_t bytes) {
  Draft& current = draft(section_);
  current.blocks.push_back({.bytes = bytes, .first = static_cast<int>(current.steps.size()), .last = -1});
  return BlockOperand{current.blocks.size() - 1, 0};
}

std::optional<DraftOperand> Lowering::accumulator(ValueId id) {
  if (!sums_in_place(id)) return std::nullopt;
  accumulated_[id] = true;
  return Operand{Space::accumulator, 0, accumulator_of_[id]};
}

bool Lowering::sums_in_place(ValueId id) const {
  if (section_ != Section::body || !accumulator_of_.contains(id)) return false;
  if (graph_.type(id).element != ElementType::f32) return false;
  // Somebody in the body reads it too: it needs a place of its own.
  for (NodeId reader : consumers_[id.index()])
    if (section_of_[reader.index()] == Section::body) return false;
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i)
    if (graph_.outputs()[i].value == id && batched_output_[i]) return false;
  return true;
}

std::optional<DraftOperand> Lowering::native_accumulator(ValueId id, std::size_t elements,
                                                         kernels::KernelPointer unpack) {
  if (!sums_in_place(id)) return std::nullopt;
  accumulated_[id] = true;
  const Operand native{Space::accumulator, 0, accumulator_bytes(elements * sizeof(float))};
  const Section here = section_;
  section_ = Section::update;
  emit("unpack", graph_.value(id).name, std::move(unpack), {native},
       {Operand{Space::accumulator, 0, accumulator_of_[id]}});
  section_ = here;
  return native;
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

void Lowering::write_in_place(ValueId next, ValueId state) {
  for (NodeId reader : consumers_[state.index()])
    if (section_of_[reader.index()] == Section::update && !done_[reader.index()] &&
        !is_optimizer(graph_.node(reader)))
      throw Error(ErrorCode::unsupported, "a state is read after its optimiser wrote it",
                  "state %" + graph_.value(state).name);
  placed_[next] = placed_.at(state);
  in_place_[next] = true;
}

void Lowering::emit(std::string op, std::string node, kernels::KernelPointer kernel,
                    std::vector<DraftOperand> inputs, std::vector<DraftOperand> outputs) {
  Draft& current = draft(section_);
  const int index = static_cast<int>(current.steps.size());
  DraftStep step{
      .kernel = std::move(kernel), .inputs = std::move(inputs), .outputs = std::move(outputs), .info = {}};
  const kernels::KernelInfo& info = step.kernel->info();
  step.info = {.node = std::move(node),
               .op = std::move(op),
               .kernel = info.name,
               .refusals = {},
               .flops = info.flops,
               .bytes = info.bytes,
               .arithmetic = info.arithmetic};
  for (const Refusal& refusal : refusals_) step.info.refusals.push_back(to_string(refusal));
  for (const Refusal& refusal : info.refused) step.info.refusals.push_back(to_string(refusal));
  for (const auto* operands : {&step.inputs, &step.outputs})
    for (const DraftOperand& operand : *operands)
      if (const auto* block = std::get_if<BlockOperand>(&operand)) {
        Block& lifetime = current.blocks[block->block];
        lifetime.first = std::min(lifetime.first, index);
        lifetime.last = std::max(lifetime.last, index);
      }
  plan_.scratch_bytes = std::max(plan_.scratch_bytes, info.scratch_bytes);
  current.steps.push_back(std::move(step));
}

std::vector<Step> Lowering::resolve(Draft& draft, Space space, std::size_t& bytes) {
  bytes = pack(draft.blocks);
  const auto place = [&](const DraftOperand& operand) {
    if (const auto* fixed = std::get_if<Operand>(&operand)) return *fixed;
    const auto& block = std::get<BlockOperand>(operand);
    return Operand{space, 0, draft.blocks[block.block].offset + block.offset};
  };
  std::vector<Step> steps;
  for (DraftStep& step : draft.steps) {
    Step resolved{.kernel = step.kernel, .inputs = {}, .outputs = {}, .info = std::move(step.info)};
    for (const DraftOperand& operand : step.inputs) resolved.inputs.push_back(place(operand));
    for (const DraftOperand& operand : step.outputs) resolved.outputs.push_back(place(operand));
    steps.push_back(std::move(resolved));
  }
  return steps;
}

}  // namespace superstep::target::cpu
