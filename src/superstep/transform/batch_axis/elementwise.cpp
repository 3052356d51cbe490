#include <algorithm>

#include "superstep/transform/batch_axis/rule.h"
#include "superstep/transform/fuse_elementwise.h"

namespace superstep::transform {
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

// Sums over the batch stay sums when they are added up or scaled.
BatchAxis linear(const BatchSite& site) {
  static constexpr std::string_view additive[] = {"Add", "Sub", "Sum", "Mean", "Neg", "Identity", "Cast"};
  if (std::ranges::find(additive, site.node.op) != std::end(additive)) return reduced_over_batch();
  const auto count = std::ranges::count(site.inputs, BatchKind::reduced, &BatchAxis::kind);
  if (site.node.op == "Mul" && count == 1) return reduced_over_batch();
  if (site.node.op == "Div" && !site.is(1, BatchKind::reduced)) return reduced_over_batch();
  return mixes("uses a sum over the batch in a way that is not linear");
}

}  // namespace

BatchAxis elementwise_batch_rule(const BatchSite& site) {
  const bool some = std::ranges::any_of(
      site.inputs, [](const BatchAxis& input) { return input.kind == BatchKind::per_sample; });
  return some ? per_sample(site) : linear(site);
}

namespace {

std::uint64_t axes_below(int rank) { return rank >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rank) - 1; }

std::uint64_t elementwise_variation(const BatchSite& site) {
  std::uint64_t varies = 0;
  for (std::size_t i = 0; i < site.inputs.size(); ++i)
    if (site.has(i))
      varies |= (site.inputs[i].varies & axes_below(site.shape(i).rank())) << shift_of(site, i);
  return varies;
}

bool all_uniform(const BatchSite& site) {
  for (std::size_t i = 0; i < site.inputs.size(); ++i)
    if (site.has(i) && (site.inputs[i].varies & axes_below(site.shape(i).rank())) != 0) return false;
  return true;
}

}  // namespace

BatchAxis constant_batch_rule(const BatchSite& site) {
  const std::string_view op = site.node.op;
  BatchAxis result = any_constant();
  if (op == "ConstantOfShape") return same_everywhere();
  if (is_elementwise(op)) result.varies = elementwise_variation(site);
  // The second input of these is a shape, not elements.
  const bool moves = op == "Expand" || op == "Reshape" || op == "Tile" || op == "Unsqueeze" ||
                     op == "Squeeze" || op == "Flatten" || op == "Transpose";
  if (moves && (site.inputs[0].varies & axes_below(site.shape(0).rank())) == 0) return same_everywhere();
  if (op == "Expand")
    result.varies = (site.inputs[0].varies & axes_below(site.shape(0).rank())) << shift_of(site, 0);
  if (op.starts_with("Reduce") && all_uniform(site)) return same_everywhere();
  return result;
}

}  // namespace superstep::transform
