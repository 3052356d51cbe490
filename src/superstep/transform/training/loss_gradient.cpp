#include "superstep/transform/training/loss_gradient.h"

#include <fmt/format.h>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/transform/training/append_loss.h"
#include "superstep/transform/training/differentiate.h"
#include "superstep/transform/training/training_form.h"

namespace superstep::transform {

graph::Graph make_loss_gradient(const graph::Graph& model, const std::vector<LossTerm>& terms,
                                const LossGradientOptions& options) {
  if (terms.empty()) throw Error(ErrorCode::invalid_argument, "the loss has no terms", model.name());
  Rewrite rewrite(model);
  Builder& builder = rewrite.builder();
  builder.graph().set_name(model.name() + ".loss");
  rewrite.visit_nodes([&](const Node& node) { rewrite.keep(node); });
  builder.set_phase(Phase::forward);
  builder.set_name("loss");
  AppendedLoss loss(rewrite, model);
  std::vector<Var> parts;
  for (const LossTerm& term : terms) parts.push_back(loss.term(term));
  Var total;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string name = fmt::format("weight/{}", i);
    require_free_name(builder.graph(), name);
    const Var weight = builder.input(name, ElementType::f32, {});
    builder.output(fmt::format("term/{}", i), parts[i]);
    if (options.gradients) {
      const Var weighted = parts[i] * op::cast(weight, parts[i].element());
      total = total.valid() ? total + weighted : weighted;
    }
  }
  if (options.gradients) {
    const std::vector<Var> parameters = rewrite.now(trainable_states(model));
    if (parameters.empty())
      throw Error(ErrorCode::invalid_argument, "the loss depends on no parameter", model.name());
    builder.set_phase(Phase::backward);
    builder.set_name({});
    const std::vector<Var> gradients = gradient(builder, total, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      builder.output(fmt::format("gradient/{}", builder.graph().value(parameters[i].id()).name),
                     or_zeros(gradients[i], parameters[i]));
  }
  return prune(rewrite.graph());
}

}  // namespace superstep::transform
