#include "superstep/transform/training/append_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/op/elementwise/arithmetic.h"

namespace superstep::transform {

void require_free_name(const Graph& graph, const std::string& name) {
  if (graph.find_value(name).valid())
    throw Error(ErrorCode::bad_graph, "the model has a value of a name that the training step needs", name,
                "rename it in the model");
}

Var AppendedLoss::model_output(const std::string& name) {
  if (name.empty() && model_.outputs().size() == 1) return rewrite_.now(model_.outputs()[0].value);
  std::vector<std::string> known;
  for (const graph::Output& output : model_.outputs()) known.push_back(output.name);
  if (const ValueId found = model_.find_output(name); found.valid()) return rewrite_.now(found);
  if (name.empty())
    throw Error(ErrorCode::invalid_argument, "a loss on a model of several outputs must say which",
                model_.name(), "there are: " + join(known, ", "));
  throw Error(ErrorCode::invalid_argument, "the model has no such output", name,
              unknown_name_hint(name, known));
}

Var AppendedLoss::input(const std::string& name) {
  std::vector<std::string> known;
  for (const ValueId id : model_.inputs()) {
    known.push_back(model_.value(id).name);
    if (known.back() == name) return rewrite_.now(id);
  }
  throw Error(ErrorCode::invalid_argument, "the model has no such input", name,
              unknown_name_hint(name, known));
}

Var AppendedLoss::new_target(const std::string& name, const graph::ValueType& type) {
  require_free_name(builder_.graph(), name);
  targets_.emplace_back(name, builder_.input(name, type.element, type.shape));
  return targets_.back().second;
}

Var AppendedLoss::target(const std::string& name, const graph::ValueType& type) {
  for (const auto& [known, var] : targets_) {
    if (known != name) continue;
    if (var.type() != type)
      throw Error(ErrorCode::bad_graph,
                  fmt::format("is {} in one part of the loss and {} in another", graph::to_string(var.type()),
                              graph::to_string(type)),
                  fmt::format("target '{}'", name));
    return var;
  }
  return new_target(name, type);
}

Var AppendedLoss::term(const LossTerm& term) {
  const Var output = model_output(term.output);
  Var truth;
  if (needs_target(term.kind)) {
    // Those of the same name are shared: of a wrong type they are refused where they are compared.
    const auto shared =
        std::ranges::find(targets_, term.target, [](const auto& known) { return known.first; });
    truth =
        shared != targets_.end() ? shared->second : new_target(term.target, target_type(term, output.type()));
  }
  LossExtras extras;
  if (term.kind == LossKind::gaussian_nll) extras.variance = model_output(term.variance);
  if (term.kind == LossKind::triplet_margin)
    extras.positive = model_output(term.positive), extras.negative = model_output(term.negative);
  if (!term.input_lengths.empty())
    extras.input_lengths = target(term.input_lengths, lengths_type(output.type()));
  if (!term.target_lengths.empty())
    extras.target_lengths = target(term.target_lengths, lengths_type(output.type()));
  if (!term.sample_weights.empty())
    extras.sample_weights = target(term.sample_weights, sample_weights_type(output.type()));
  if (!term.mask.empty()) extras.mask = target(term.mask, mask_type(term, output.type()));
  return build_loss(term, output, truth, extras);
}

Var AppendedLoss::own(const BuildLoss& build) {
  const Var loss = build(*this);
  if (loss.valid() && loss.shape().rank() == 0) return loss;
  throw Error(ErrorCode::bad_graph,
              loss.valid() ? fmt::format("a loss is one number, not {}", graph::to_string(loss.type()))
                           : "a loss is missing",
              model_.name());
}

Var AppendedLoss::sum(const LossSpec& loss) {
  Var total;
  const auto add = [&](Var part) { total = total.valid() ? total + part : part; };
  for (const LossTerm& each : loss.terms) {
    const Var part = term(each);
    add(each.weight != 1 ? part * each.weight : part);
  }
  if (loss.own) add(own(loss.own));
  if (!total.valid()) throw Error(ErrorCode::invalid_argument, "the loss has no terms");
  return total;
}

}  // namespace superstep::transform
