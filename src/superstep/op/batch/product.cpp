#include "superstep/op/batch/rules.h"
#include "superstep/op/core/batch_axis.h"

namespace superstep::op::batch {
namespace {

constexpr const char* samples_as_weights = "uses samples as the weights of other samples";

// What a product of A [..., rows, inner] and B [..., inner, columns] gives, from the role that the batch
// plays in each: an outer axis of one, or the inner axis of both (a sum over samples).
struct Role {
  bool batched = false;  // carries samples at all
  std::int64_t rows = 1;
  bool inner = false;   // along the axis that is summed over
  int output_axis = 0;  // otherwise: where this axis is in the result
};

BatchAxis combine(const Role& a, const Role& b) {
  if (a.batched && b.batched) {
    if (a.inner && b.inner && a.rows == b.rows) return reduced_over_batch();
    if (a.inner != b.inner || a.output_axis != b.output_axis || a.rows != b.rows)
      return mixes("multiplies every sample by every other");
    return along(a.output_axis, a.rows);
  }
  const Role& only = a.batched ? a : b;
  return only.inner ? mixes("sums samples with weights of their own") : along(only.output_axis, only.rows);
}

bool any_reduced(const BatchSite& site) {
  return std::ranges::any_of(site.inputs, [](const BatchAxis& in) { return in.kind == BatchKind::reduced; });
}

BatchAxis linear_in_reduced(const BatchSite& site) {
  const auto dependent =
      std::ranges::count_if(site.inputs, [](const BatchAxis& in) { return in.kind != BatchKind::constant; });
  return dependent == 1 ? reduced_over_batch() : mixes("multiplies sums over the batch");
}

}  // namespace

// Gemm: A' [rows, inner], B' [inner, columns], C broadcast to [rows, columns].
BatchAxis gemm(const BatchSite& site) {
  if (any_reduced(site)) return linear_in_reduced(site);
  const auto role = [&](std::size_t input, const char* transposed, int outer) {
    if (!site.is(input, BatchKind::per_sample)) return Role{};
    const bool flipped = site.node.attributes.integer(transposed, 0) != 0;
    const int axis = flipped ? 1 - site.inputs[input].axis : site.inputs[input].axis;
    return Role{
        .batched = true, .rows = site.inputs[input].rows, .inner = axis != outer, .output_axis = outer};
  };
  const Role a = role(0, "transA", 0), b = role(1, "transB", 1);
  if (!site.has(2) || site.is(2, BatchKind::constant)) {
    const BatchAxis product = combine(a, b);
    const bool differs = site.has(2) && product.kind == BatchKind::per_sample &&
                         site.shape(2).rank() + product.axis >= 2 &&
                         site.shape(2)[site.shape(2).rank() - 2 + product.axis] > 1 &&
                         (site.inputs[2].varies >> (site.shape(2).rank() - 2 + product.axis) & 1) != 0;
    return differs ? mixes("treats samples by their place in the batch") : product;
  }
  const int own = site.inputs[2].axis + 2 - site.shape(2).rank();
  if (!a.batched && !b.batched) return mixes(samples_as_weights);
  const BatchAxis product = combine(a, b);
  return product == along(own, site.inputs[2].rows) ? product : mixes("adds samples to other samples");
}

BatchAxis matmul(const BatchSite& site) {
  if (any_reduced(site)) return linear_in_reduced(site);
  const int rank = site.output_shape().rank();
  for (std::size_t i : {0u, 1u})
    if (site.shape(i).rank() < 2) return mixes("multiplies by a vector of samples");
  const auto role = [&](std::size_t input, int inner_from_back) {
    if (!site.is(input, BatchKind::per_sample)) return Role{};
    const int from_back = site.shape(input).rank() - site.inputs[input].axis;
    return Role{.batched = true,
                .rows = site.inputs[input].rows,
                .inner = from_back == inner_from_back,
                .output_axis = rank - from_back};
  };
  const Role a = role(0, 1), b = role(1, 2);
  for (std::size_t i : {0u, 1u}) {
    // A constant with leading axes of its own, broadcast against the samples' axis, is cut by sample.
    const Role& other = i == 0 ? b : a;
    const int own = site.shape(i).rank() - (rank - other.output_axis);
    if (other.batched && !other.inner && site.is(i, BatchKind::constant) && own >= 0 &&
        own < site.shape(i).rank() - 2 && site.shape(i)[own] > 1 && (site.inputs[i].varies >> own & 1) != 0)
      return mixes("treats samples by their place in the batch");
  }
  return combine(a, b);
}

// One kernel over every sample: x [N, C, ...] with constant weights.
BatchAxis windowed(const BatchSite& site) {
  if (any_reduced(site)) return mixes("uses a sum over the batch as a picture");
  if (!site.others_constant({0})) return mixes(samples_as_weights);
  return site.inputs[0].axis == 0 ? site.inputs[0] : mixes("takes samples for channels or pixels");
}

// A window cut out of the picture may be cut out of the samples, too.
BatchAxis resized(const BatchSite& site) {
  const bool crops =
      site.node.attributes.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  const bool all_samples = site.output_shape()[0] == site.shape(0)[0];
  return all_samples && !crops ? windowed(site) : mixes("picks or moves samples within the batch");
}

// Rounding to an integer scale and back, element by element, with constant scales.
BatchAxis quantization(const BatchSite& site) {
  if (site.inputs[0].kind == BatchKind::reduced) return mixes("rounds a sum over the batch");
  if (!site.others_constant({0})) return mixes("takes samples for scales");
  const int rank = site.shape(0).rank();
  const auto scaled = static_cast<int>(site.node.attributes.integer("axis", 1));
  const bool by_sample = (scaled < 0 ? scaled + rank : scaled) == site.inputs[0].axis;
  if (by_sample && site.shape(1).element_count() > 1)
    return mixes("treats samples by their place in the batch");
  return along(site.inputs[0].axis);
}

// Both inputs carry the batch along axis 0; the result sums over it.
BatchAxis weight_gradient(const BatchSite& site) {
  const bool both = site.inputs[0] == along(0) && site.inputs[1] == along(0);
  return both ? reduced_over_batch() : mixes("sums samples with weights of their own");
}

// Every input that depends on samples carries them along axis 0, and so does the result.
BatchAxis sample_by_sample(const BatchSite& site) {
  for (const BatchAxis& input : site.inputs)
    if (input.kind != BatchKind::constant && input != along(0))
      return mixes("takes samples for something else");
  return along(0);
}

}  // namespace superstep::op::batch
