// Compiled plans by shape: a model asked for at a batch it has had before is not compiled again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "superstep/target/target.h"

namespace superstep::target {

class PlanCache {
 public:
  // `options.batch` is ignored. The target outlives the cache.
  PlanCache(const Target& target, GraphAtBatch model, CompileOptions options)
      : target_(target), model_(std::move(model)), options_(options) {}

  // The plan for this batch, compiled at the first call, with the states set so far.
  Executable& at(std::int64_t batch);

  // States by name, for every plan there is and will be. Throws Error as Executable::set_state does. The
  // tensors are kept, and read again when a plan is compiled.
  void set_states(std::map<std::string, Tensor> states);

  // Forgets the plans: at() compiles anew.
  void clear() { plans_.clear(); }

  std::size_t size() const { return plans_.size(); }

 private:
  graph::Graph with_states(std::int64_t batch) const;

  const Target& target_;
  GraphAtBatch model_;
  CompileOptions options_;
  std::map<std::string, Tensor> states_;
  std::map<std::int64_t, std::unique_ptr<Executable>> plans_;
};

}  // namespace superstep::target
