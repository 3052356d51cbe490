// One compiled training step or serving plan of a workload, or of a model file, with a batch of its data.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/task.h"
#include "superstep/run/train/feeder.h"
#include "superstep/target/target.h"

namespace superstep::lab {

struct WorkloadRunSettings {
  run::TrainSettings model;  // workload, target, precision, options, seed; batch and micro_batch
  bool trains = false;
  int threads = 1;
  bool measure_steps = false;
};

class WorkloadRun {
 public:
  explicit WorkloadRun(const WorkloadRunSettings& settings);
  ~WorkloadRun();

  void call() { executable_->run(inputs_, outputs_); }  // on the resident batch
  void call_with_data();  // on a fresh batch, made as training and serving make it

  bool has_data() const { return task_ != nullptr; }
  std::string data_source() const;  // "generated", "file", "random values"
  target::PlanSummary summary() const { return executable_->summary(); }
  double compile_seconds() const { return compile_seconds_; }

  // Calls, and compares: the outputs of the first sample with the reference evaluation when serving, the loss
  // with finite numbers when training. Returns what was found ("outputs within 3e-06 of the reference").
  // Throws Error (internal) when they disagree.
  std::string check();

 private:
  std::int64_t data_samples() const;
  void open_data();
  void fill_resident();
  bool is_of_rows(const std::string& output) const;
  void compare_with_reference(double flops_a_sample, std::string& found);

  WorkloadRunSettings settings_;
  run::Model model_;
  bool is_file_ = false;  // a model file: its data are random
  ThreadPool pool_;
  std::unique_ptr<run::Task> task_;
  std::unique_ptr<target::Executable> executable_;
  std::unique_ptr<run::Feeder> feeder_;
  double compile_seconds_ = 0;
  std::int64_t next_sample_ = 0;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace superstep::lab
