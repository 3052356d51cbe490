/* Heat flow on a plate: the five-point stencil, its time loop around a target region, and the sum of the
 * plate. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 258, steps = argc > 2 ? atoi(argv[2]) : 100;
  const float c = 0.2f;
  float *u = malloc(sizeof(float) * n * n), *v = malloc(sizeof(float) * n * n), sum = 0;
  for (int k = 0; k < n * n; k++) u[k] = v[k] = k < n ? 100.0f : 0.0f; /* a hot border */

#pragma omp target data map(tofrom : u [0:n * n], v [0:n * n])
  {
    for (int step = 0; step < steps; step++) {
#pragma omp target teams distribute parallel for collapse(2)
      for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
          v[i * n + j] = u[i * n + j] + c * (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] +
                                             u[i * n + j + 1] - 4 * u[i * n + j]);
      float* t = u;
      u = v;
      v = t;
    }
#pragma omp target teams distribute parallel for collapse(2) reduction(+ : sum)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) sum += u[i * n + j];
  }

  double check = 0;
  for (int k = 0; k < n * n; k++) check += u[k] * (double)(1 + k % 7);
  printf("sum about %.4g, check %.9g, middle %.9g\n", sum, check, u[n / 2 * n + n / 2]);
  free(u);
  free(v);
  return 0;
}
