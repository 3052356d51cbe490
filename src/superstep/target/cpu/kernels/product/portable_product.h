// The batch-reduce product without generated code. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/product/product_shape.h"

namespace superstep::kernels {

using PortableProduct = void(const ProductShape& shape, const void* a, const void* b, float* c,
                             std::uint64_t count, const std::uint64_t* a_offsets,
                             const std::uint64_t* b_offsets);

// For the instruction set in force; f32, or bf16 in either order of A.
PortableProduct* portable_product();

}  // namespace superstep::kernels
