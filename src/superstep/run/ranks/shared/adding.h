// The sum of several arrays in their order: ((t0 + t1) + t2) + ..., the same bits whoever makes it.
#pragma once

#include <cstddef>
#include <span>

namespace superstep::run {

// out[i] = scale * (terms[0][i] + terms[1][i] + ...); out may be one of the terms.
void add_in_order(float* out, std::span<const float* const> terms, std::size_t count, float scale = 1);

}  // namespace superstep::run
