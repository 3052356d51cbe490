#include "superstep/run/train/validation.h"

#include <algorithm>
#include <numeric>

#include "superstep/run/train/checkpoint.h"

namespace superstep::run {
namespace {

constexpr std::int64_t evaluation_batch = 256;

target::CompileOptions options_for(const Model& model, const Task& task, int threads) {
  const std::int64_t samples = std::max<std::int64_t>(1, task.size() - task.training_count());
  const std::int64_t fixed = model.fixed_batch();
  return {.batch = fixed > 0 ? fixed : std::min(evaluation_batch, samples),
          .micro_batch = fixed,
          .threads = threads};
}

}  // namespace

Validation::Validation(const target::Target& target, const Model& model, const Task& task, ThreadPool& pool,
                       int threads)
    : task_(task),
      pool_(pool),
      evaluator_(target, model.recipe().passes > 0 ? model.sampling(&target) : model.inference(&target),
                 options_for(model, task, threads), model.fixed_batch() > 0 || !model.whole_outputs().empty(),
                 model.whole_outputs()) {}

std::vector<Metric> Validation::quality(target::Executable& trained, std::int64_t most) {
  const std::int64_t first = task_.training_count(), last = std::min(task_.size(), first + most);
  if (last <= first) return {};
  // Training and its validation never need their memory at the same time.
  trained.release_working_memory();
  evaluator_.set_parameters(served(states_of(trained)), "the trained model");
  std::vector<std::int64_t> indices(static_cast<std::size_t>(last - first));
  std::iota(indices.begin(), indices.end(), first);
  const std::vector<Tensor> predictions = evaluator_.predict(task_, indices, pool_);
  evaluator_.release();
  return task_.quality(indices, predictions);
}

}  // namespace superstep::run
