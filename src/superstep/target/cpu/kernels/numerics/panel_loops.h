// Products of panels of matrices with the sums of a machine (numerics/arithmetic.h). Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/numerics/arithmetic.h"

namespace superstep::kernels {

// sums[i][j] += a[i][0] b[0][j] + a[i][1] b[1][j] + ..., as numerics::summed() says.
struct PanelRun {
  const float *a, *b;  // rounded to the operands' type
  float* sums;
  std::int64_t a_pitch, b_pitch, sums_pitch;
  std::int64_t rows, columns, k;    // columns: a multiple of panel_columns
  std::int64_t first;               // product of the whole sum, a multiple of the chunk
  std::uint32_t row, column, node;  // of sums[0][0], for random words
  std::uint64_t key;
  const numerics::Arithmetic* arithmetic;
};
inline constexpr std::int64_t panel_columns = 16;  // lanes of the widest vectors

using PanelLoop = void(const PanelRun& run);
PanelLoop* panel_loop();

}  // namespace superstep::kernels
