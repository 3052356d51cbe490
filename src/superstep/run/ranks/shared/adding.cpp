#include "superstep/run/ranks/shared/adding.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace superstep::run {
namespace {

constexpr std::size_t block = 1024;  // floats: stays in the first-level cache

}  // namespace

void add_in_order(float* out, std::span<const float* const> terms, std::size_t count, float scale) {
  if (terms.size() == 2) {
    const float *a = terms[0], *b = terms[1];
    for (std::size_t i = 0; i < count; ++i) out[i] = (a[i] + b[i]) * scale;
    return;
  }
  std::array<float, block> sum;
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t n = std::min(block, count - at);
    std::memcpy(sum.data(), terms[0] + at, n * sizeof(float));
    for (const float* term : terms.subspan(1))
      for (std::size_t i = 0; i < n; ++i) sum[i] += term[at + i];
    for (std::size_t i = 0; i < n; ++i) out[at + i] = sum[i] * scale;
  }
}

}  // namespace superstep::run
