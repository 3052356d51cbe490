// Losses that training steps can append to a model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/op/core/builder.h"

namespace superstep::transform {

enum class LossKind : std::uint8_t {
  mse,    // mean (y - t)^2
  l1,     // mean |y - t|
  huber,  // mean of (y - t)^2 / 2 up to |y - t| = delta, delta (|y - t| - delta / 2) beyond
  // Mean -log softmax(y)[t] over scores y [N, C, ...] and labels t i64 [N, ...]; smoothed by s, the label
  // counts 1 - s and every class s / C (C. Szegedy et al., CVPR 2016).
  cross_entropy,
  // Over scores y [N, ..., C] and labels t i64 [N, ...]: the sum of -log softmax(y)[t] over the labels that
  // are not negative, divided by the number of all labels (so that a batch can be split).
  token_cross_entropy,
  // The mean of the output itself: the model computes its own loss, of inputs that may hold labels. An output
  // with a row for each sample is averaged over them; any other is a loss of the whole batch, which then is
  // never split. It takes no target.
  value,
  // 1 - (2 sum y t + 1) / (sum y + sum t + 1) over the whole batch (F. Milletari et al., 3DV 2016, made
  // smooth); y and t in [0, 1]. It is no mean over samples: a batch cannot be split.
  dice,
};

const char* name_of(LossKind kind);
bool needs_target(LossKind kind);
LossKind loss_kind_from_name(std::string_view name);  // throws Error (invalid_argument), nearest name

// One term of a loss; means are over all elements.
struct LossTerm {
  LossKind kind = LossKind::mse;
  std::string output;             // of the model; empty: its only one
  std::string target = "target";  // the name of the input that the training step gets
  double weight = 1;
  double delta = 1;      // huber
  double smoothing = 0;  // cross_entropy: share of a label that is spread evenly over all classes
};

// What a loss of a model's own is built of: values of the training step's graph.
class LossPorts {
 public:
  virtual ~LossPorts() = default;

  // Of the model. Throws Error (invalid_argument) with the nearest name.
  virtual op::Var input(const std::string& name) = 0;
  virtual op::Var output(const std::string& name) = 0;
  virtual bool has_output(const std::string& name) const = 0;

  // An input that the training step gets beside the model's, the batch along its first axis; the same one
  // where it was asked for before. Data fill targets in the order in which they are first asked for.
  virtual op::Var target(const std::string& name, const graph::ValueType& type) = 0;
};

// Builds a scalar: a mean over the samples, so that a batch can be split (transform/batch_axis.h).
using BuildLoss = std::function<op::Var(LossPorts& ports)>;

// The weighted sum of its terms; by default the mean squared error of the only output.
struct LossSpec {
  std::vector<LossTerm> terms = std::vector<LossTerm>(1);
  BuildLoss own =
      nullptr;  // added to the terms: what compares inputs, outputs and targets in a way of its own
};

// What the target of a term that needs one looks like, from the type of the model's output.
graph::ValueType target_type(LossKind kind, const graph::ValueType& output);

// The term without its weight: a scalar of the output's element type. `target`: invalid where the term needs
// none. Throws Error (bad_graph) when the target's type is not target_type().
op::Var build_loss(const LossTerm& term, op::Var output, op::Var target);

}  // namespace superstep::transform
