// Which products are worth bytes: a count of cycles, conversions between neighbours included.
#pragma once

#include "superstep/target/target.h"

namespace superstep::target::cpu {

// The products that transform::quantize would take and that are left in f32: beginning with all of them on
// bytes, the one whose return to f32 saves most goes back, until none does. An activation costs a pass to
// become bytes unless the product that made it is on bytes itself and nobody reads it in f32.
std::vector<SlowOnBytes> choose_products_on_bytes(const graph::Graph& model,
                                                  const transform::QuantizeOptions& options);

}  // namespace superstep::target::cpu
