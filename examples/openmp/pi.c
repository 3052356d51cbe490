/* Pi by points drawn from counters: the hits are an integer, the same on every machine. */
#include <stdio.h>

static unsigned mix(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

int main(void) {
  const int n = 100000;
  int hits = 0;
#pragma omp target teams distribute parallel for reduction(+ : hits)
  for (int i = 0; i < n; i++) {
    const float x = (float)(mix(2u * i) >> 8) / 16777216.0f, y = (float)(mix(2u * i + 1u) >> 8) / 16777216.0f;
    if (x * x + y * y < 1) hits++;
  }
  printf("%d hits, pi about %.4f\n", hits, 4.0 * hits / n);
  return 0;
}
