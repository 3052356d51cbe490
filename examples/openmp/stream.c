/* STREAM's kernels after k rounds, beside their closed form. */
#include <math.h>
#include <stdio.h>

#define N 40000

static float a[N], b[N], c[N];

int main(void) {
  const int rounds = 10;
  const float s = 0.4142135623f;
  float dot = 0;
  for (int i = 0; i < N; i++) a[i] = 1.0f, b[i] = 2.0f, c[i] = 0.0f;
#pragma omp target data map(tofrom : a, b, c)
  for (int k = 0; k < rounds; k++) {
#pragma omp target teams distribute parallel for simd
    for (int i = 0; i < N; i++) c[i] = a[i];
#pragma omp target teams distribute parallel for simd
    for (int i = 0; i < N; i++) b[i] = s * c[i];
#pragma omp target teams distribute parallel for simd
    for (int i = 0; i < N; i++) c[i] = a[i] + b[i];
#pragma omp target teams distribute parallel for simd
    for (int i = 0; i < N; i++) a[i] = b[i] + s * c[i];
  }
#pragma omp target teams distribute parallel for reduction(+ : dot) map(to : a, b)
  for (int i = 0; i < N; i++) dot += a[i] * b[i];

  float x = 1, y = 2, z = 0;
  int wrong = 0;
  for (int k = 0; k < rounds; k++) z = x, y = s * z, z = x + y, x = y + s * z;
  for (int i = 0; i < N; i++) wrong += a[i] != x || b[i] != y || c[i] != z;
  const double expected = (double)N * x * y, off = fabs(dot - expected) / expected,
               most = 2.0 * N * 6e-8; /* the rounding of a sum of N numbers in any order */
  printf("%d elements differ from %.7g %.7g %.7g; dot %s\n", wrong, x, y, z,
         off < most ? "agrees" : "differs");
  return wrong != 0 || off >= most;
}
