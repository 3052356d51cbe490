#include "superstep/target/cpu/lower/operators/recurrent/recurrent_lowering.h"

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/move/copy.h"

namespace superstep::target::cpu {

ValueId input_of(const Node& node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : ValueId();
}

bool has_input(const Node& node, std::size_t i) { return input_of(node, i).valid(); }

DraftOperand shifted(DraftOperand operand, std::int64_t elements) {
  std::visit([&](auto& place) { place.offset += static_cast<std::size_t>(elements) * sizeof(float); },
             operand);
  return operand;
}

RecurrentLowering::RecurrentLowering(Lowering& lowering, const Node& node, const char* kernel)
    : lowering_(lowering),
      node_(node),
      kernel_(kernel),
      batch_first_(node.attributes.integer("layout", 0) != 0),
      reverse_(node.attributes.text("direction", "forward") == "reverse") {
  const Shape &x = lowering.shape(node.inputs[x_input]), &r = lowering.shape(node.inputs[r_input]);
  steps_ = x[batch_first_ ? 1 : 0];
  batch_ = x[batch_first_ ? 0 : 1];
  inputs_ = x[2];
  hidden_ = r[2];
  directions_ = r[0];
}

Lowered RecurrentLowering::check(std::initializer_list<std::size_t> inputs) const {
  for (std::size_t i : inputs)
    if (has(i) && lowering_.element_in_memory(input_of(node_, i)) != ElementType::f32)
      return refuse(kernel_, "not all tensors are f32");
  for (std::size_t i : inputs)
    if (i != x_input && has(i) && !lowering_.is_row_major(input_of(node_, i)))
      return refuse(kernel_, "a state or a weight is not row-major");
  for (ValueId output : node_.outputs)
    if (output.valid() && output != node_.outputs[0] && !lowering_.is_row_major(output))
      return refuse(kernel_, "a result is not row-major");
  if (batch_first_ && directions_ > 1 && batch_ > 1)
    return refuse(kernel_, "both directions with the batch first");
  return {};
}

RecurrentLowering::Strided RecurrentLowering::y_strides(ValueId y) const {
  const Strides& s = lowering_.view(y).strides;
  return batch_first_ ? Strided{s[1], s[0], s[2]} : Strided{s[0], s[2], s[1]};
}

RecurrentLowering::Sequence RecurrentLowering::planned_sequence(ValueId id) const {
  const Strides& s = lowering_.view(id).strides;
  const Sequence sequence{{}, s[batch_first_ ? 1 : 0], s[batch_first_ ? 0 : 1]};
  const bool contiguous = s[2] == 1 || inputs_ == 1;
  const bool even = batch_ == 1 || steps_ == 1 || sequence.step == batch_ * sequence.sample;
  return contiguous && even ? sequence : Sequence{{}, batch_ * inputs_, inputs_};
}

RecurrentLowering::Sequence RecurrentLowering::equally_spaced(ValueId id) {
  const Strides& s = lowering_.view(id).strides;
  Sequence planned = planned_sequence(id);
  planned.place = lowering_.read(id);
  const std::int64_t step = s[batch_first_ ? 1 : 0], sample = s[batch_first_ ? 0 : 1];
  if (planned.step == step && planned.sample == sample && (s[2] == 1 || inputs_ == 1)) return planned;
  const DraftOperand copy =
      lowering_.temporary(static_cast<std::size_t>(steps_ * batch_ * inputs_) * sizeof(float));
  auto kernel = kernels::prepare(kernels::StridedCopy{.extents = {steps_, batch_, inputs_},
                                                      .x_strides = {step, sample, s[2]},
                                                      .y_strides = {planned.step, planned.sample, 1}});
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "copy of a sequence");
  lowering_.emit("copy", node_.name, std::move(*kernel), {planned.place}, {copy});
  planned.place = copy;
  return planned;
}

DraftOperand RecurrentLowering::zeros(std::int64_t elements) {
  kernels::VectorProgram program({elements});
  program.store(program.constant(0), ElementType::f32, {1});
  const DraftOperand place = lowering_.temporary(static_cast<std::size_t>(elements) * sizeof(float));
  lowering_.emit("clear", node_.name, std::move(*kernels::prepare(program)), {}, {place});
  return place;
}

DraftOperand RecurrentLowering::initial(std::size_t input, std::int64_t d) {
  if (!has(input)) return zeros(batch_ * hidden_);
  return shifted(lowering_.read(node_.inputs[input]), d * batch_ * hidden_);
}

DraftOperand RecurrentLowering::last(std::size_t output, std::int64_t d) {
  if (output < node_.outputs.size() && node_.outputs[output].valid())
    return shifted(lowering_.write(node_.outputs[output]), d * batch_ * hidden_);
  return lowering_.temporary(static_cast<std::size_t>(batch_ * hidden_) * sizeof(float));
}

}  // namespace superstep::target::cpu
