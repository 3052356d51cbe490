#include "superstep/run/user/prospects.h"

#include "superstep/onnx/writer.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"

namespace superstep::run {
namespace {

// What an attempt throws, in words; empty where it throws nothing.
template <class Attempt>
std::string reason_of(Attempt&& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void make_training_step(const UserModel& model) {
  model.require_trainable();
  const workload::Recipe& recipe = model.workload().training;
  const auto passes = {transform::training_step_pass(recipe.loss, recipe.optimizer, {})};
  transform::run_passes(model.build(model.smallest_batch()), std::vector<transform::Pass>(passes));
}

}  // namespace

Prospects prospects_of(const UserModel& model) {
  const auto at = [&](std::int64_t batch) { return model.build(batch); };
  Prospects prospects;
  prospects.no_serving = model.why_not_served();
  prospects.no_training = reason_of([&] { make_training_step(model); });
  const std::int64_t fixed = model.fixed_batch();
  prospects.no_open_batch = fixed > 0 ? model.why_fixed() : onnx::why_batch_is_fixed(at);
  const bool open = fixed == 0 && prospects.no_open_batch.empty();
  if (!open)
    prospects.no_file =
        reason_of([&] { onnx::require_writable(at, {.fixed_batch = model.smallest_batch()}); });
  return prospects;
}

}  // namespace superstep::run
