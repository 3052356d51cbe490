// Losses that training steps can append to a model.
//
// Definitions are those of PyTorch's torch.nn.functional with reduction "mean" (docs/losses.md, 2.x), unless
// a line here says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
  // counts 1 - s and every class s / C (C. Szegedy et al., CVPR 2016). With weights of classes it is divided
  // by the sum of the labels' weights, with an ignored label by the number of the others.
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
  smooth_l1,        // the Huber loss divided by its delta, here called beta
  log_cosh,         // mean log cosh(y - t)
  bce,              // mean -(t log y + (1 - t) log(1 - y)), y and t in [0, 1]; logarithms end at -100
  bce_with_logits,  // the same of sigmoid(y); what is 1 counts `positive_weight` times
  // (1 - p)^gamma times bce_with_logits, where p is what sigmoid(y) gives to the truth; alpha: the weight of
  // what is 1, 1 - alpha of what is 0 (T.-Y. Lin et al., ICCV 2017).
  focal,
  nll,           // as cross_entropy, over log-probabilities
  kl_div,        // sum t (log t - y) of a sample over log-probabilities y, its mean over the samples
  poisson_nll,   // mean exp(y) - t y: y is the logarithm of a rate, t are counts
  gaussian_nll,  // mean (log v + (y - t)^2 / v) / 2, v an output with variances, 1e-6 at least
  cosine,        // mean 1 - y.t / (|y| |t|), along axis 1
  // 1 - (sum y t + 1) / (sum y t + alpha sum y (1 - t) + beta sum (1 - y) t + 1) over the whole batch (S. S.
  // M. Salehi et al., MLMI 2017); y and t in [0, 1].
  tversky,
  // Mean max(0, margin + |a - p| - |a - n|) of three outputs of one shape: an anchor, what is like it and
  // what is not; lengths along the last axis (V. Balntas et al., BMVC 2016). It takes no target.
  triplet_margin,
  // Over scores or log-probabilities y [N, frames, C] and labels t i64 [N, longest]: minus the logarithm of
  // what all alignments of the labels with the frames have together, divided by the number of labels (A.
  // Graves et al., ICML 2006). Infinite where no alignment fits (training/ctc.h).
  ctc,
};

const char* name_of(LossKind kind);
bool needs_target(LossKind kind);
// Whether it compares with labels, whole numbers from 0 to the number of classes.
bool takes_labels(LossKind kind);
// Of a loss over labels: the axis of its scores that has the classes.
int class_axis(LossKind kind, const Shape& scores);
// Whether outputs of this rank can be compared that way: scores have axes for classes and frames.
bool has_axes_for(LossKind kind, const Shape& output);
// Whether it is one number of a whole batch, and none of a sample.
bool is_of_whole_batch(LossKind kind);
LossKind loss_kind_from_name(std::string_view name);  // throws Error (invalid_argument), nearest name

// One term of a loss; means are over all elements.
struct LossTerm {
  LossKind kind = LossKind::mse;
  std::string output;             // of the model; empty: its only one
  std::string target = "target";  // the name of the input that the training step gets
  double weight = 1;
  double delta = 1;      // huber; smooth_l1: beta
  double smoothing = 0;  // cross_entropy: share of a label that is spread evenly over all classes
  double gamma = 2;      // focal
  std::optional<double> alpha, beta;         // focal (0.25; negative: none), tversky (0.5 each)
  double positive_weight = 1;                // bce_with_logits
  std::vector<double> class_weights = {};    // cross_entropy, nll: one for each class
  std::optional<std::int64_t> ignored = {};  // cross_entropy, nll: the label that is left out
  std::string variance = {};                 // gaussian_nll: the output that has it
  // Names of inputs that the training step gets beside the target. Weights of samples, [N]: the mean is of
  // what each times its weight is. A mask, of the shape of what is averaged (of targets, of labels): sums of
  // what each times its mask is, divided by the sum of the mask over the whole batch.
  std::string sample_weights = {}, mask = {};
  // triplet_margin: the outputs that the anchor is compared with; lengths are those of this power; with
  // `swap` the negative's distance is the smaller one of those from anchor and from positive.
  std::string positive = {}, negative = {};
  double margin = 1, power = 2;
  bool swap = false;
  // ctc: the class that stands for no label, the most labels that a sample has (none: as many as frames),
  // and whether a sample that no alignment fits counts zero. The names of inputs with the lengths of samples
  // and of their labels, i64 [N]; without: all frames, and labels up to the first that is blank or negative.
  std::int64_t blank = 0;
  std::optional<std::int64_t> longest = {};
  bool zero_infinity = false;
  std::string input_lengths = {}, target_lengths = {};
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

// What the target of a term that needs one looks like, from the type of the model's output. Throws Error
// (bad_graph) where such an output cannot be compared that way.
graph::ValueType target_type(const LossTerm& term, const graph::ValueType& output);
// What is averaged, and so a mask of it: from the type of the output, as above.
graph::ValueType mask_type(const LossTerm& term, const graph::ValueType& output);
graph::ValueType sample_weights_type(const graph::ValueType& output);
graph::ValueType lengths_type(const graph::ValueType& output);

// What a term is of beside output and target; invalid where it has none.
struct LossExtras {
  op::Var variance = {}, sample_weights = {}, mask = {};
  op::Var positive = {}, negative = {};             // triplet_margin
  op::Var input_lengths = {}, target_lengths = {};  // ctc
};

// The term without its weight: a scalar of the output's element type. `target`: invalid where the term needs
// none. Throws Error (bad_graph) when the target's type is not target_type().
op::Var build_loss(const LossTerm& term, op::Var output, op::Var target, const LossExtras& extras = {});

}  // namespace superstep::transform
