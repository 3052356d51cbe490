#include <algorithm>
#include <optional>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/batch_axis.h"

namespace superstep::op::batch {
namespace {

bool is_reduced(const BatchSite& site) { return site.is(0, BatchKind::reduced); }

std::int64_t product_before(const Shape& shape, int axis) {
  std::int64_t product = 1;
  for (int i = 0; i < axis; ++i) product *= shape[i];
  return product;
}

// Something happens along some axes; the samples must not be along one of them.
BatchAxis untouched_axes(const BatchSite& site, std::vector<std::int64_t> axes) {
  if (is_reduced(site)) return reduced_over_batch();
  for (std::int64_t axis : axes)
    if (normalize_axis(axis, site.shape(0).rank()) == site.inputs[0].axis)
      return mixes("picks or moves samples within the batch");
  return site.inputs[0];
}

// Where all inputs that depend on samples have them, if that is one place, and along it constants are the
// same.
std::optional<BatchAxis> common_axis(const BatchSite& site) {
  BatchAxis result = same_everywhere();
  for (const BatchAxis& input : site.inputs)
    if (input.kind != BatchKind::constant) result = input;
  for (const BatchAxis& input : site.inputs) {
    const bool fits =
        input == result || (input.kind == BatchKind::constant && result.kind == BatchKind::per_sample &&
                            (input.varies >> result.axis & 1) == 0);
    if (!fits) return std::nullopt;
  }
  return result;
}

}  // namespace

// The extents are regrouped, the order of the elements stays: with as many elements in front of it, an axis
// that is a multiple of the number of samples carries them.
BatchAxis view(const BatchSite& site) {
  if (is_reduced(site)) return reduced_over_batch();
  const Shape &before = site.shape(0), &after = site.output_shape();
  const BatchAxis& in = site.inputs[0];
  const std::int64_t in_front = product_before(before, in.axis), samples = before[in.axis] / in.rows;
  for (int i = 0; i < after.rank(); ++i)
    if (after[i] == before[in.axis] && product_before(after, i) == in_front) return along(i, in.rows);
  for (int i = 0; i < after.rank(); ++i)
    if (samples > 1 && after[i] % samples == 0 && after[i] > 0 && product_before(after, i) == in_front)
      return along(i, after[i] / samples);
  return mixes("joins the axis of the samples with another");
}

BatchAxis transpose(const BatchSite& site) {
  if (is_reduced(site)) return reduced_over_batch();
  const int rank = site.shape(0).rank();
  const auto axes = site.node.attributes.integers("perm", {});
  for (int i = 0; i < rank; ++i)
    if ((axes.empty() ? rank - 1 - i : axes[static_cast<std::size_t>(i)]) == site.inputs[0].axis)
      return along(i, site.inputs[0].rows);
  return mixes("permutes axes");
}

// The samples' axis counted from the back stays; broadcasting over it would copy a sample.
BatchAxis expand(const BatchSite& site) {
  if (is_reduced(site)) return reduced_over_batch();
  const int axis = site.inputs[0].axis + site.output_shape().rank() - site.shape(0).rank();
  const bool grows = site.output_shape()[axis] != site.shape(0)[site.inputs[0].axis];
  return grows ? mixes("copies one sample to many places") : along(axis, site.inputs[0].rows);
}

// Where the extent along the samples' axis stays, so do the samples (cuts of everything, pads of nothing).
BatchAxis same_extent(const BatchSite& site) {
  if (is_reduced(site)) return reduced_over_batch();
  const int axis = site.inputs[0].axis;
  const bool same = site.output_shape()[axis] == site.shape(0)[axis];
  return same ? site.inputs[0] : mixes("picks or moves samples within the batch");
}

BatchAxis slice(const BatchSite& site) {
  const BatchAxis kept = same_extent(site);
  const auto steps = site.integers(4);
  const bool backward = steps && std::ranges::any_of(*steps, [](std::int64_t step) { return step < 0; });
  return backward ? untouched_axes(site, site.integers("axes", 3)) : kept;
}

// Pads are begins then ends, of all axes or of those listed; cutting off one end and padding the other would
// keep the extent and move the samples.
BatchAxis pad(const BatchSite& site) {
  const auto pads = site.integers("pads", 1);
  std::vector<std::int64_t> moved;
  const auto axes = site.integers(3);
  for (std::size_t i = 0; 2 * i < pads.size(); ++i)
    if (pads[i] != 0 || pads[i + pads.size() / 2] != 0)
      moved.push_back(axes ? (*axes)[i] : static_cast<std::int64_t>(i));
  return untouched_axes(site, moved);
}

BatchAxis split(const BatchSite& site) {
  return untouched_axes(site, {site.node.attributes.integer("axis", 0)});
}

BatchAxis concat(const BatchSite& site) {
  const int axis = normalize_axis(site.node.attributes.integer("axis"), site.output_shape().rank());
  BatchAxis result = same_everywhere();
  for (const BatchAxis& input : site.inputs)
    if (input.kind != BatchKind::constant) result = input;
  for (const BatchAxis& input : site.inputs) {
    if (input.kind == BatchKind::constant && result.kind == BatchKind::per_sample &&
        (input.varies >> result.axis & 1) == 0)
      continue;
    if (input != result) return mixes("joins samples with something else");
  }
  const bool joins_samples = result.kind == BatchKind::per_sample && result.axis == axis;
  return joins_samples ? mixes("picks or moves samples within the batch") : result;
}

// data indexed along `axis`: a table looked up by every sample, or the same places of every sample.
BatchAxis gather(const BatchSite& site) {
  const int axis = normalize_axis(site.node.attributes.integer("axis", 0), site.shape(0).rank());
  if (site.is(0, BatchKind::constant) && site.is(1, BatchKind::per_sample))
    return along(axis + site.inputs[1].axis, site.inputs[1].rows);
  if (!site.is(1, BatchKind::constant)) return mixes("picks elements of samples by other samples");
  if (is_reduced(site)) return reduced_over_batch();
  if (site.inputs[0].axis == axis) return mixes("picks or moves samples within the batch");
  const int gained = site.shape(1).rank() - 1;
  return along(site.inputs[0].axis < axis ? site.inputs[0].axis : site.inputs[0].axis + gained,
               site.inputs[0].rows);
}

// Rows of samples added to the rows of a table that their indices name: a sum over samples.
BatchAxis scatter_rows(const BatchSite& site) {
  const bool adds = site.node.attributes.text("reduction", "none") == "add";
  const bool same = site.is(1, BatchKind::per_sample) && site.inputs[1] == site.inputs[2];
  const bool by_rows = same && site.inputs[1].axis == 0 && site.shape(1).rank() == 2;
  return adds && by_rows && site.is(0, BatchKind::constant) && site.inputs[0].varies == 0
             ? reduced_over_batch()
             : mixes("writes samples to places that samples choose");
}

// Every operand has the packs along its leading axes, one of which carries the samples.
BatchAxis rows_of_packs(const BatchSite& site) {
  const std::optional<BatchAxis> common = common_axis(site);
  if (!common || common->kind == BatchKind::reduced) return mixes("picks rows of samples by other samples");
  const int packs = site.shape(1).rank() - 1;
  return common->axis < packs ? *common : mixes("picks or moves samples within the batch");
}

// Element by element along every axis but one, which is looked up (GatherElements) or written to
// (ScatterElements): all inputs that depend on samples carry them along the same other axis.
BatchAxis along_one_axis(const BatchSite& site) {
  const int axis = normalize_axis(site.node.attributes.integer("axis", 0), site.output_shape().rank());
  const std::optional<BatchAxis> common = common_axis(site);
  if (!common) return mixes("picks elements of samples by other samples");
  if (common->kind == BatchKind::reduced) return *common;
  return common->axis == axis ? mixes("picks or moves samples within the batch") : *common;
}

// The sum up to each element along an axis (input 1).
BatchAxis cumulative(const BatchSite& site) { return untouched_axes(site, site.integers("axis", 1)); }

BatchAxis triangle(const BatchSite& site) { return untouched_axes(site, {-2, -1}); }

// The static shape says nothing about the samples.
BatchAxis shape_only(const BatchSite&) { return any_constant(); }

}  // namespace superstep::op::batch
