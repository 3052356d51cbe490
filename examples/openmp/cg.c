/* Conjugate gradients on a five-point matrix in compressed rows: sums that the host reads, scalars that
 * change. */
#include <math.h>
#include <stdio.h>

#define G 24
#define N (G * G)

static int row[N + 1], column[5 * N];
static float value[5 * N], x[N], r[N], p[N], q[N];

static void matrix(void) {
  int k = 0;
  for (int i = 0; i < N; i++) {
    const int neighbours[5] = {i >= G ? i - G : -1, i % G ? i - 1 : -1, i, (i + 1) % G ? i + 1 : -1,
                               i + G < N ? i + G : -1};
    row[i] = k;
    for (int m = 0; m < 5; m++)
      if (neighbours[m] >= 0) column[k] = neighbours[m], value[k++] = neighbours[m] == i ? 4.0f : -1.0f;
  }
  row[N] = k;
}

int main(void) {
  int steps = 0;
  float rr = 0;
  matrix();
  for (int i = 0; i < N; i++) x[i] = 0, r[i] = p[i] = 1, rr += 1;
#pragma omp target data map(to : row, column, value, r, p) map(alloc : q) map(tofrom : x)
  while (rr > 1e-8f && steps < 200) {
    float pq = 0, next = 0;
#pragma omp target teams distribute parallel for
    for (int i = 0; i < N; i++) {
      float sum = 0;
      for (int k = row[i]; k < row[i + 1]; k++) sum += value[k] * p[column[k]];
      q[i] = sum;
    }
#pragma omp target teams distribute parallel for reduction(+ : pq)
    for (int i = 0; i < N; i++) pq += p[i] * q[i];
    const float alpha = rr / pq;
#pragma omp target teams distribute parallel for reduction(+ : next)
    for (int i = 0; i < N; i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
      next += r[i] * r[i];
    }
    const float beta = next / rr;
#pragma omp target teams distribute parallel for
    for (int i = 0; i < N; i++) p[i] = r[i] + beta * p[i];
    rr = next;
    steps++;
  }
  float worst = 0;
  for (int i = 0; i < N; i++) {
    float sum = 0;
    for (int k = row[i]; k < row[i + 1]; k++) sum += value[k] * x[column[k]];
    worst = fmaxf(worst, fabsf(sum - 1));
  }
  printf("%s, residual %s\n", steps < 200 ? "converged" : "did not converge",
         worst < 1e-3f ? "small" : "large");
  return steps >= 200 || worst >= 1e-3f;
}
