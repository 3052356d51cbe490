// A trained model applied to many samples: the serving side, for validation and for users.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/run/task.h"
#include "superstep/target/plan_cache.h"

namespace superstep::run {

// Batches of samples through a compiled model. The last, smaller batch has a plan of its own, or, with
// `whole_batches`, is filled up with copies of its last sample.
class Evaluator {
 public:
  // `whole_outputs`: names of outputs that are of a whole call. Throws Error (unsupported) naming another
  // output that has no row a sample.
  Evaluator(const target::Target& target, const target::GraphAtBatch& model, target::CompileOptions options,
            bool whole_batches = false, std::span<const std::string> whole_outputs = {});

  // Parameters by name; states of `states` that the model does not have are left aside. The tensors are kept:
  // they are read again when a plan is compiled. Throws Error (bad_file) naming the first parameter that is
  // missing or of another shape.
  void set_parameters(const std::map<std::string, Tensor>& states, const std::string& where);

  // The model's outputs for the samples, joined: [indices.size(), ...] each, and [calls, ...] of those that
  // are of a whole call. Throws Error (interrupted) between batches.
  std::vector<Tensor> predict(const Task& task, std::span<const std::int64_t> indices, ThreadPool& pool);

  // Mean and standard deviation (of n - 1) of `passes` >= 2 runs of a model that drops out at random
  // (Model::sampling). Which masks a sample meets follows from its place and the pass alone, whatever the
  // batch.
  struct Sampled {
    std::vector<Tensor> mean, spread;  // as predict() gives outputs, in their element types
  };
  Sampled sample(const Task& task, std::span<const std::int64_t> indices, ThreadPool& pool, int passes);

  // Lets go of the compiled model and the memory it takes; it is compiled anew when it is wanted.
  void release() { plans_.clear(); }

  target::Executable& executable() { return plans_.at(batch_); }
  std::int64_t batch() const { return batch_; }

 private:
  // `graph`: the model at the batch.
  Evaluator(const target::Target& target, const target::GraphAtBatch& model, target::CompileOptions options,
            const graph::Graph& graph, bool whole_batches, std::span<const std::string> whole_outputs);
  // The outputs of the samples from place `first` on go to their places in `joined`.
  void predict_batch(const Task& task, std::span<const std::int64_t> indices, std::int64_t first,
                     ThreadPool& pool, std::span<Tensor> joined);
  std::vector<Tensor> joined_outputs(std::int64_t samples);
  // The plan that the batch from place `first` on goes through.
  target::Executable& plan_of(std::int64_t samples, std::int64_t first);

  target::PlanCache plans_;
  std::map<std::string, graph::ValueType> parameters_;  // of the model
  std::int64_t batch_;
  bool whole_batches_;
  std::vector<bool> whole_;  // by output: of a whole call
};

}  // namespace superstep::run
