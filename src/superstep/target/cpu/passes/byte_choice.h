// Which products are worth bytes: a count of cycles, conversions between neighbours included.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "superstep/target/target.h"

namespace superstep::target::cpu {

struct ByteChoice {
  std::vector<SlowOnBytes> slow;  // of what transform::quantize would take: stays off bytes
  // Results of products off bytes, those that it would not take among them, that are multiplied in bf16.
  std::set<std::string, std::less<>> in_bf16;
};

// Each product on bytes, in f32 or, where options.beside_bf16 allows it and pairs of bf16 are multiplied fast
// here, in bf16: beginning with all of them on bytes, the one whose change saves most changes, until none
// does; where bytes gain little over none at all, beginning with none of them too. An activation costs a pass
// to become bytes unless the product that made it is on bytes itself and nobody reads it otherwise, and one
// to become bf16 behind a product on bytes.
ByteChoice choose_products_on_bytes(const graph::Graph& model, const transform::QuantizeOptions& options);

}  // namespace superstep::target::cpu
