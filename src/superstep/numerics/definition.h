// Rounding and sums of products by definition, in integers: what the fast loops are held against.
#pragma once

#include <cstdint>
#include <span>

#include "superstep/numerics/arithmetic.h"

namespace superstep::numerics {

// Which random word an element is rounded by: philox({column, row, step / 4, node}, {seed, run})[step % 4].
struct Draw {
  std::uint32_t column = 0, row = 0, step = 0, node = 0;
  std::uint64_t key = 0;  // seed, and the run in its upper half
};
std::uint32_t word_of(const Draw& draw);
// The row of words for what is rounded element by element: element e has column e mod 2^32, step e / 2^32.
inline constexpr std::uint32_t element_row = 0xffffffffu;

// `word` is used by stochastic rounding alone.
float narrowed(float value, const Narrowing& to, std::uint32_t word);

// The sum so far and the products of a[i] and b[i], whose factors are of the arithmetic's operand type, in
// chunks from product `first` on (a multiple of the chunk), rounded after each of them and at the end. `draw`
// says column, row and node.
float summed(float sum, std::span<const float> a, std::span<const float> b, const Arithmetic& arithmetic,
             std::int64_t first, Draw draw);

}  // namespace superstep::numerics
