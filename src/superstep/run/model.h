// A workload, or a user's model file, with the choices of a run filled in: its graphs for training and
// serving.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "superstep/run/task.h"
#include "superstep/run/train/schedule.h"
#include "superstep/run/train/train_settings.h"
#include "superstep/run/user/user_model.h"
#include "superstep/target/target.h"
#include "superstep/transform/pass.h"
#include "superstep/workload/workload.h"

namespace superstep::run {

// The samples that a training of these settings has, as it opens them; what a caller wants otherwise, it
// changes.
TaskSettings task_settings_of(const TrainSettings& settings, ThreadPool& pool);

class Model {
 public:
  // Throws Error (invalid_argument) on an unknown workload, recipe, option, optimiser or precision.
  // What UserModel throws, where the workload is a model file.
  explicit Model(TrainSettings settings);

  const workload::Workload& workload() const { return *workload_; }
  // That it is trained by: the named one with what the settings say otherwise.
  const workload::Recipe& recipe() const { return recipe_; }
  // Throws Error (invalid_argument) for options that the model cannot be built with before anything is made
  // or read.
  std::unique_ptr<Task> open_task(const TaskSettings& settings) const;
  std::int64_t fixed_batch() const;  // the only batch of a model file that fixes it; 0: any
  // Of a model file: user_model.h.
  std::vector<std::string> whole_outputs() const;
  bool one_a_call() const;
  std::vector<onnx::Initializer> initializers() const;
  bool numbers_samples() const;
  const TrainSettings& settings() const { return settings_; }  // with every default filled in
  const Schedule& schedule() const { return schedule_; }

  // Both at any batch; the graphs share nothing with this object. `on`: in the form that suits this target, a
  // static object; null: as the workload says.
  target::GraphAtBatch training_step(const target::Target* on = nullptr) const;
  target::GraphAtBatch inference(const target::Target* on = nullptr) const;
  // Loss, outputs and gradients, nothing updated by them (transform::make_gradient_step).
  target::GraphAtBatch gradient_step(const target::Target* on = nullptr) const;
  // As inference(), but drops out by masks that every run draws anew (transform/training/sampled_dropout.h).
  target::GraphAtBatch sampling(const target::Target* on = nullptr) const;

  // What both are made of: the model as the workload or the file describes it, and what it then goes through,
  // after the form that suits a target and before what its compile() does (target/passes.h).
  target::GraphAtBatch as_described() const;
  std::vector<transform::Pass> passes(bool training, const target::Target* on = nullptr) const;

  // Settles, before a training, for which batch its model will be written: open where the file can be, else
  // the file's or `batch`. Throws what write_onnx() would throw at its end.
  void settle_written_batch(std::int64_t batch);
  // Why it is not open; empty where it is.
  const std::string& why_written_batch_is_fixed() const { return why_fixed_; }
  std::int64_t written_batch() const { return written_batch_; }  // 0: open

  // The model as served, in f32: parameters of `states`, outputs as users know them.
  void write_onnx(const std::filesystem::path& path, const std::map<std::string, Tensor>& states) const;

 private:
  graph::Graph served_at(std::int64_t batch, const std::map<std::string, Tensor>& states) const;
  target::GraphAtBatch graphs(const target::Target* on, std::vector<transform::Pass> passes) const;

  std::shared_ptr<const UserModel> user_;  // null: a workload of the zoo
  const workload::Workload* workload_;
  TrainSettings settings_;
  workload::Recipe recipe_;
  Schedule schedule_;
  std::int64_t written_batch_ = 0;
  std::string why_fixed_;
};

}  // namespace superstep::run
