// From a model to a training step: one graph with state.
//
// Inputs: those of the model, then the targets of the loss, then `learning_rate` (f32 scalar).
// Outputs: `loss` (the mean over the batch), then the model's own where they are asked for.
// State: the model's, under its names; the optimiser's as "adam.m/PARAMETER", "adam.v/PARAMETER",
// "sgd.momentum/PARAMETER" and their like; "average/PARAMETER" where averages are kept; "gradient_norm" and
// "gradient_norm/PARAMETER" (f32 scalars) where these are; `step` (i64 scalar:
// steps made so far); `dropout.counter` (i64 scalar: samples seen so far) where the model drops out. Names
// depend on the parameters' names alone, so that a checkpoint fits the graph of any batch size and precision.
//
// Phases: the model and the loss are forward, the gradients backward, the optimiser update. A gradient is
// always computed by a node of phase backward. So the values that pass from backward to update are the
// gradients of the parameters and nothing else: there a target that splits the batch into micro-batches, or
// over replicas, averages. It then
//   - runs forward and backward for each part, built for the part's size, learning rate and state unchanged,
//   - sets dropout.counter forward by the samples before the part, so that no two parts draw the same mask,
//   - averages the gradients and the loss over the parts (equal in size),
//   - runs update once.
// That is exact when the graph is splittable() (transform/batch_axis.h). Of parameters whose gradients are
// estimated without a backward pass, what passes over are the directional derivatives (forward_gradient.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/transform/training/gradient_mode.h"
#include "superstep/transform/training/loss.h"

namespace superstep::transform {

// lamb: matrices take LAMB's step, biases and scales (parameters of less than two axes) Adam's with decoupled
// decay, as its authors' own program leaves them out of the ratio.
enum class OptimizerKind : std::uint8_t { sgd, adam, adamw, adamax, rmsprop, lamb };

const char* name_of(OptimizerKind kind);
OptimizerKind optimizer_kind_from_name(std::string_view name);  // throws Error (invalid_argument), nearest

// The formulas are in op/training/optimizer.h.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::adam;
  double momentum = 0;  // sgd, rmsprop; 0 keeps no buffer
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adam, adamw, adamax, lamb; rmsprop: beta2, its decay
  double weight_decay = 0;                            // added to the gradient; adamw, lamb: decoupled from it
  // All gradients together are made shorter where their norm is above this (R. Pascanu et al., ICML 2013);
  // before any decay is added. 0: they are taken as they are.
  double clip = 0;
  // Whether it is of biases and scales, too: of parameters of less than two axes.
  bool decay_vectors = true;
};

// With the constants of its authors; rmsprop with those of EfficientNet, without momentum.
OptimizerSpec usual_optimizer(OptimizerKind kind);

// An optimiser as users write it, NAME or NAME:CONSTANT=VALUE,..., as "sgd:momentum=0.9" and
// "adamw:weight_decay=0.01,beta2=0.95": momentum, beta1, beta2, epsilon, weight_decay, clip, each where the
// optimiser has it. What is not said is as in `own`, where that is of the same kind; else only its momentum,
// decay and clip are. Throws Error (invalid_argument).
OptimizerSpec optimizer_from_text(std::string_view text, const OptimizerSpec& own = {});

// The loss is multiplied by `initial` before gradients are taken, and they are divided by it after: small
// ones are then no zeros in f16. A step whose gradients are not all finite changes nothing but the counts; a
// `dynamic` scale is halved by it, and doubled after `growth_steps` steps without (P. Micikevicius et al.,
// ICLR 2018; the constants of PyTorch's GradScaler). State: `loss_scale` (f32 scalar), `loss_scale.good`
// (i64: steps since it changed) and `loss_scale.skipped` (i64: steps that changed nothing).
struct LossScale {
  double initial = 0;  // 0: none
  bool dynamic = true;
  std::int64_t growth_steps = 2000;
};

// "dynamic", "dynamic:1024" or "1024". Throws Error (invalid_argument) naming --loss-scale.
LossScale loss_scale_from_text(std::string_view text);

// The state with the length of all gradients together; behind a stroke stand names of parameters.
inline constexpr const char* gradient_norm = "gradient_norm";

struct TrainingStepOptions {
  bool model_outputs = false;       // also give the model's outputs
  std::uint64_t seed = 0;           // of random masks
  std::vector<std::string> frozen;  // parameters that are not trained, by name
  // Keeps "average/PARAMETER" beside every parameter: after each step what it was times d, and the parameter
  // times 1 - d. d is this, and at first less, (1 + step) / (10 + step), so that the start is forgotten
  // (B. Polyak, A. Juditsky, 1992; the form of M. Tan, Q. Le, ICML 2019). 0: no averages.
  double average = 0;
  // Normalisations take the statistics of this part of the batch and its neighbours (op/rows/parts_mean.h).
  bool joint_statistics = false;
  LossScale loss_scale = {};  // of reverse gradients alone
  // Keeps the length of each parameter's gradient and of all together, as they are before they are clipped.
  // Of a step that a loss scale skips they stay as they were.
  bool gradient_norms = false;
  GradientMode gradient = {};  // its random directions are drawn from `seed` and the state `step`
};

// Throws Error (bad_graph, invalid_argument, unsupported) when the loss names an output the model does not
// have, a target would take a name that is taken, `frozen` or `gradient` name no parameter, no parameter
// depends on the loss, or an operator on the way has no derivative of the mode.
graph::Graph make_training_step(const graph::Graph& model, const LossSpec& loss,
                                const OptimizerSpec& optimizer, const TrainingStepOptions& options = {});

// The same without an optimiser: loss, the model's outputs, then "gradient/NAME" for each trained parameter
// (zeros where the loss does not depend on it), all of the parameters as they are. Inputs are the model's and
// the targets. Random masks are drawn and running statistics kept as in a training step; `average`, forward
// and mixed gradients are refused. Splitting: the gradients are means over the batch, as the loss is.
// Throws Error as make_training_step() does.
graph::Graph make_gradient_step(const graph::Graph& model, const LossSpec& loss,
                                const TrainingStepOptions& options = {});

}  // namespace superstep::transform
