#include <algorithm>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/batch_axis.h"

namespace superstep::op::batch {
namespace {

// Broadcasting aligns axes from the back: how far an input's axes move.
int shift_of(const BatchSite& site, std::size_t input) {
  return site.output_shape().rank() - site.shape(input).rank();
}

// Does this constant have elements of its own for the samples along the output's `axis`?
bool differs_along(const BatchSite& site, std::size_t input, int axis) {
  const int own = axis - shift_of(site, input);
  return own >= 0 && site.shape(input)[own] > 1 && (site.inputs[input].varies >> own & 1) != 0;
}

BatchAxis per_sample(const BatchSite& site) {
  int axis = -1;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < site.inputs.size(); ++i) {
    if (!site.is(i, BatchKind::per_sample)) continue;
    const int here = site.inputs[i].axis + shift_of(site, i);
    if (axis >= 0 && (here != axis || site.inputs[i].rows != rows))
      return mixes("combines every sample with every other");
    axis = here;
    rows = site.inputs[i].rows;
  }
  for (std::size_t i = 0; i < site.inputs.size(); ++i) {
    if (site.is(i, BatchKind::reduced) && !site.averages_sums)
      return mixes("gives a sum over the batch back to the samples");
    if (site.has(i) && site.is(i, BatchKind::constant) && differs_along(site, i, axis))
      return mixes("treats samples by their place in the batch");
  }
  return along(axis, rows);
}

constexpr const char* not_linear = "uses a sum over the batch in a way that is not linear";

std::int64_t sums_over_batch(const BatchSite& site) {
  return std::ranges::count(site.inputs, BatchKind::reduced, &BatchAxis::kind);
}

// `stays_sum`: what the node does to sums over the batch is linear in them.
BatchAxis per_sample_or_sum(const BatchSite& site, bool stays_sum) {
  const bool some = std::ranges::any_of(
      site.inputs, [](const BatchAxis& input) { return input.kind == BatchKind::per_sample; });
  if (some) return per_sample(site);
  return stays_sum ? reduced_over_batch() : mixes(not_linear);
}

}  // namespace

BatchAxis elementwise(const BatchSite& site) { return per_sample_or_sum(site, false); }
BatchAxis additive(const BatchSite& site) { return per_sample_or_sum(site, true); }
BatchAxis identity(const BatchSite& site) {
  const bool whole = site.node.attributes.integer("of_whole_batch", 0) != 0;
  return whole && site.is(0, BatchKind::reduced) ? mixes("is a loss of the whole batch") : additive(site);
}
BatchAxis multiplied(const BatchSite& site) { return per_sample_or_sum(site, sums_over_batch(site) == 1); }
BatchAxis divided(const BatchSite& site) { return per_sample_or_sum(site, !site.is(1, BatchKind::reduced)); }

}  // namespace superstep::op::batch
