#include "superstep/run/serve/served_weights.h"

#include <fmt/format.h>

#include "superstep/base/system/standard_streams.h"
#include "superstep/run/serve/published_weights.h"
#include "superstep/run/serve/sound.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/transform/training/training_form.h"

namespace superstep::run {

Weights load_weights(const std::filesystem::path& folder, bool to_train) {
  const RunDirectory directory = RunDirectory::open(folder);
  Weights weights{.settings = train_settings_from_json(directory.config()), .states = {}, .where = {}};
  const bool has_best = std::filesystem::exists(directory.best());
  auto checkpoint = has_best ? std::optional(read_checkpoint(directory.best()))
                             : read_newest_checkpoint(directory.checkpoints());
  if (!checkpoint)
    throw Error(ErrorCode::not_found, "has no checkpoint yet", folder.string(),
                "train for longer, or resume the run");
  weights.where = (has_best ? directory.best() : directory.checkpoints()).string();
  weights.has_digest = checkpoint->has_digest;
  if (!checkpoint->passed_over.empty())
    tell(fmt::format("superstep: warning: {}; the checkpoint before it is used\n", checkpoint->passed_over));
  weights.states = to_train ? std::move(checkpoint->states) : served(std::move(checkpoint->states));
  if (!to_train) require_sound(weights.states, weights.where);
  return weights;
}

Weights load_weights_for(const TrainSettings& model, const std::filesystem::path& path, bool to_train) {
  if (is_published_weights(path)) {
    PublishedWeights published = load_published_weights(model, path);
    if (!to_train) require_sound(published.states, path.string());
    return {.settings = model,
            .states = std::move(published.states),
            .where = path.string(),
            .has_digest = false,
            .of_a_run = false,
            .unused = std::move(published.unused)};
  }
  Weights weights = load_weights(path, to_train);
  if (weights.settings.workload != model.workload)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is a run of '{}', not of '{}'", weights.settings.workload, model.workload),
                path.string(), "--weights takes a run of the same model");
  return weights;
}

// Weights of a model that dropped nothing out in training have no counter of masks: it begins at zero.
std::map<std::string, Tensor> states_with_counter(const Weights& weights) {
  std::map<std::string, Tensor> states = weights.states;
  states.try_emplace(transform::dropout_counter, Tensor::scalar<std::int64_t>(0));
  return states;
}

}  // namespace superstep::run
