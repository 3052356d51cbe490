#include "superstep/transform/training/sampled_dropout.h"

#include "superstep/transform/training/training_form.h"

namespace superstep::transform {
namespace {

std::int64_t samples_of(const Graph& model) {
  for (ValueId id : model.inputs())
    if (model.type(id).shape.rank() > 0) return model.type(id).shape[0];
  return 1;
}

}  // namespace

Graph with_sampled_dropout(const Graph& model, std::uint64_t seed) {
  Rewrite rewrite(model);
  TrainingForm form(rewrite, seed, false);
  rewrite.visit_nodes([&](const Node& node) { form.visit_dropout(node); });
  rewrite.builder().set_phase(Phase::update);
  form.update_counter(samples_of(model));
  return prune(rewrite.finish());
}

Pass sampled_dropout_pass(std::uint64_t seed) {
  return {.name = "sampled_dropout",
          .run = rebuild([seed](const Graph& model) { return with_sampled_dropout(model, seed); }),
          .summary = "dropout goes on at inference, by masks that every run draws anew",
          .required = "without masks there is no spread to measure",
          .rounding = Pass::other_results};
}

}  // namespace superstep::transform
