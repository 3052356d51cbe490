// Row-major element numbers taken apart into rows and columns.
#include <cstdlib>
#include <set>

#include "superstep/base/integers.h"
#include "superstep/openmp/region.h"

namespace superstep::openmp {
namespace {

// Distinct strides from the largest to 1, each a multiple of the next, the array's size a multiple of all;
// empty: there are none such, or the array has one dimension anyway.
std::vector<std::int64_t> strides_of(const Region& region, const std::vector<Access*>& accesses,
                                     std::int64_t count) {
  std::set<std::int64_t, std::greater<>> strides{1};
  for (const Access* access : accesses)
    for (std::size_t k = 0; k < region.loops.size(); ++k)
      if (const std::int64_t c = std::abs(access->subscripts[0].coefficient(k)); c > 0) strides.insert(c);
  // A coefficient that does not divide the next larger one is a step within a row, not a row.
  std::vector<std::int64_t> result;
  for (const std::int64_t stride : strides) {
    const std::int64_t above = result.empty() ? count : result.back();
    if (above % stride != 0) return {};
    result.push_back(stride);
  }
  return result.size() < 2 ? std::vector<std::int64_t>{} : result;
}

// The multiple of `stride` nearest to a value, halves upwards: what is left is nearest to 0.
std::int64_t nearest_multiple(std::int64_t value, std::int64_t stride) {
  return floor_div(2 * value + stride, 2 * stride);
}

std::vector<Affine> split(const Region& region, const Affine& linear,
                          const std::vector<std::int64_t>& strides) {
  std::vector<Affine> result;
  std::int64_t rest = linear.constant;
  for (const std::int64_t stride : strides) {
    Affine subscript;
    subscript.constant = nearest_multiple(rest, stride);
    rest -= subscript.constant * stride;
    for (std::size_t k = 0; k < region.loops.size(); ++k) {
      const std::int64_t c = linear.coefficient(k);
      subscript.coefficients.push_back(std::abs(c) == stride ? (c > 0 ? 1 : -1) : 0);
    }
    result.push_back(std::move(subscript));
  }
  return result;
}

bool inside(const Region& region, const Access& access, const std::vector<std::int64_t>& extents) {
  return whole(extents).contains(footprint(region, access, region.iterations()));
}

void split_array(Region& region, int array) {
  RegionArray& description = region.arrays[static_cast<std::size_t>(array)];
  if (description.extents.size() != 1) return;
  std::vector<Access*> accesses;
  for (Access& access : region.accesses)
    if (access.array == array) accesses.push_back(&access);
  const std::int64_t count = description.extents[0];
  const std::vector<std::int64_t> strides = strides_of(region, accesses, count);
  if (strides.empty()) return;
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < strides.size(); ++axis)
    extents.push_back((axis == 0 ? count : strides[axis - 1]) / strides[axis]);
  std::vector<std::vector<Affine>> subscripts;
  for (const Access* access : accesses) {
    Access candidate = *access;
    candidate.subscripts = split(region, access->subscripts[0], strides);
    if (!inside(region, candidate, extents)) return;
    subscripts.push_back(std::move(candidate.subscripts));
  }
  for (std::size_t i = 0; i < accesses.size(); ++i) accesses[i]->subscripts = std::move(subscripts[i]);
  description.extents = std::move(extents);
}

}  // namespace

void split_linear_subscripts(Region& region) {
  for (std::size_t array = 0; array < region.arrays.size(); ++array)
    split_array(region, static_cast<int>(array));
}

}  // namespace superstep::openmp
