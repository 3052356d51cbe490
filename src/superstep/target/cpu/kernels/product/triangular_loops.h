// The loop that triangular factors and systems spend their time in. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

inline constexpr int most_folded_rows = 4;  // rows of y that one pass over x serves

// y[r][j] -= sum over p of f[p][r] x[p][j], p in [0, count), j in [0, n), r in [0, rows), rows 1 to
// most_folded_rows: y[r][j] is y[r * y_stride + j], and so on. y lies apart from what is read of x and f.
template <class T>
struct Fold {
  T* y;
  const T *x, *f;
  std::int64_t y_stride, x_stride, f_stride, f_step;  // f[p][r] is f[p * f_stride + r * f_step]
  std::int64_t rows, count, n;
};

// For the instruction set in force.
template <class T>
using FoldLoop = void(const Fold<T>& fold);
FoldLoop<float>* fold_loop(float);
FoldLoop<double>* fold_loop(double);
FoldLoop<std::int32_t>* fold_loop(std::int32_t);  // whole numbers wrap around
FoldLoop<std::int64_t>* fold_loop(std::int64_t);

}  // namespace superstep::kernels
