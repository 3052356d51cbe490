/* Products of sparse matrices in compressed rows with a vector: a band, columns anywhere, one full row. Each
 * tile receives the elements of x that its rows name, and rows are dealt by their work. */
#include <stdio.h>
#include <stdlib.h>

static unsigned next_number = 1;
static int below(int n) {
  next_number = next_number * 1664525u + 1013904223u;
  return (int)((next_number >> 8) % (unsigned)n);
}

static int* row;
static int* column;
static float* value;

/* 0: three to the left and right; 1: up to nine anywhere; 2: two anywhere, and the middle row full. */
static void fill(int kind, int n) {
  int k = 0;
  for (int i = 0; i < n; i++) {
    row[i] = k;
    const int length = kind == 0 ? 7 : kind == 1 ? below(10) : i == n / 2 ? n : 2;
    for (int m = 0; m < length; m++) {
      const int j = kind == 0 ? i + m - 3 : length == n ? m : below(n);
      if (j < 0 || j >= n) continue;
      column[k] = j;
      value[k++] = (float)(below(9) - 4);
    }
  }
  row[n] = k;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 600, most = 10 * n;
  row = malloc((n + 1) * sizeof *row);
  column = malloc(most * sizeof *column);
  value = malloc(most * sizeof *value);
  float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
  for (int i = 0; i < n; i++) x[i] = (float)(i % 11 - 5);
  for (int kind = 0; kind < 3; kind++) {
    fill(kind, n);
    const int entries = row[n];
#pragma omp target teams distribute parallel for map(to                                                      \
                                                     : row [0:n + 1], column [0:entries], value [0:entries], \
                                                       x [0:n]) map(from                                     \
                                                                    : y [0:n])
    for (int i = 0; i < n; i++) {
      float sum = 0;
      for (int k = row[i]; k < row[i + 1]; k++) sum += value[k] * x[column[k]];
      y[i] = sum;
    }
    double check = 0;
    for (int i = 0; i < n; i++) check += y[i] * (i % 13 + 1);
    printf("%s: check %.0f\n", kind == 0 ? "band" : kind == 1 ? "anywhere" : "one full row", check);
  }
  free(row), free(column), free(value), free(x), free(y);
  return 0;
}
