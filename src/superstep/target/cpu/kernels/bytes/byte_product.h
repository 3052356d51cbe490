// Batch-reduce products of bytes: weights i8 in quads, [k/4][m][4], times u8, summed in i32. Internal to the
// kernels.
#pragma once

#include <string>

#include "superstep/target/cpu/kernels/product/product_shape.h"

namespace superstep::kernels {

// Why libxsmm cannot make code for the shape on the instruction set in force; empty when it can. Before VNNI,
// code for bytes adds pairs of products in 16 bits and saturates: it is not taken.
std::string generated_bytes_refusal(const ProductShape& shape);

// The same in plain loops. `c` points to i32.
void portable_byte_product(const ProductShape& shape, const void* a, const void* b, float* c,
                           std::uint64_t count, const std::uint64_t* a_offsets,
                           const std::uint64_t* b_offsets);

}  // namespace superstep::kernels
