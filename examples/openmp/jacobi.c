/* Jacobi's iteration until the largest change is small: the host looks at a result in every step. */
#include <math.h>
#include <stdio.h>

#define N 48

static float u[N][N], v[N][N];

int main(void) {
  float change = 1;
  int steps = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) u[i][j] = v[i][j] = i == 0 ? 1.0f : 0.0f;
#pragma omp target data map(tofrom : u) map(alloc : v)
  while (change > 1e-4f) {
    change = 0;
#pragma omp target teams distribute parallel for collapse(2) reduction(max : change)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++) {
        v[i][j] = 0.25f * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
        change = fmaxf(change, fabsf(v[i][j] - u[i][j]));
      }
#pragma omp target teams distribute parallel for collapse(2)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++) u[i][j] = v[i][j];
    steps++;
  }
  printf("%d steps, last change %.9g, middle %.9g\n", steps, change, u[N / 2][N / 2]);
  return 0;
}
