/* Waves of excitation in heart tissue: Aliev and Panfilov's model (Chaos, Solitons and Fractals 7, 1996), the
 * potential e by a five-point stencil, its recovery r cell by cell; mirrored borders. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 66, steps = argc > 2 ? atoi(argv[2]) : 60;
  const float a = 0.1f, k = 8, m1 = 0.07f, m2 = 0.3f, epsilon = 0.002f, b = 0.1f, dt = 0.01f, alpha = 0.08f;
  float(*e)[n] = malloc(sizeof(float) * n * n), (*next)[n] = malloc(sizeof(float) * n * n),
  (*r)[n] = malloc(sizeof(float) * n * n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      e[i][j] = next[i][j] = j >= n / 2 ? 1.0f : 0.0f;
      r[i][j] = i >= n / 2 ? 1.0f : 0.0f;
    }

#pragma omp target data map(tofrom : e [0:n], next [0:n], r [0:n])
  for (int step = 0; step < steps; step++) {
#pragma omp target teams distribute parallel for
    for (int i = 1; i < n - 1; i++) {
      e[i][0] = e[i][2];
      e[i][n - 1] = e[i][n - 3];
    }
#pragma omp target teams distribute parallel for
    for (int j = 1; j < n - 1; j++) {
      e[0][j] = e[2][j];
      e[n - 1][j] = e[n - 3][j];
    }
#pragma omp target teams distribute parallel for collapse(2)
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++) {
        float here = e[i][j] + alpha * (e[i][j + 1] + e[i][j - 1] - 4 * e[i][j] + e[i + 1][j] + e[i - 1][j]);
        float rest = r[i][j];
        here -= dt * (k * here * (here - a) * (here - 1) + here * rest);
        rest += dt * (epsilon + m1 * rest / (here + m2)) * (-rest - k * here * (here - b - 1));
        next[i][j] = here;
        r[i][j] = rest;
      }
    float(*t)[n] = e;
    e = next;
    next = t;
  }

  double sum = 0, recovery = 0, largest = 0;
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++) {
      const double x = e[i][j];
      sum += x * (1 + (i + 3 * j) % 7);
      recovery += r[i][j];
      largest = x > largest ? x : largest;
    }
  printf("%d steps: potential %.9g, at most %.9g; recovery %.9g\n", steps, sum, largest, recovery);
  free(e);
  free(next);
  free(r);
  return 0;
}
