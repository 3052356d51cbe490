// LSTMs, one step of the plan a direction. A forward pass whose gradient is in the plan too keeps its gates.
#include "superstep/target/cpu/lower/operators/recurrent/lower_recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/sequence/lstm.h"
#include "superstep/target/cpu/kernels/sequence/lstm_pack.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/operators/recurrent/recurrent_lowering.h"

namespace superstep::target::cpu {
namespace {

using kernels::Lstm;
using Use = kernels::LstmWeights::Use;

// Inputs of LSTM behind those that it shares with GRU, and of its gradient.
enum Input : std::size_t { c_input = 6, p_input };
enum Back : std::size_t { back_x, back_w, back_r, back_b, back_h, back_c, back_y, back_dy, back_dh, back_dc };

class LstmLowering : RecurrentLowering {
 public:
  LstmLowering(Lowering& lowering, const Node& node, bool back) : RecurrentLowering(lowering, node, "lstm") {
    l_.steps = steps_, l_.batch = batch_, l_.inputs = inputs_, l_.hidden = hidden_;
    l_.narrow = node.attributes.text("products", "f32") == "bf16" && kernels::multiplies_pairs();
    const std::size_t h = back ? static_cast<std::size_t>(back_h) : h_input,
                      c = back ? static_cast<std::size_t>(back_c) : c_input;
    l_.zero_state = (!has_input(node, h) || is_zero(lowering.graph(), input_of(node, h))) &&
                    (!has_input(node, c) || is_zero(lowering.graph(), input_of(node, c)));
  }

  Lowered forward(NodeId id) {
    if (Lowered checked = check({x_input, w_input, r_input, b_input, h_input, c_input}); !checked)
      return checked;
    const NodeId gradient = gradient_of(id);
    l_.keep = gradient.valid();
    std::vector<kernels::KernelPointer> prepared;
    for (std::int64_t d = 0; d < directions_; ++d) {
      auto kernel = kernels::prepare_lstm(forward_at(d));
      if (!kernel) return std::unexpected(kernel.error());
      prepared.push_back(std::move(*kernel));
    }
    const Sequence x = equally_spaced(node_.inputs[x_input]);
    const DraftOperand bias = has(b_input) ? lowering_.read(node_.inputs[b_input]) : zeros(8 * l_.hidden);
    std::vector<DraftOperand> kept;
    for (std::int64_t d = 0; d < directions_; ++d)
      emit_forward(std::move(prepared[static_cast<std::size_t>(d)]), d, x, bias, kept);
    if (l_.keep) lowering_.keep_for(gradient, std::move(kept));
    return {};
  }

  Lowered backward(NodeId id) {
    if (Lowered checked =
            check({back_x, back_w, back_r, back_b, back_h, back_c, back_y, back_dy, back_dh, back_dc});
        !checked)
      return checked;
    const std::vector<DraftOperand> kept = lowering_.kept_for(id);
    if (kept.empty()) return refuse("lstm gradient", "the forward pass kept no gates");
    const bool wants_dx = is_read(node_.outputs[0]);
    std::vector<kernels::KernelPointer> prepared;
    for (std::int64_t d = 0; d < directions_; ++d) {
      auto kernel = kernels::prepare_lstm_gradient(backward_at(d, wants_dx));
      if (!kernel) return std::unexpected(kernel.error());
      prepared.push_back(std::move(*kernel));
    }
    const Sequence x = equally_spaced(node_.inputs[back_x]);
    std::vector<DraftOperand> parts, sums;  // each direction makes a dx of its own, row by row without gaps
    for (std::size_t i : {1u, 2u, 3u}) sums.push_back(summed(node_.outputs[i]));
    for (std::int64_t d = 0; d < directions_; ++d) {
      if (wants_dx)
        parts.push_back(
            lowering_.temporary(static_cast<std::size_t>(l_.steps * l_.batch * l_.inputs) * sizeof(float)));
      emit_backward(std::move(prepared[static_cast<std::size_t>(d)]), d, x, kept, sums,
                    wants_dx ? &parts.back() : nullptr);
    }
    return wants_dx ? add_parts(parts) : Lowered();
  }

 private:
  Lstm at_direction(std::int64_t d) const {
    Lstm spec = l_;
    spec.reverse = reverse_ || d == 1;
    return spec;
  }

  Lstm forward_at(std::int64_t d) const {
    Lstm spec = at_direction(d);
    const Sequence x = planned_sequence(node_.inputs[x_input]);
    const Strided y = y_strides(node_.outputs[0]);
    spec.x_step = x.step, spec.x_sample = x.sample;
    spec.y_step = y.step, spec.y_sample = y.sample;
    return spec;
  }

  void emit_forward(kernels::KernelPointer kernel, std::int64_t d, const Sequence& x,
                    const DraftOperand& bias, std::vector<DraftOperand>& kept) {
    const std::int64_t hidden = l_.hidden;
    const ValueId y = node_.outputs[0];
    std::vector<DraftOperand> inputs{x.place,
                                     packed(w_input, Use::forward, l_.inputs, d),
                                     packed(r_input, Use::forward, hidden, d),
                                     shifted(bias, has(b_input) ? d * 8 * hidden : 0),
                                     initial(h_input, d),
                                     initial(c_input, d)};
    std::vector<DraftOperand> outputs{shifted(lowering_.write(y), d * y_strides(y).direction), last(1, d),
                                      last(2, d)};
    if (l_.keep) {
      kept.push_back(lowering_.temporary(static_cast<std::size_t>(4 * elements_of_states()) * sizeof(float)));
      kept.push_back(lowering_.temporary(static_cast<std::size_t>(elements_of_states()) * sizeof(float)));
      outputs.insert(outputs.end(), kept.end() - 2, kept.end());
    }
    lowering_.emit(node_.op, node_.name, std::move(kernel), std::move(inputs), std::move(outputs));
  }

  Lstm backward_at(std::int64_t d, bool wants_dx) const {
    Lstm spec = at_direction(d);
    const Sequence x = planned_sequence(node_.inputs[back_x]);
    spec.x_step = x.step, spec.x_sample = x.sample;
    const Strided y = y_strides(node_.inputs[back_y]);
    spec.y_step = y.step, spec.y_sample = y.sample;
    spec.dx_step = l_.batch * l_.inputs, spec.dx_sample = l_.inputs;
    spec.wants_dx = wants_dx;
    spec.has_dy = has(back_dy), spec.has_dh = has(back_dh), spec.has_dc = has(back_dc);
    if (!spec.has_dy) return spec;
    const Strided dy = y_strides(node_.inputs[back_dy]);
    spec.dy_step = dy.step, spec.dy_sample = dy.sample;
    return spec;
  }

  std::int64_t elements_of_states() const { return l_.steps * l_.batch * l_.hidden; }

  bool is_read(ValueId id) const {
    return id.valid() && (!lowering_.consumers(id).empty() || lowering_.leaves_section(id));
  }

  // The gradient in the same plan that reads this forward pass.
  NodeId gradient_of(NodeId id) const {
    for (NodeId reader : lowering_.consumers(node_.outputs[0])) {
      const Node& other = lowering_.graph().node(reader);
      const bool same = other.op == "superstep.LSTMGradient" && other.inputs[back_y] == node_.outputs[0] &&
                        other.inputs[back_x] == node_.inputs[x_input];
      if (same && lowering_.section_of(reader) == lowering_.section_of(id)) return reader;
    }
    return {};
  }

  // The packed weights of direction d. W and R are the same inputs of both nodes.
  DraftOperand packed(std::size_t input, Use use, std::int64_t columns, std::int64_t d) {
    const kernels::LstmWeights weights{use, directions_, l_.hidden, columns, l_.narrow};
    auto kernel = kernels::prepare_lstm_pack(weights);
    if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "packing of weights");
    const std::size_t bytes = kernels::packed_bytes(weights);
    DraftOperand place = lowering_.packed(
        node_.inputs[input], fmt::format("lstm {}{}", static_cast<int>(use), l_.narrow ? " pairs" : ""),
        std::move(*kernel), static_cast<std::size_t>(directions_) * bytes);
    std::visit([&](auto& operand) { operand.offset += static_cast<std::size_t>(d) * bytes; }, place);
    return place;
  }

  // Where a gradient of a parameter is added up: its accumulator, or cleared memory of its own.
  DraftOperand summed(ValueId gradient) {
    if (lowering_.can_accumulate(gradient)) return *lowering_.accumulator(gradient);
    const DraftOperand place = lowering_.write(gradient);
    kernels::VectorProgram program({lowering_.shape(gradient).element_count()});
    program.store(program.constant(0), ElementType::f32, {1});
    lowering_.emit("clear", node_.name, std::move(*kernels::prepare(program)), {}, {place});
    return place;
  }

  void emit_backward(kernels::KernelPointer kernel, std::int64_t d, const Sequence& x,
                     const std::vector<DraftOperand>& kept, const std::vector<DraftOperand>& sums,
                     const DraftOperand* dx) {
    const std::int64_t hidden = l_.hidden, states = l_.batch * hidden;
    const auto read = [&](std::size_t input, std::int64_t offset) {
      return shifted(lowering_.read(node_.inputs[input]), offset);
    };
    std::vector<DraftOperand> inputs{x.place,
                                     packed(back_w, Use::gradient_w, l_.inputs, d),
                                     packed(back_r, Use::gradient_r, hidden, d),
                                     read(back_h, d * states),
                                     read(back_c, d * states),
                                     read(back_y, d * y_strides(node_.inputs[back_y]).direction),
                                     kept[static_cast<std::size_t>(2 * d)],
                                     kept[static_cast<std::size_t>(2 * d + 1)]};
    if (has(back_dy)) inputs.push_back(read(back_dy, d * y_strides(node_.inputs[back_dy]).direction));
    for (std::size_t i : {back_dh, back_dc})
      if (has(i)) inputs.push_back(read(i, d * states));
    std::vector<DraftOperand> outputs{
        shifted(sums[0], d * 4 * hidden * l_.inputs), shifted(sums[1], d * 4 * hidden * hidden),
        shifted(sums[2], d * 8 * hidden), shifted(lowering_.write(node_.outputs[4]), d * states),
        shifted(lowering_.write(node_.outputs[5]), d * states)};
    if (dx) outputs.push_back(*dx);
    lowering_.emit(node_.op, node_.name, std::move(kernel), std::move(inputs), std::move(outputs));
  }

  // dx, where the graph wants it, from the parts of the directions.
  Lowered add_parts(const std::vector<DraftOperand>& parts) {
    const ValueId dx = node_.outputs[0];
    const Strides& s = lowering_.view(dx).strides;
    kernels::VectorProgram program({l_.steps, l_.batch, l_.inputs});
    auto sum = program.input(ElementType::f32, {l_.batch * l_.inputs, l_.inputs, 1});
    for (std::size_t i = 1; i < parts.size(); ++i)
      sum = program.binary(kernels::VectorOp::add, sum,
                           program.input(ElementType::f32, {l_.batch * l_.inputs, l_.inputs, 1}));
    program.store(sum, ElementType::f32, {s[batch_first_ ? 1 : 0], s[batch_first_ ? 0 : 1], s[2]});
    auto kernel = kernels::prepare(program);
    if (!kernel) return std::unexpected(kernel.error());
    lowering_.emit("copy", node_.name, std::move(*kernel), parts, {lowering_.write(dx)});
    return {};
  }

  Lstm l_;
};

Lowered lower_lstm(Lowering& lowering, NodeId id) {
  return LstmLowering(lowering, lowering.graph().node(id), false).forward(id);
}

Lowered lower_lstm_gradient(Lowering& lowering, NodeId id) {
  return LstmLowering(lowering, lowering.graph().node(id), true).backward(id);
}

constexpr Lowerer lowerers[] = {
    {"LSTM", "lstm", lower_lstm},
    {"superstep.LSTMGradient", "lstm gradient", lower_lstm_gradient},
};

}  // namespace

extern constinit const LowererFamily recurrent_lowerers{lowerers, Halves::in_f32};

bool has_lstm_kernel(const Graph& graph, const Node& node) {
  const bool back = node.op == "superstep.LSTMGradient";
  const graph::Attributes& a = node.attributes;
  const bool plain = !a.has("activations") && !a.has("clip") && a.integer("input_forget", 0) == 0;
  const Shape& r = graph.type(node.inputs[r_input]).shape;
  const bool batch_first = a.integer("layout", 0) != 0;
  return plain && (back || (!has_input(node, lengths_input) && !has_input(node, p_input))) &&
         graph.type(node.inputs[x_input]).element == ElementType::f32 && r[2] % kernels::lstm_panel == 0 &&
         (!batch_first || r[0] == 1);
}

}  // namespace superstep::target::cpu
