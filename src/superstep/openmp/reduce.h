// The operators of reductions: neutral elements, how two values become one, and the vertices that do it.
#pragma once

#include "superstep/bsp/graph/vertex_class.h"
#include "superstep/openmp/region.h"

namespace superstep::openmp {

void fill_neutral(Operator op, ElementType type, void* values, std::int64_t count);
// into[i] = into[i] op from[i]. Throws Error (unsupported) for bits of floating-point numbers.
void combine(Operator op, ElementType type, void* into, const void* from, std::int64_t count);

// What stands for an element on a tile, which has no double precision: the bits of an f64 are a u64 there.
bsp::Type stored_type(ElementType type);

// A vertex "in", "out": `in` holds groups of as many elements as `out`, which becomes the first group
// combined with the others in order; with `onto`, its own value combined with them in order.
bsp::VertexClass combining_class(Operator op, ElementType type, bool onto);

}  // namespace superstep::openmp
