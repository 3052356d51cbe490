#include "superstep/run/sample/likelihood.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"

namespace superstep::run {
namespace {

using Kind = Likelihood::Kind;
using transform::LossKind;

constexpr double log_two_pi = 1.8378770664093454836;  // log(2 pi)

Kind kind_of(const transform::LossTerm& term, const std::string& workload) {
  if (!term.class_weights.empty() || term.ignored || !term.sample_weights.empty() || !term.mask.empty())
    throw Error(ErrorCode::unsupported, "counts some data more than others, and a density does not", workload,
                "sample it without weights and masks");
  switch (term.kind) {
    case LossKind::mse: return Kind::normal;
    case LossKind::l1: return Kind::laplace;
    case LossKind::cross_entropy:
    case LossKind::token_cross_entropy: return Kind::categorical;
    default: break;
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("its loss, {}, is not the logarithm of a density", name_of(term.kind)), workload,
              "mse, l1 and cross_entropy are: of a model file choose one by --loss");
}

// Of one position: log softmax of the label's class. Classes are `stride` apart.
double log_of_class(const Tensor& scores, std::int64_t first, std::int64_t stride, std::int64_t classes,
                    std::int64_t label) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) largest = std::max(largest, scores.at(first + c * stride));
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(scores.at(first + c * stride) - largest);
  return scores.at(first + label * stride) - largest - std::log(sum);
}

double log_of_labels(const Likelihood& likelihood, const Tensor& scores, const Tensor& labels,
                     std::int64_t sample) {
  const std::int64_t rows = scores.shape()[0], all = scores.element_count() / rows;
  const std::int64_t positions = labels.element_count() / labels.shape()[0], classes = all / positions;
  const bool last = likelihood.term.kind == LossKind::token_cross_entropy;
  double log = 0;
  for (std::int64_t k = 0; k < positions; ++k) {
    const auto label = static_cast<std::int64_t>(labels.at(sample * positions + k));
    if (label < 0 || label >= classes) continue;  // not scored
    log +=
        log_of_class(scores, sample * all + (last ? k * classes : k), last ? 1 : positions, classes, label);
  }
  return log;
}

}  // namespace

const char* name_of(Kind kind) {
  return kind == Kind::normal ? "normal" : kind == Kind::laplace ? "Laplace" : "categorical";
}

std::vector<Likelihood> likelihoods_of(const transform::LossSpec& loss, std::optional<double> scale,
                                       const std::string& workload) {
  if (loss.own)
    throw Error(ErrorCode::unsupported, "its loss is of its own: nobody says of which density it is",
                workload, "losses of terms, mse, l1 and cross_entropy, are sampled");
  std::vector<Likelihood> all;
  for (const transform::LossTerm& term : loss.terms) {
    Likelihood likelihood{.kind = kind_of(term, workload), .term = term, .scale = {}};
    likelihood.term.weight = 1, likelihood.term.smoothing = 0;
    if (likelihood.has_scale()) likelihood.scale = scale;
    all.push_back(std::move(likelihood));
  }
  return all;
}

LikelihoodValue evaluate(Kind kind, double count, double loss, double log_scale) {
  const double scale = std::exp(log_scale);
  switch (kind) {
    case Kind::normal: {
      const double squares = loss / (scale * scale);
      return {-count * (log_scale + squares / 2 + log_two_pi / 2), count * (squares - 1),
              count / (2 * scale * scale)};
    }
    case Kind::laplace:
      return {-count * (log_scale + std::numbers::ln2 + loss / scale), count * (loss / scale - 1),
              count / scale};
    case Kind::categorical: break;
  }
  return {-count * loss, 0, count};
}

double prior_log_scale(Kind kind, const Tensor& targets) {
  if (kind == Kind::categorical) return 0;
  const std::int64_t count = targets.element_count();
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += targets.at(i);
  const double centre = sum / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) squares += std::pow(targets.at(i) - centre, 2);
  const double deviation = std::sqrt(squares / static_cast<double>(count));
  return deviation > 0 ? std::log(deviation) : 0;
}

double log_density_of_sample(const Likelihood& likelihood, const Tensor& outputs, const Tensor& targets,
                             std::int64_t sample, double log_scale) {
  if (likelihood.kind == Kind::categorical) return log_of_labels(likelihood, outputs, targets, sample);
  const std::int64_t width = targets.element_count() / targets.shape()[0];
  double loss = 0;
  for (std::int64_t i = sample * width; i < (sample + 1) * width; ++i) {
    const double off = std::abs(outputs.at(i) - targets.at(i));
    loss += likelihood.kind == Kind::normal ? off * off : off;
  }
  const auto count = static_cast<double>(width);
  return evaluate(likelihood.kind, count, loss / count, log_scale).log;
}

}  // namespace superstep::run
