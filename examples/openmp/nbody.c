/* Forces of all pairs: every tile needs all positions. */
#include <math.h>
#include <stdio.h>

#define N 300

static float x[N], y[N], z[N], ax[N], ay[N], az[N];

int main(void) {
  for (int i = 0; i < N; i++)
    x[i] = (float)(i * 37 % 101), y[i] = (float)(i * 53 % 103), z[i] = (float)(i * 71 % 107);
#pragma omp target teams distribute parallel for map(to : x, y, z) map(from : ax, ay, az)
  for (int i = 0; i < N; i++) {
    float sx = 0, sy = 0, sz = 0;
    for (int j = 0; j < N; j++) {
      const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
      const float square = dx * dx + dy * dy + dz * dz + 0.01f, inverse = 1 / (square * sqrtf(square));
      sx += dx * inverse;
      sy += dy * inverse;
      sz += dz * inverse;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
  }
  double check = 0;
  for (int i = 0; i < N; i++) check += (ax[i] + 2.0 * ay[i] + 3.0 * az[i]) * (1 + i % 3);
  printf("check %.12g\n", check);
  return 0;
}
