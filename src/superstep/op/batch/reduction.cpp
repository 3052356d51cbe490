#include <algorithm>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/batch_axis.h"

namespace superstep::op::batch {
namespace {

constexpr const char* over_batch = "is not linear over the batch";

std::vector<int> reduced_axes(const BatchSite& site) {
  std::vector<int> axes;
  const int rank = site.shape(0).rank();
  for (std::int64_t axis : site.integers("axes", 1)) axes.push_back(normalize_axis(axis, rank));
  const bool nothing = site.node.attributes.integer("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !nothing)
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
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

// Works along one axis, or on all from one axis on, and keeps the shape.
BatchAxis within_axes(const BatchSite& site, std::int64_t default_axis, bool and_after) {
  if (!site.is(0, BatchKind::per_sample) || !site.others_constant({0}))
    return mixes("uses a sum over the batch in a way that is not linear");
  const int rank = site.shape(0).rank();
  const int axis = normalize_axis(site.node.attributes.integer("axis", default_axis), rank);
  const int batch = site.inputs[0].axis;
  const bool touched = and_after ? batch >= axis : batch == axis;
  return touched ? mixes("normalizes over the batch") : site.inputs[0];
}

}  // namespace

BatchAxis mean(const BatchSite& site) {
  if (site.is(0, BatchKind::reduced)) return reduced_over_batch();
  std::vector<int> axes = reduced_axes(site);
  const bool over_samples = std::ranges::binary_search(axes, site.inputs[0].axis);
  return over_samples ? reduced_over_batch() : after_removing(site, axes);
}

// A sum that is marked to be taken of the whole batch is the same for all its parts.
BatchAxis sum(const BatchSite& site) {
  const bool of_whole = site.node.attributes.integer("over_parts", 0) != 0;
  return site.averages_sums && of_whole ? any_constant() : mean(site);
}

BatchAxis other_reduction(const BatchSite& site) {
  if (site.is(0, BatchKind::reduced)) return mixes("uses a sum over the batch in a way that is not linear");
  const BatchAxis result = mean(site);
  return result.kind == BatchKind::reduced ? mixes(over_batch) : result;
}

BatchAxis arg_reduction(const BatchSite& site) {
  if (site.is(0, BatchKind::reduced)) return mixes("uses a sum over the batch in a way that is not linear");
  const int axis = normalize_axis(site.node.attributes.integer("axis", 0), site.shape(0).rank());
  if (axis == site.inputs[0].axis) return mixes("compares samples");
  return after_removing(site, {axis});
}

BatchAxis along_axis(const BatchSite& site) { return within_axes(site, -1, false); }
BatchAxis from_axis_on(const BatchSite& site) { return within_axes(site, -1, true); }

// x [N, C, ...] with statistics of every sample of its own.
BatchAxis per_picture(const BatchSite& site) {
  const bool pictures = site.inputs[0] == along(0) && site.others_constant({0});
  return pictures ? along(0) : mixes("normalizes over the batch");
}

BatchAxis batch_normalization(const BatchSite& site) {
  const bool training = site.node.attributes.integer("training_mode", 0) != 0;
  return training ? mixes("normalizes by the mean and variance of the whole batch") : per_picture(site);
}

// dY, X and scale: a line at a time, but for the sums over lines that scale and bias get.
BatchAxis layer_normalization_gradient(const BatchSite& site) {
  const int rank = site.shape(0).rank();
  const int axis = normalize_axis(site.node.attributes.integer("axis", -1), rank);
  const bool same = site.inputs[0] == site.inputs[1] && site.is(0, BatchKind::per_sample);
  if (!same || !site.is(2, BatchKind::constant) || site.inputs[0].axis >= axis)
    return mixes("normalizes over the batch");
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

}  // namespace superstep::op::batch
