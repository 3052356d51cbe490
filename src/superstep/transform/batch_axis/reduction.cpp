#include <algorithm>

#include "superstep/transform/batch_axis/rule.h"
#include "superstep/transform/training/over_parts.h"

namespace superstep::transform {
namespace {

constexpr const char* over_batch = "is not linear over the batch";

std::vector<int> reduced_axes(const BatchSite& site) {
  std::vector<int> axes;
  const int rank = site.shape(0).rank();
  for (std::int64_t axis : site.integers("axes", 1)) axes.push_back(normalize_axis(axis, rank));
  const bool nothing = site.node.attributes.integer("noop_with_empty_axes", 0) != 0;
  for (int axis = 0; axes.empty() && !nothing && axis < rank; ++axis) axes.push_back(axis);
  std::ranges::sort(axes);
  return axes;
}

// Axes in front of the samples' that disappear move it forward.
BatchAxis after_removing(const BatchSite& site, const std::vector<int>& axes) {
  const int axis = site.inputs[0].axis;
  if (site.node.attributes.integer("keepdims", 1) != 0) return along(axis, site.inputs[0].rows);
  return along(axis - static_cast<int>(std::ranges::lower_bound(axes, axis) - axes.begin()),
               site.inputs[0].rows);
}

BatchAxis linear_reduction(const BatchSite& site) {
  if (site.averages_sums && is_sum_over_parts(site.node)) return any_constant();
  if (site.is(0, BatchKind::reduced)) return reduced_over_batch();
  std::vector<int> axes = reduced_axes(site);
  const bool over_samples = std::ranges::binary_search(axes, site.inputs[0].axis);
  return over_samples ? reduced_over_batch() : after_removing(site, axes);
}

BatchAxis other_reduction(const BatchSite& site) {
  if (site.is(0, BatchKind::reduced)) return mixes("uses a sum over the batch in a way that is not linear");
  const BatchAxis result = linear_reduction(site);
  return result.kind == BatchKind::reduced ? mixes(over_batch) : result;
}

BatchAxis arg_reduction(const BatchSite& site) {
  if (site.is(0, BatchKind::reduced)) return mixes("uses a sum over the batch in a way that is not linear");
  const int axis = normalize_axis(site.node.attributes.integer("axis", 0), site.shape(0).rank());
  if (axis == site.inputs[0].axis) return mixes("compares samples");
  return after_removing(site, {axis});
}

// Works along one axis, or on all from one axis on, and keeps the shape.
BatchAxis along_axis(const BatchSite& site, std::int64_t default_axis, bool and_after) {
  if (!site.is(0, BatchKind::per_sample) || !site.others_constant({0}))
    return mixes("uses a sum over the batch in a way that is not linear");
  const int rank = site.shape(0).rank();
  const int axis = normalize_axis(site.node.attributes.integer("axis", default_axis), rank);
  const int batch = site.inputs[0].axis;
  const bool touched = and_after ? batch >= axis : batch == axis;
  return touched ? mixes("normalises over the batch") : site.inputs[0];
}

BatchAxis softmax(const BatchSite& site) { return along_axis(site, -1, false); }
BatchAxis layer_normalization(const BatchSite& site) { return along_axis(site, -1, true); }

// One line at a time: the axis is an attribute (-2 by default), or an input.
BatchAxis fourier_line(const BatchSite& site) {
  if (!site.is(0, BatchKind::per_sample) || !site.others_constant({0}))
    return mixes("uses a sum over the batch in a way that is not linear");
  std::int64_t axis = site.node.attributes.integer("axis", -2);
  if (site.has(2)) {
    const auto given = site.integers(2);
    if (!given || given->size() != 1) return mixes("transforms an axis that is not known");
    axis = given->front();
  }
  const bool touched = normalize_axis(axis, site.shape(0).rank()) == site.inputs[0].axis;
  return touched ? mixes("transforms along the batch") : site.inputs[0];
}

// Real and imaginary parts along several axes.
BatchAxis fourier_volume(const BatchSite& site) {
  for (std::size_t part = 0; part < site.inputs.size(); ++part)
    if (!site.is(part, BatchKind::per_sample) || site.inputs[part] != site.inputs[0])
      return mixes("transforms numbers whose parts do not both follow the samples");
  for (std::int64_t axis : site.node.attributes.integers("axes"))
    if (normalize_axis(axis, site.shape(0).rank()) == site.inputs[0].axis)
      return mixes("transforms along the batch");
  return site.inputs[0];
}

// x [N, C, ...] with statistics of every sample of its own.
BatchAxis per_picture(const BatchSite& site) {
  const bool pictures = site.inputs[0] == along(0) && site.others_constant({0});
  return pictures ? along(0) : mixes("normalises over the batch");
}

BatchAxis batch_normalization(const BatchSite& site) {
  const bool training = site.node.attributes.integer("training_mode", 0) != 0;
  return training ? mixes("normalises by the mean and variance of the whole batch") : per_picture(site);
}

// dY, X and scale: a line at a time, but for the sums over lines that scale and bias get.
BatchAxis layer_normalization_gradient(const BatchSite& site) {
  const int rank = site.shape(0).rank();
  const int axis = normalize_axis(site.node.attributes.integer("axis", -1), rank);
  const bool same = site.inputs[0] == site.inputs[1] && site.is(0, BatchKind::per_sample);
  if (!same || !site.is(2, BatchKind::constant) || site.inputs[0].axis >= axis)
    return mixes("normalises over the batch");
  return site.output == 0 ? site.inputs[0] : reduced_over_batch();
}

BatchAxis channel_moments(const BatchSite& site) {
  const bool over_parts = site.averages_sums && site.inputs[0] == along(0);
  return over_parts ? any_constant() : mixes("takes mean and variance of the whole batch");
}

// The sums of a and of a (b - centre) over samples.
BatchAxis channel_sums(const BatchSite& site) {
  const bool sums =
      site.inputs[0] == along(0) && site.inputs[1] == along(0) && site.is(2, BatchKind::constant);
  return sums ? reduced_over_batch() : mixes("sums samples with weights of their own");
}

// Scores [N, C, ...] and labels [N, ...], reduced over everything or not at all.
BatchAxis classification_loss(const BatchSite& site) {
  if (site.inputs[0] != along(0) || site.inputs[1] != along(0)) return mixes("compares samples");
  const std::string reduction = site.node.attributes.text("reduction", "mean");
  // The second output is what the mean was taken of.
  if (reduction == "none" || site.output == 1) return along(0);
  const bool weighted = site.has(2) || site.node.attributes.has("ignore_index");
  if (reduction == "mean" && weighted) return mixes("divides by the weight of the whole batch");
  return reduced_over_batch();
}

constexpr BatchRule rules[] = {
    {"ReduceSum", linear_reduction},
    {"ReduceMean", linear_reduction},
    {"ReduceMax", other_reduction},
    {"ReduceMin", other_reduction},
    {"ReduceProd", other_reduction},
    {"ReduceL1", other_reduction},
    {"ReduceL2", other_reduction},
    {"ReduceSumSquare", other_reduction},
    {"ReduceLogSum", other_reduction},
    {"ReduceLogSumExp", other_reduction},
    {"ArgMax", arg_reduction},
    {"ArgMin", arg_reduction},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"Hardmax", softmax},
    {"LpNormalization", softmax},
    {"DFT", fourier_line},
    {"superstep.Fourier", fourier_volume},
    {"LayerNormalization", layer_normalization},
    {"RMSNormalization", layer_normalization},
    {"superstep.LayerNormalizationGradient", layer_normalization_gradient},
    {"superstep.ChannelMoments", channel_moments},
    {"superstep.ChannelSums", channel_sums},
    {"InstanceNormalization", per_picture},
    {"GroupNormalization", per_picture},
    {"LRN", per_picture},
    {"BatchNormalization", batch_normalization},
    {"Dropout", per_picture},
    {"SoftmaxCrossEntropyLoss", classification_loss},
    {"NegativeLogLikelihoodLoss", classification_loss},
};

}  // namespace

std::span<const BatchRule> reduction_batch_rules() { return rules; }

}  // namespace superstep::transform
