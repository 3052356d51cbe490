/* Stencils of nine points on a plate and of seven and 27 in a box. */
#include <stdio.h>

#define N 40
#define M 14

static float a[N][N], b[N][N], p[M][M][M], q[M][M][M];

int main(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[i][j] = b[i][j] = (float)((i * 7 + j * 3) % 10);
  for (int k = 0; k < M * M * M; k++) (&p[0][0][0])[k] = (&q[0][0][0])[k] = (float)(k * 11 % 17);
#pragma omp target data map(to : a, p) map(tofrom : b, q)
  for (int step = 0; step < 6; step++) {
#pragma omp target teams distribute parallel for collapse(2)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++) {
        float sum = 0;
        for (int di = -1; di <= 1; di++)
          for (int dj = -1; dj <= 1; dj++) sum += a[i + di][j + dj];
        b[i][j] = sum / 9;
      }
#pragma omp target teams distribute parallel for collapse(2)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++) a[i][j] = b[i][j];
#pragma omp target teams distribute parallel for collapse(3)
    for (int i = 1; i < M - 1; i++)
      for (int j = 1; j < M - 1; j++)
        for (int k = 1; k < M - 1; k++)
          q[i][j][k] = 0.5f * p[i][j][k] + (p[i - 1][j][k] + p[i + 1][j][k] + p[i][j - 1][k] +
                                            p[i][j + 1][k] + p[i][j][k - 1] + p[i][j][k + 1]) /
                                               12;
#pragma omp target teams distribute parallel for collapse(3)
    for (int i = 1; i < M - 1; i++)
      for (int j = 1; j < M - 1; j++)
        for (int k = 1; k < M - 1; k++) {
          float sum = 0;
          for (int di = -1; di <= 1; di++)
            for (int dj = -1; dj <= 1; dj++)
              for (int dk = -1; dk <= 1; dk++) sum += q[i + di][j + dj][k + dk];
          p[i][j][k] = sum / 27;
        }
  }
  double check = 0;
  for (int k = 0; k < N * N; k++) check += (&b[0][0])[k] * (1 + k % 7);
  for (int k = 0; k < M * M * M; k++) check += (&q[0][0][0])[k] * (1 + k % 5);
  printf("check %.12g\n", check);
  return 0;
}
