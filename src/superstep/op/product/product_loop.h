// The loop of a matrix product, in the order of its definition: whatever is done at a time, every result is
// the sum over k one after the other, and has the same bits.
#pragma once

#include <cstdint>

namespace superstep::op {

// y[j] += f[0] b[j] + f[1] b[n + j] + ..., four rows of b at a time, added in the order in which one at a
// time would be: the same bits with a quarter of the traffic. Gives the rows that were taken.
template <class W>
std::int64_t add_four_rows(const W* f, const W* b, W* y, std::int64_t n, std::int64_t k) {
  std::int64_t l = 0;
  for (; l + 4 <= k; l += 4) {
    const W f0 = f[l], f1 = f[l + 1], f2 = f[l + 2], f3 = f[l + 3];
    const W *b0 = b + l * n, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
    for (std::int64_t j = 0; j < n; ++j)
      y[j] = (((y[j] + f0 * b0[j]) + f1 * b1[j]) + f2 * b2[j]) + f3 * b3[j];
  }
  return l;
}

// y[m,n] += a[m,k] b[k,n]; rows of y are `pitch` elements apart.
template <class W>
void add_product(const W* a, const W* b, W* y, std::int64_t m, std::int64_t n, std::int64_t k,
                 std::int64_t pitch) {
  for (std::int64_t i = 0; i < m; ++i) {
    W* target = y + i * pitch;
    for (std::int64_t l = add_four_rows(a + i * k, b, target, n, k); l < k; ++l) {
      const W factor = a[i * k + l];
      const W* row = b + l * n;
      for (std::int64_t j = 0; j < n; ++j) target[j] += factor * row[j];
    }
  }
}

}  // namespace superstep::op
