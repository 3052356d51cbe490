/* A region that calls what only the host has, between two that run on tiles: whole arrays go back and forth,
 * the last element included. */
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int main(void) {
  int a[37], b[1] = {5};
  for (int i = 0; i < 37; i++) a[i] = (i * 11) % 37;
#pragma omp target data map(tofrom : a, b)
  {
#pragma omp target teams distribute parallel for
    for (int i = 0; i < 37; i++) a[i] = 3 * a[i] + 1;
#pragma omp target map(tofrom : a, b)
    {
      qsort(a, 37, sizeof(int), by_size);
      b[0] += a[36];
    }
#pragma omp target teams distribute parallel for
    for (int i = 0; i < 37; i++) a[i] = 2 * a[i] + b[0];
  }
  long sum = 0;
  for (int i = 0; i < 37; i++) sum += a[i] * (long)(i + 1);
  printf("%d %d %d %ld\n", a[0], a[36], b[0], sum);
  return 0;
}
