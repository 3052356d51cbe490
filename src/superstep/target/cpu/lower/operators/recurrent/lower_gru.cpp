// GRUs, one step of the plan a direction.
#include "superstep/target/cpu/lower/operators/recurrent/lower_gru.h"

#include "superstep/target/cpu/kernels/sequence/gru.h"
#include "superstep/target/cpu/lower/operators/recurrent/recurrent_lowering.h"

namespace superstep::target::cpu {
namespace {

using kernels::Gru;

class GruLowering : RecurrentLowering {
 public:
  GruLowering(Lowering& lowering, const Node& node) : RecurrentLowering(lowering, node, "gru") {}

  Lowered forward() {
    if (Lowered checked = check({x_input, w_input, r_input, b_input, h_input}); !checked) return checked;
    std::vector<kernels::KernelPointer> prepared;
    for (std::int64_t d = 0; d < directions_; ++d) {
      auto kernel = kernels::prepare_gru(at_direction(d));
      if (!kernel) return std::unexpected(kernel.error());
      prepared.push_back(std::move(*kernel));
    }
    const DraftOperand x = equally_spaced(node_.inputs[x_input]).place;
    const DraftOperand bias = has(b_input) ? lowering_.read(node_.inputs[b_input]) : zeros(6 * hidden_);
    for (std::int64_t d = 0; d < directions_; ++d)
      emit(std::move(prepared[static_cast<std::size_t>(d)]), d, x, bias);
    return {};
  }

 private:
  Gru at_direction(std::int64_t d) const {
    const Sequence x = planned_sequence(node_.inputs[x_input]);
    const Strided y = y_strides(node_.outputs[0]);
    const bool zero =
        !has(h_input) || is_zero(lowering_.graph(), node_.inputs[static_cast<std::size_t>(h_input)]);
    return {.steps = steps_,
            .batch = batch_,
            .inputs = inputs_,
            .hidden = hidden_,
            .x_row = batch_ == 1 ? x.step : x.sample,
            .y_step = y.step,
            .y_sample = y.sample,
            .reverse = reverse_ || d == 1,
            .zero_state = zero};
  }

  void emit(kernels::KernelPointer kernel, std::int64_t d, const DraftOperand& x, const DraftOperand& bias) {
    const ValueId y = node_.outputs[0];
    std::vector<DraftOperand> inputs{x, packed(w_input, inputs_, d), packed(r_input, hidden_, d),
                                     shifted(bias, has(b_input) ? d * 6 * hidden_ : 0), initial(h_input, d)};
    lowering_.emit(node_.op, node_.name, std::move(kernel), std::move(inputs),
                   {shifted(lowering_.write(y), d * y_strides(y).direction), last(1, d)});
  }

  // The packed weights of direction d.
  DraftOperand packed(std::size_t input, std::int64_t columns, std::int64_t d) {
    auto kernel = kernels::prepare_gru_pack(directions_, hidden_, columns);
    if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "packing of weights");
    const std::int64_t elements = 3 * hidden_ * columns;
    return shifted(lowering_.packed(node_.inputs[input], "gru", std::move(*kernel),
                                    static_cast<std::size_t>(directions_ * elements) * sizeof(float)),
                   d * elements);
  }
};

Lowered lower_gru(Lowering& lowering, NodeId id) {
  return GruLowering(lowering, lowering.graph().node(id)).forward();
}

constexpr Lowerer lowerers[] = {{"GRU", "gru", lower_gru}};

}  // namespace

extern constinit const LowererFamily gru_lowerers{lowerers, Halves::in_f32};

bool has_gru_kernel(const Graph& graph, const Node& node) {
  const graph::Attributes& a = node.attributes;
  const Shape& r = graph.type(node.inputs[r_input]).shape;
  return graph.updates().empty() && !a.has("activations") && !a.has("clip") &&
         a.integer("linear_before_reset", 0) != 0 && !has_input(node, lengths_input) &&
         graph.type(node.inputs[x_input]).element == ElementType::f32 && r[2] % kernels::gru_panel == 0 &&
         (a.integer("layout", 0) == 0 || r[0] == 1);
}

}  // namespace superstep::target::cpu
