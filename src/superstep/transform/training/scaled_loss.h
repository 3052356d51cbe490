// The scale of a loss in f16, and what becomes of it (training_step.h: LossScale).
#pragma once

#include <vector>

#include "superstep/op/core/builder.h"
#include "superstep/transform/training/training_step.h"

namespace superstep::transform {

class ScaledLoss {
 public:
  ScaledLoss(op::Builder& builder, const LossScale& options);

  op::Var scaled(op::Var loss) const;
  // Divides what are gradients by the scale, and looks whether all of them are finite.
  void unscale(std::vector<op::Var>& gradients);

  op::Var finite() const { return finite_; }    // a boolean
  op::Var skipped() const { return skipped_; }  // i64: before this step
  // The states' next values.
  void update();

 private:
  op::Builder& builder_;
  LossScale options_;
  op::Var scale_, good_, skipped_, finite_;
};

}  // namespace superstep::transform
