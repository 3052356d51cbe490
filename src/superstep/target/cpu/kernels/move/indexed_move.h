// Elements and slices chosen by index, and written back or combined with what is there: what Gather,
// GatherElements, GatherND and their scatters have in common. Indices are i32 or i64; negative ones count
// from the end; a run throws Error (invalid_argument) on one that lies outside.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

enum class Combination : std::uint8_t { replace, add, multiply, largest, least };

// A loop over axes, outermost first. At each place of it
//   d = sum over axes of i * data, plus sum over components of index[i * index + offset] * stride
//   o = sum over axes of i * other
// gather: y[o] = data[d]; scatter: data[d] = combined(data[d], updates[o]), one place of the loop after the
// other, so that with `replace` the last one wins. All strides in elements.
//
// gather:  slots inputs data, indices; outputs y.
// scatter: slots inputs updates, indices; outputs data, which holds what is combined.
struct IndexedMove {
  struct Axis {
    std::int64_t extent = 1, data = 0, other = 0, index = 0;
    bool apart = false;  // places that differ here differ in d, whatever the indices are
  };
  struct Component {
    std::int64_t offset = 0, extent = 1, stride = 0;  // of an index vector: indices lie in [-extent, extent)
  };
  std::vector<Axis> axes;
  std::vector<Component> components;
  ElementType type = ElementType::f32;        // of the data
  ElementType other_type = ElementType::f32;  // of updates that are not `replace`d: that of the data, or
                                              // bf16 and f16 beside f32 data
  ElementType index_type = ElementType::i64;
};

// What runs throw on an index that is not in [-extent, extent).
[[noreturn]] void refuse_index(std::int64_t index, std::int64_t extent);

Prepared prepare_indexed_gather(const IndexedMove& move);
Prepared prepare_indexed_scatter(const IndexedMove& move, Combination combination);

}  // namespace superstep::kernels
