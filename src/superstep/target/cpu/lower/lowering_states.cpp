// States, the sums over micro-batches that update them, and what is copied to and from the user.
#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/operators/lower_elementwise.h"

namespace superstep::target::cpu {

// States lie one after another in the order in which the optimiser reads them, first all parameters, then
// all first moments, then all second moments: one pass over flat memory updates them. Those with a pass of
// their own stand behind.
void Lowering::place_states() {
  const auto place = [&](ValueId id) {
    if (!id.valid() || graph_.value(id).kind != graph::ValueKind::state || placed_.contains(id)) return;
    const graph::Value& value = graph_.value(id);
    const std::size_t offset = shared_bytes(byte_count(id));
    placed_[id] = Operand{Space::shared, 0, offset};
    plan_.states.push_back({value.name, value.type, offset});
    plan_.initial.emplace_back(offset, value.data);
  };
  for (const Section section : {Section::update, Section::body})
    for (std::size_t input : {0u, 2u, 3u})  // parameter, then moments: see op/training/optimizer.h
      for (std::size_t i = 0; i < graph_.node_count(); ++i) {
        const Node& node = graph_.nodes()[i];
        if (is_optimizer(node) && section_of_[i] == section && input < node.inputs.size())
          place(node.inputs[input]);
      }
  for (ValueId state : graph_.states()) place(state);
  for (std::size_t i = 0; i < graph_.value_count(); ++i) {
    const graph::Value& value = graph_.values()[i];
    if (value.kind != graph::ValueKind::constant) continue;
    const std::size_t offset = shared_bytes(byte_count(ValueId(i)));
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

bool Lowering::accumulator_averages(std::uint32_t port) const {
  return std::ranges::any_of(plan_.averaged,
                             [&](const AveragedOutput& output) { return output.port == port; });
}

// Adds a value that leaves the body into its accumulator, for producers that cannot do it themselves.
void Lowering::accumulate(ValueId id, std::size_t offset) {
  const Strides dense = shape(id).row_major_strides();
  const Operand slot{Space::accumulator, 0, offset};
  // What lies in another order is turned round in tiles: read along columns that a power of two of bytes lies
  // between, every element would come from beyond the second-level cache.
  if (runs_once())
    if (auto copy = kernels::prepare(kernels::StridedCopy{.extents = shape(id).extents(),
                                                          .x_strides = view(id).strides,
                                                          .y_strides = dense,
                                                          .x_type = type(id).element}))
      return emit("accumulate", graph_.value(id).name, std::move(*copy), {read(id)}, {slot});
  kernels::VectorProgram program(shape(id).extents());
  std::vector<DraftOperand> inputs;
  std::optional<kernels::VectorProgram::Value> sum;
  if (!runs_once()) {
    sum = program.input(ElementType::f32, dense);
    inputs.push_back(slot);
  }
  const auto term = program.input(type(id).element, view(id).strides);
  inputs.push_back(read(id));
  program.store(sum ? program.binary(kernels::VectorOp::add, *sum, term) : term, ElementType::f32, dense);
  auto kernel = kernels::prepare(program);
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "sum of " + graph_.value(id).name);
  emit("accumulate", graph_.value(id).name, std::move(*kernel), std::move(inputs), {slot});
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

std::optional<DraftOperand> Lowering::accumulator(ValueId id, Sum sum) {
  if (!sums_in_place(id)) return std::nullopt;
  accumulated_[id] = true;
  if (const auto state = sum == Sum::written ? state_made_of(id) : std::nullopt) {
    in_place_[id] = true;
    return state_operand(*state);
  }
  note_sum(accumulator_of_[id], static_cast<std::size_t>(shape(id).element_count()) * sizeof(float), sum);
  return Operand{Space::accumulator, 0, accumulator_of_[id]};
}

// The state whose next value is this one and nothing else, where the step that makes it may write the state
// itself: nobody reads either.
std::optional<ValueId> Lowering::state_made_of(ValueId next) const {
  if (!runs_once() || !consumers_[next.index()].empty()) return std::nullopt;
  std::optional<ValueId> made;
  for (const graph::Update& update : graph_.updates()) {
    if (update.next != next) continue;
    const bool read = !consumers_[update.state.index()].empty() || leaves_[update.state.index()];
    if (made || read || type(update.state) != type(next)) return std::nullopt;
    made = update.state;
  }
  for (const graph::Output& output : graph_.outputs())
    if (output.value == next) return std::nullopt;
  return made;
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
  note_sum(native.offset, elements * sizeof(float), Sum::added_to);
  const Section here = section_;
  section_ = Section::update;
  emit("unpack", graph_.value(id).name, std::move(unpack), {native},
       {Operand{Space::accumulator, 0, accumulator_of_[id]}});
  section_ = here;
  return native;
}

// Several micro-batches are added up whatever a step does for one; see run() for those.
void Lowering::note_sum(std::size_t offset, std::size_t bytes, Sum sum) {
  if (runs_once() && sum == Sum::added_to) plan_.added_to.push_back({offset, bytes});
}

// A node of the update that is not an optimiser and not lowered yet reads the value or a view of it.
bool Lowering::update_still_reads(ValueId id) const {
  return std::ranges::any_of(consumers_[id.index()], [&](NodeId reader) {
    const Node& node = graph_.node(reader);
    if (section_of_[reader.index()] != Section::update || done_[reader.index()] || is_optimizer(node))
      return false;
    if (!layout_.is_alias[reader.index()]) return true;
    return std::ranges::any_of(node.outputs,
                               [&](ValueId view) { return view.valid() && update_still_reads(view); });
  });
}

void Lowering::write_in_place(ValueId next, ValueId state) {
  if (update_still_reads(state))
    throw Error(ErrorCode::unsupported, "a state is read after its optimizer wrote it",
                "state %" + graph_.value(state).name);
  placed_[next] = placed_.at(state);
  in_place_[next] = true;
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

// Whether the body makes all of the memory that the output is a view of, and in the caller's order: who makes
// it may as well write it where the caller wants it.
bool Lowering::lies_as_output(ValueId id) const {
  const View& where = view(id);
  const graph::Value& root = graph_.value(where.root);
  return root.kind == graph::ValueKind::computed && section_of_value(where.root) == Section::body &&
         root.type.element == type(id).element && where.offset == 0 && is_row_major(id) &&
         root.type.shape.element_count() == shape(id).element_count();
}

// Outputs that need no copy. What two of them show is copied for the second.
void Lowering::find_written_outputs() {
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i].value;
    const auto port = static_cast<std::uint32_t>(i);
    if (section_of_value(value) == Section::body && !accumulator_averages(port) && lies_as_output(value))
      output_of_.emplace(view(value).root, port);
  }
}

void Lowering::copy_outputs(Section section) {
  for (std::size_t port = 0; port < graph_.outputs().size(); ++port) {
    const graph::Output& output = graph_.outputs()[port];
    const Section home = section_of_value(output.value);
    const bool here = home == Section::update ? section == Section::update : section == Section::body;
    if (!here || accumulator_averages(static_cast<std::uint32_t>(port))) continue;
    const DraftOperand made = read(output.value);
    const auto* const place = std::get_if<Operand>(&made);
    if (place && place->space == Space::output && place->port == port) continue;
    auto kernel = kernels::prepare(kernels::StridedCopy{.extents = shape(output.value).extents(),
                                                        .x_strides = view(output.value).strides,
                                                        .y_strides = shape(output.value).row_major_strides(),
                                                        .x_type = type(output.value).element,
                                                        .y_type = type(output.value).element});
    if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "copy of output " + output.name);
    emit("copy", output.name, std::move(*kernel), {made},
         {Operand{Space::output, static_cast<std::uint32_t>(port), 0}});
  }
}

}  // namespace superstep::target::cpu
