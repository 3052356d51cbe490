// What a loss says as a probability: the mean of -log p over the data, up to constants and a scale.
//
//   mse            normal noise of standard deviation s around the output: n log s + n mse / (2 s^2) and
//                  n log(2 pi) / 2
//   l1             Laplace noise of scale s: n log(2 s) + n l1 / s
//   cross_entropy  one of the classes, by the softmax of the output: n cross_entropy
//
// n is the number of outputs that are compared (of labels, for classes). log s is sampled beside the
// parameters, unless it is given. Its prior is normal with the deviation 1 around the log of the targets' own
// deviation: within a factor of e of it by two chances in three.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/transform/training/loss.h"

namespace superstep::run {

struct Likelihood {
  enum class Kind : std::uint8_t { normal, laplace, categorical } kind = Kind::normal;
  transform::LossTerm term;     // as it is computed: without weight and smoothing
  std::optional<double> scale;  // given, not sampled

  bool has_scale() const { return kind != Kind::categorical; }
  bool samples_scale() const { return has_scale() && !scale; }
};
const char* name_of(Likelihood::Kind kind);

// The likelihoods of a loss, a term each; `scale` is that of every noise, where it is given. Weights of terms
// are left away: noise has a scale of its own. Throws Error (unsupported) where the loss is not the logarithm
// of a density: huber, dice, a loss of the model's own.
std::vector<Likelihood> likelihoods_of(const transform::LossSpec& loss, std::optional<double> scale,
                                       const std::string& workload);

// What is left of a term once data and scale are known, of `count` numbers whose mean loss is `loss`: the log
// likelihood, how it changes with log s, and by what the gradient of the loss is to be multiplied.
struct LikelihoodValue {
  double log = 0, by_log_scale = 0, weight = 0;
};
LikelihoodValue evaluate(Likelihood::Kind kind, double count, double loss, double log_scale);

// The mean of the prior of log s.
double prior_log_scale(Likelihood::Kind kind, const Tensor& targets);

// Log density of one sample's targets given its outputs: rows of [N, ...]; of classes [N, C, ...] and labels
// [N, ...], or with the classes last.
double log_density_of_sample(const Likelihood& likelihood, const Tensor& outputs, const Tensor& targets,
                             std::int64_t sample, double log_scale);

}  // namespace superstep::run
