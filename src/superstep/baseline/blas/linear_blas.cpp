// The four vector operations that LIBLINEAR takes from a BLAS, under the names it calls them by. A BLAS of
// the distribution may be OpenBLAS, which starts a thread for every processor when the program is loaded and
// ends it where that is not allowed; and the bits would depend on which one is installed.
#include <cmath>
#include <cstdint>

namespace {

// Every `step`-th element, as BLAS counts them for steps above 0, which are the only ones LIBLINEAR has.
std::int64_t at(int i, const int* step) { return static_cast<std::int64_t>(i) * *step; }

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are Fortran's
extern "C" {

double ddot_(const int* n, const double* x, const int* x_step, const double* y, const int* y_step) {
  double sum = 0;
  for (int i = 0; i < *n; ++i) sum += x[at(i, x_step)] * y[at(i, y_step)];
  return sum;
}

// Scaled by the largest element, so that squares neither overflow nor vanish.
double dnrm2_(const int* n, const double* x, const int* x_step) {
  double largest = 0, sum = 0;
  for (int i = 0; i < *n; ++i) largest = std::fmax(largest, std::fabs(x[at(i, x_step)]));
  if (largest == 0 || !std::isfinite(largest)) return largest;
  for (int i = 0; i < *n; ++i) sum += (x[at(i, x_step)] / largest) * (x[at(i, x_step)] / largest);
  return largest * std::sqrt(sum);
}

int daxpy_(const int* n, const double* a, const double* x, const int* x_step, double* y, const int* y_step) {
  for (int i = 0; i < *n; ++i) y[at(i, y_step)] += *a * x[at(i, x_step)];
  return 0;
}

int dscal_(const int* n, const double* a, double* x, const int* x_step) {
  for (int i = 0; i < *n; ++i) x[at(i, x_step)] *= *a;
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
