// Optimisers: all parameters that share their settings in one pass over flat memory.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/optimizer.h"
#include "superstep/target/cpu/kernels/elementwise/wide_optimizer.h"
#include "superstep/target/cpu/kernels/product/updating_product.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/matrix_product.h"

namespace superstep::target::cpu {
namespace {

// superstep.Adam: parameter, gradient, m, v, step, learning rate; superstep.Adamax alike; superstep.Sgd:
// parameter, gradient, learning rate [, momentum]; superstep.RMSProp: parameter, gradient, v, learning rate
// [, momentum]. See op/training/optimizer.h.
struct Inputs {
  ValueId parameter, gradient, step, learning_rate;
  std::vector<ValueId> moments;  // as the kernel takes them
  std::vector<ValueId> updated;  // what becomes of them
};

Inputs inputs_of(const Node& node) {
  const auto &in = node.inputs, &out = node.outputs;
  if (node.op == "superstep.Adam" || node.op == "superstep.Adamax")
    return {in[0], in[1], in[4], in[5], {in[2], in[3]}, {out[1], out[2]}};
  if (node.op == "superstep.RMSProp") {
    if (in.size() > 4 && in[4].valid()) return {in[0], in[1], {}, in[3], {in[4], in[2]}, {out[2], out[1]}};
    return {in[0], in[1], {}, in[3], {in[2]}, {out[1]}};
  }
  if (in.size() > 3 && in[3].valid()) return {in[0], in[1], {}, in[2], {in[3]}, {out[1]}};
  return {in[0], in[1], {}, in[2], {}, {}};
}

kernels::Optimizer settings_of(const Node& node) {
  const auto number = [&](const char* name, double otherwise) {
    return static_cast<float>(node.attributes.number(name, otherwise));
  };
  kernels::Optimizer optimizer;
  optimizer.weight_decay = number("weight_decay", 0);
  if (node.op == "superstep.Sgd") {
    optimizer.rule = kernels::OptimizerRule::sgd;
    optimizer.momentum = number("momentum", 0);
    optimizer.nesterov = node.attributes.integer("nesterov", 0) != 0;
    return optimizer;
  }
  if (node.op == "superstep.RMSProp") {
    optimizer.rule = kernels::OptimizerRule::rmsprop;
    optimizer.momentum = number("momentum", 0);
    optimizer.beta2 = node.attributes.number("decay", 0.9);
    optimizer.epsilon = number("epsilon", 1e-3);
    return optimizer;
  }
  optimizer.rule = node.op == "superstep.Adamax"             ? kernels::OptimizerRule::adamax
                   : node.attributes.integer("decoupled", 0) ? kernels::OptimizerRule::adamw
                                                             : kernels::OptimizerRule::adam;
  optimizer.beta1 = node.attributes.number("beta1", 0.9);
  optimizer.beta2 = node.attributes.number("beta2", 0.999);
  optimizer.epsilon = number("epsilon", 1e-8);
  return optimizer;
}

kernels::KernelInfo scalars_info() {
  kernels::KernelInfo info;
  info.name = "scalars of the optimizer";
  info.inputs = 2;
  info.outputs = 1;
  return info;
}

// Collects learning rate and step where the optimiser's kernel reads them.
class ScalarsKernel : public kernels::Kernel {
 public:
  explicit ScalarsKernel(bool has_step) : Kernel(scalars_info()), has_step_(has_step) {}
  void run(const kernels::Arguments& arguments) const override {
    kernels::OptimizerScalars scalars;
    scalars.learning_rate = *static_cast<const float*>(arguments.inputs[0]);
    // The graph counts the steps made before, the kernel from 1; a rule without a step never meets its first,
    // since its buffer begins at zero.
    scalars.step = has_step_ ? *static_cast<const std::int64_t*>(arguments.inputs[1]) + 1 : 2;
    *static_cast<kernels::OptimizerScalars*>(arguments.outputs[0]) = scalars;
  }

 private:
  bool has_step_;
};

bool same_settings(const Node& a, const Node& b) {
  const Inputs x = inputs_of(a), y = inputs_of(b);
  return a.op == b.op && a.attributes == b.attributes && x.step == y.step &&
         x.learning_rate == y.learning_rate && x.moments.size() == y.moments.size();
}

// Parameters, gradients and moments all lie at the same distance from those of the first node.
bool flat_beside(Lowering& lowering, const Inputs& first, const Inputs& other) {
  const auto distance = [&](ValueId a, ValueId b) -> std::optional<std::pair<Space, std::size_t>> {
    const DraftOperand x = lowering.read(a), y = lowering.read(b);
    const auto *from = std::get_if<Operand>(&x), *to = std::get_if<Operand>(&y);
    if (!from || !to || from->space != to->space || to->offset < from->offset) return std::nullopt;
    return std::pair(from->space, to->offset - from->offset);
  };
  const auto parameter = distance(first.parameter, other.parameter),
             gradient = distance(first.gradient, other.gradient);
  if (!parameter || !gradient || parameter->second != gradient->second) return false;
  for (std::size_t i = 0; i < first.moments.size(); ++i) {
    const auto moment = distance(first.moments[i], other.moments[i]);
    if (!moment || moment->second != parameter->second) return false;
  }
  return true;
}

DraftOperand emit_scalars(Lowering& lowering, const Node& node, const Inputs& inputs) {
  std::vector<DraftOperand> reads{lowering.read(inputs.learning_rate)};
  if (inputs.step.valid()) reads.push_back(lowering.read(inputs.step));
  const DraftOperand scalars = lowering.temporary(sizeof(kernels::OptimizerScalars));
  lowering.emit("scalars", node.name, std::make_unique<ScalarsKernel>(inputs.step.valid()), std::move(reads),
                {scalars});
  return scalars;
}

Lowered check(const Lowering& lowering, const Node& node, const Inputs& inputs) {
  if (inputs.step.valid() && lowering.type(inputs.step).element != ElementType::i64)
    return refuse("flat optimizer", "the step is not an i64");
  std::vector<ValueId> tensors = inputs.moments;
  tensors.push_back(inputs.parameter);
  for (ValueId id : tensors)
    if (lowering.graph().value(id).kind != graph::ValueKind::state ||
        lowering.type(id).element != ElementType::f32)
      return refuse("flat optimizer", "parameters and moments are not f32 states");
  if (lowering.element_in_memory(inputs.gradient) != ElementType::f32 ||
      !lowering.is_row_major(inputs.gradient))
    return refuse("flat optimizer", "the gradient is not a row-major f32 tensor");
  if (inputs.moments.size() != kernels::state_arrays(settings_of(node)))
    return refuse("flat optimizer", "a momentum without its buffer, or a buffer without a momentum");
  return {};
}

void mark_updated(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const Inputs inputs = inputs_of(node);
  lowering.write_in_place(node.outputs[0], inputs.parameter);
  for (std::size_t i = 0; i < inputs.moments.size(); ++i)
    lowering.write_in_place(inputs.updated[i], inputs.moments[i]);
  lowering.mark_done(id);
}

std::vector<DraftOperand> updated_by(Lowering& lowering, const Inputs& inputs) {
  std::vector<DraftOperand> outputs{lowering.read(inputs.parameter)};
  for (ValueId moment : inputs.moments) outputs.push_back(lowering.read(moment));
  return outputs;
}

// Sums over more samples are bound by arithmetic, and the product runs faster in one piece.
constexpr std::int64_t most_summed = 16;

// The gradient's product and the optimiser as one step.
Lowered lower_updating_product(Lowering& lowering, NodeId id, NodeId product) {
  const Node &node = lowering.graph().node(id), &multiplying = lowering.graph().node(product);
  const Inputs inputs = inputs_of(node);
  const auto factors = product_of(lowering, multiplying);
  if (!factors) return std::unexpected(factors.error());
  if (factors->bias.valid() || factors->alpha != 1)
    return refuse("updating product", "the gradient is more than the product");
  auto matmul = describe_matmul(lowering, *factors, inputs.gradient);
  if (!matmul) return std::unexpected(matmul.error());
  if (matmul->inner > most_summed) return refuse("updating product", "the product is more than its memory");
  kernels::UpdatingProduct update{*matmul, settings_of(node)};
  update.rule.count = lowering.shape(inputs.parameter).element_count();
  auto kernel = kernels::prepare(update);
  if (!kernel) return std::unexpected(kernel.error());
  const DraftOperand scalars = emit_scalars(lowering, node, inputs);
  lowering.emit(multiplying.op + "+" + node.op, multiplying.name, std::move(*kernel),
                {scalars, lowering.read(factors->a), lowering.read(factors->b)},
                updated_by(lowering, inputs));
  mark_updated(lowering, id);
  lowering.mark_done(product);
  lowering.mark_done(lowering.graph().value(inputs.gradient).producer);
  return {};
}

// With all digits of its attributes: they are rounded for f32 alone.
kernels::WideOptimizer wide_settings_of(const Lowering& lowering, const Node& node, const Inputs& inputs) {
  const kernels::Optimizer rule = settings_of(node);
  const double epsilon = node.op == "superstep.RMSProp" ? 1e-3 : 1e-8;
  return {.rule = rule.rule,
          .count = lowering.shape(inputs.parameter).element_count(),
          .rate = lowering.element_in_memory(inputs.learning_rate),
          .gradient = lowering.element_in_memory(inputs.gradient),
          .momentum = node.attributes.number("momentum", 0),
          .nesterov = rule.nesterov,
          .beta1 = rule.beta1,
          .beta2 = rule.beta2,
          .epsilon = node.attributes.number("epsilon", epsilon),
          .weight_decay = node.attributes.number("weight_decay", 0)};
}

// Parameters of f64, each alone: few models have them.
Lowered lower_wide_optimizer(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const Inputs inputs = inputs_of(node);
  if (inputs.step.valid() && lowering.type(inputs.step).element != ElementType::i64)
    return refuse("optimizer of f64", "the step is not an i64");
  for (ValueId id_of : inputs.moments)
    if (lowering.graph().value(id_of).kind != graph::ValueKind::state)
      return refuse("optimizer of f64", "a moment is not a state");
  if (lowering.graph().value(inputs.parameter).kind != graph::ValueKind::state)
    return refuse("optimizer of f64", "the parameter is not a state");
  if (!lowering.is_row_major(inputs.gradient))
    return refuse("optimizer of f64", "the gradient is not row-major");
  const kernels::WideOptimizer settings = wide_settings_of(lowering, node, inputs);
  if (inputs.moments.size() != kernels::state_arrays(settings))
    return refuse("optimizer of f64", "a momentum without its buffer, or a buffer without a momentum");
  auto kernel = kernels::prepare(settings);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> reads{lowering.read(inputs.learning_rate), lowering.read(inputs.gradient)};
  if (inputs.step.valid()) reads.push_back(lowering.read(inputs.step));
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(reads), updated_by(lowering, inputs));
  mark_updated(lowering, id);
  return {};
}

Lowered lower_optimizer(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const Inputs first = inputs_of(node);
  if (lowering.type(first.parameter).element == ElementType::f64) return lower_wide_optimizer(lowering, id);
  if (Lowered fine = check(lowering, node, first); !fine) return fine;
  if (const auto product = lowering.product_of_gradient(id)) {
    Lowered updating = lower_updating_product(lowering, id, *product);
    if (updating) return updating;
    lowering.lower_now(lowering.graph().value(first.gradient).producer);
    lowering.note_refusal(updating.error());
  }
  std::vector<NodeId> joined{id};
  std::int64_t count = lowering.shape(first.parameter).element_count();
  // In the body a parameter is updated as soon as it can be, alone.
  const bool alone = lowering.section() == Section::body;
  for (std::size_t i = id.index() + 1; i < lowering.graph().node_count() && !alone; ++i) {
    const Node& other = lowering.graph().nodes()[i];
    if (!is_optimizer(other)) continue;
    // The pass is over one gapless range: it ends at the first parameter that is not updated alike.
    const Inputs next = inputs_of(other);
    if (lowering.is_done(NodeId(i)) || !same_settings(node, other) || !check(lowering, other, next) ||
        !lowering.is_accumulated(next.gradient) || !flat_beside(lowering, first, next))
      break;
    joined.push_back(NodeId(i));
    const auto begin = std::get<Operand>(lowering.read(first.parameter)).offset;
    const auto end = std::get<Operand>(lowering.read(next.parameter)).offset +
                     static_cast<std::size_t>(lowering.shape(next.parameter).element_count()) * sizeof(float);
    count = std::max(count, static_cast<std::int64_t>((end - begin) / sizeof(float)));
  }
  kernels::Optimizer optimizer = settings_of(node);
  optimizer.count = count;
  auto kernel = kernels::prepare(optimizer);
  if (!kernel) return std::unexpected(kernel.error());
  const DraftOperand scalars = emit_scalars(lowering, node, first);
  lowering.emit(node.op, fmt::format("{} parameters", joined.size()), std::move(*kernel),
                {scalars, lowering.read(first.gradient)}, updated_by(lowering, first));
  for (NodeId member : joined) mark_updated(lowering, member);
  return {};
}

constexpr Lowerer lowerers[] = {{"superstep.Adam", "flat optimizer", lower_optimizer},
                                {"superstep.Adamax", "flat optimizer", lower_optimizer},
                                {"superstep.RMSProp", "flat optimizer", lower_optimizer},
                                {"superstep.Sgd", "flat optimizer", lower_optimizer}};

}  // namespace

extern constinit const LowererFamily optimizer_lowerers{lowerers};

}  // namespace superstep::target::cpu
