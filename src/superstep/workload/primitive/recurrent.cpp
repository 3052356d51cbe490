#include "superstep/workload/primitive/recurrent.h"

#include "superstep/op/move/movement.h"

namespace superstep::workload {

Var sequence_input(Builder& b, std::int64_t batch, std::int64_t steps, std::int64_t inputs) {
  return op::transpose(b.input("x", ElementType::f32, {batch, steps, inputs}), {1, 0, 2});
}

Recipe mse_by_adam(std::int64_t batch, double epochs) {
  return {.batch = batch,
          .epochs = epochs,
          .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
          .optimizer = {.kind = transform::OptimizerKind::adam},
          .learning_rate = 1e-3};
}

}  // namespace superstep::workload
