// One primitive compiled for a target, with data, ready to be called and checked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/lab/bench/configurations.h"
#include "superstep/lab/bench/primitive_graph.h"
#include "superstep/target/target.h"

namespace superstep::lab {

class PrimitiveRun {
 public:
  // Compiles and fills the inputs. Throws Error: unsupported where the primitive does not exist in the
  // precision or the target cannot compile it, out_of_memory where its tensors do not fit.
  PrimitiveRun(const Primitive& primitive, const PrimitiveOptions& options, const std::string& target,
               int threads);

  void call() { executable_->run(inputs_, outputs_); }

  const Primitive& primitive() const { return primitive_; }
  const PrimitiveOptions& options() const { return options_; }
  target::PlanSummary summary() const { return executable_->summary(); }
  double compile_seconds() const { return compile_seconds_; }
  // Share of the counted operations that no kernel takes and the reference evaluation does.
  double reference_share() const;

  const Tensor& input(std::string_view name) const;
  const Tensor& output(std::string_view name) const;
  Tensor weights(std::string_view name) const { return executable_->state(name); }
  // The gradient of the sum over the batch: what the target averaged, times the micro-batches.
  double gradient_scale() const;

  // Replaces the cotangent by zeros but for one sample (its rows of dy), for checks; restore_dy() undoes it.
  void keep_dy_of(std::int64_t sample);
  void restore_dy();

 private:
  void allocate();

  Primitive primitive_;
  PrimitiveOptions options_;
  std::unique_ptr<target::Executable> executable_;
  double compile_seconds_ = 0;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace superstep::lab
