#include "superstep/run/train/fold_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"

namespace superstep::run {
namespace {

// Samples [first, end) of another task, in its numbers.
struct Part {
  std::int64_t first = 0, end = 0;
  std::int64_t size() const { return end - first; }
};

// Numbers the samples of the part behind all others. What others reach is left out: they would learn from
// the samples that train by default.
class FoldTask final : public Task {
 public:
  FoldTask(std::unique_ptr<Task> whole, Part part, const TaskSettings& settings)
      : whole_(std::move(whole)), part_(part), folds_(settings.folds), fold_(settings.fold) {}

  std::int64_t size() const override { return whole_->size(); }
  std::int64_t training_count() const override { return whole_->size() - part_.size(); }
  bool reads_as_it_goes() const override { return whole_->reads_as_it_goes(); }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    whole_->fill(numbers(indices), epoch, augment, tensors);
  }
  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool& pool) const override {
    whole_->fill_inputs(numbers(indices), inputs, pool);
  }
  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    return whole_->quality(numbers(indices), outputs);
  }
  std::vector<Metric> spread_quality(std::span<const std::int64_t> indices, std::span<const Tensor> mean,
                                     std::span<const Tensor> spread) const override {
    return whole_->spread_quality(numbers(indices), mean, spread);
  }
  std::string present(const Predictions& found, ThreadPool& pool, page::Page& page) const override {
    const std::vector<std::int64_t> own = numbers(found.indices);
    Predictions there = found;
    there.indices = own;
    return whole_->present(there, pool, page);
  }
  std::unique_ptr<Task> fresh(std::int64_t samples, std::uint64_t seed, ThreadPool& pool) const override {
    return whole_->fresh(samples, seed, pool);
  }
  std::int64_t used_length(std::int64_t index) const override { return whole_->used_length(number(index)); }
  bool has_labels() const override { return whole_->has_labels(); }
  std::vector<std::string> notes() const override { return whole_->notes(); }
  nlohmann::json describe() const override {
    nlohmann::json words = whole_->describe();
    words["training"] = training_count();
    words["folds"] = folds_;
    words["fold"] = fold_;
    return words;
  }

 private:
  std::int64_t number(std::int64_t index) const {
    if (index < part_.first) return index;
    return index < training_count() ? index + part_.size() : index - training_count() + part_.first;
  }
  std::vector<std::int64_t> numbers(std::span<const std::int64_t> indices) const {
    std::vector<std::int64_t> all(indices.size());
    std::ranges::transform(indices, all.begin(), [&](std::int64_t index) { return number(index); });
    return all;
  }

  std::unique_ptr<Task> whole_;
  Part part_;
  int folds_, fold_;
};

// Where part `k` of so many begins, at the start of a group.
std::int64_t start_of(const Task& task, int folds, int k) {
  std::int64_t start = task.size() * k / folds;
  while (start > 0 && start < task.size() && task.follows_on(start)) --start;
  return start;
}

void require(bool met, ErrorCode code, const std::string& words, const std::string& hint) {
  if (!met) throw Error(code, words, "--folds", hint);
}

void require_order(const Task& task, bool augments) {
  require(task.forced_order().shards.empty(), ErrorCode::unsupported,
          "the samples can only be read in their order, and a fold is taken from anywhere",
          "superstep convert writes them in a form that can be read anywhere, such as HDF5");
  const std::string why = augments ? task.augments_by() : "";
  require(why.empty(), ErrorCode::unsupported, "augmentation " + why + ", which a fold may hold out",
          "--no-augment trains on the samples as they are");
}

}  // namespace

void check_folds(const TaskSettings& settings) {
  require(settings.folds > 1, ErrorCode::invalid_argument, "one fold leaves nothing to train on",
          "give two or more");
  require(settings.fold >= 0 && settings.fold <= settings.folds, ErrorCode::invalid_argument,
          fmt::format("fold {} is none of {}", settings.fold, settings.folds), "they are counted from 1");
  require(settings.validation.empty(), ErrorCode::invalid_argument,
          "each fold validates on a part of the data, not on --validation",
          "leave --folds or --validation away");
  for (const std::string& option : settings.model_options)
    require(!option.starts_with("fold="), ErrorCode::invalid_argument,
            "all folds are trained, and --set " + option + " asks for one", "leave one of them away");
}

std::unique_ptr<Task> folded(std::unique_ptr<Task> task, const TaskSettings& settings, bool augments) {
  const int fold = std::max(1, settings.fold);
  Part part{task->training_count(), task->size()};
  if (!task->heeds_folds()) {
    require_order(*task, augments);
    part = {start_of(*task, settings.folds, fold - 1), start_of(*task, settings.folds, fold)};
  }
  require(part.size() > 0 && part.size() < task->size(), ErrorCode::invalid_argument,
          fmt::format("of {} samples fold {} of {} {}", task->size(), fold, settings.folds,
                      part.size() > 0 ? "leaves none to train on" : "has none"),
          "give fewer folds: groups of samples that belong together are not cut");
  if (task->heeds_folds()) return task;
  return std::make_unique<FoldTask>(std::move(task), part, settings);
}

}  // namespace superstep::run
