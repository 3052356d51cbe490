// The vertex that makes results of partial results.
#pragma once

#include <string>
#include <vector>

#include "superstep/bsp/graph/vertex_class.h"
#include "superstep/machine/ipu/hardware.h"
#include "superstep/target/ipu/cut/cut.h"

namespace superstep::target::ipu {

// `count` results from `weights.size()` partial ones each, lists of vectors, so that none is moved on its
// tile. Sums are made in double and rounded once. `weights`: how many elements each partial result stands for
// (means, moments, places). Fields are in0, out0; of pairs in1 and out1 are the variances, or the places
// (i64).
bsp::VertexClass combine_vertex(std::string name, Combine combine, ElementType element, std::int64_t count,
                                std::vector<double> weights, const machine::ipu::Hardware& hardware);

}  // namespace superstep::target::ipu
