// Products of bf16 pairs by our own loops, for the shapes of batch_reduce.h. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/product/portable_product.h"

namespace superstep::kernels {

// For the instruction set in force: by its dot products of pairs, or each half widened to f32 and multiplied.
// Takes shapes of pairs with an even inner dimension, contiguous in B or in pairs there too.
PortableProduct* pair_product();

}  // namespace superstep::kernels
