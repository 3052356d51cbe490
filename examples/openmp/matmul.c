/* A product of matrices of ragged sizes: arrays of variable length, a scalar as accumulator. */
#include <stdio.h>
#include <stdlib.h>

static void multiply(int m, int n, int k, float (*a)[k], float (*b)[n], float (*c)[n]) {
#pragma omp target teams distribute parallel for collapse(2) map(to : a [0:m], b [0:k]) map(from : c [0:m])
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int l = 0; l < k; l++) sum += a[i][l] * b[l][j];
      c[i][j] = sum;
    }
}

int main(int argc, char** argv) {
  const int m = argc > 1 ? atoi(argv[1]) : 67, n = argc > 2 ? atoi(argv[2]) : 41,
            k = argc > 3 ? atoi(argv[3]) : 53;
  float *a = malloc(sizeof(float) * m * k), *b = malloc(sizeof(float) * k * n),
        *c = malloc(sizeof(float) * m * n);
  for (int i = 0; i < m * k; i++) a[i] = (float)(i * 7 % 11) / 8 - 0.5f;
  for (int i = 0; i < k * n; i++) b[i] = (float)(i * 5 % 13) / 16 - 0.25f;
  multiply(m, n, k, (float(*)[k])a, (float(*)[n])b, (float(*)[n])c);
  double check = 0;
  for (int i = 0; i < m * n; i++) check += c[i] * (double)(1 + i % 5);
  printf("check %.12g corner %.9g\n", check, c[m * n - 1]);
  free(a);
  free(b);
  free(c);
  return 0;
}
