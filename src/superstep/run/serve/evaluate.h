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
  // Throws Error (unsupported) naming an output that has no row a sample.
  Evaluator(const target::Target& target, const target::GraphAtBatch& model, target::CompileOptions options,
            bool whole_batches = false);

  // Parameters by name; states of `states` that the model does not have are left aside. The tensors are kept:
  // they are read again when a plan is compiled. Throws Error (bad_file) naming the first parameter that is
  // missing or of another shape.
  void set_parameters(const std::map<std::string, Tensor>& states, const std::string& where);

  // The model's outputs for the samples, joined: [indices.size(), ...] each. Throws Error (interrupted)
  // between batches.
  std::vector<Tensor> predict(const Task& task, std::span<const std::int64_t> indices, ThreadPool& pool);

  // Lets go of the compiled model and the memory it takes; it is compiled anew when it is wanted.
  void release() { plans_.clear(); }

  target::Executable& executable() { return plans_.at(batch_); }
  std::int64_t batch() const { return batch_; }

 private:
  target::PlanCache plans_;
  std::map<std::string, graph::ValueType> parameters_;  // of the model
  std::int64_t batch_;
  bool whole_batches_;
};

}  // namespace superstep::run
