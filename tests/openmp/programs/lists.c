/* What clauses make of single values: the last iteration's, and what atomic updates add up. */
#include <stdio.h>

#define N 1000

int main(void) {
  int a[N], last = -1, where = -1, count = 3, bits = 0, up[N];
  float half = 0, product = 1;
  double wide = 0;
  for (int i = 0; i < N; i++) a[i] = (i * 7919) % 1013;

#pragma omp target teams distribute parallel for lastprivate(last, half, wide) map(to : a) map(from : up)
  for (int i = 0; i < N; i++) {
    last = a[i];
    half = 0.5f * a[i];
    wide = a[i] / 3.0;
    up[i] = last + 1;
  }
  /* A counter keeps the value that ends the loop. */
#pragma omp target parallel for simd collapse(2) lastprivate(where) map(to : a)
  for (int i = 0; i < 20; i++)
    for (int j = 0; j < 30; j += 3) where = i * 100 + j + a[j];
  int counter;
#pragma omp target teams loop lastprivate(counter) map(tofrom : up)
  for (counter = 5; counter < 95; counter += 2) up[counter] += 1;

  int odd[8] = {0}, never = 5;
#pragma omp target teams distribute parallel for map(to : a) map(tofrom : odd, count, bits, product)
  for (int i = 0; i < N; i++) {
#pragma omp atomic
    odd[a[i] & 7]++;
#pragma omp atomic update
    count += a[i];
#pragma omp atomic
    bits = bits | (a[i] << 3);
    if (i % 200 == 0) {
#pragma omp atomic
      product *= 2.0f;
    }
  }
  /* Results so long that they are combined in slices, by an array of its own and by a pointer into one. */
  static int many[3000], *tail = many + 1000;
#pragma omp target data map(tofrom : many)
  {
#pragma omp target teams distribute parallel for map(to : a)
    for (int i = 0; i < N; i++) {
#pragma omp atomic
      many[a[i] * 3 % 3000] += i;
    }
#pragma omp target teams distribute parallel for map(to : a)
    for (int i = 0; i < N; i++) {
#pragma omp atomic
      tail[a[i]] -= 2;
    }
  }
  /* An empty loop leaves what was there. */
#pragma omp target teams distribute parallel for lastprivate(never) reduction(+ : count)
  for (int i = 10; i < 10; i++) never = i, count += 1;

  long sum = 0;
  for (int i = 0; i < N; i++) sum += up[i] * (long)(i % 11);
  printf("%d %g %.17g %d %d %ld %d %d %g %d\n", last, half, wide, where, counter, sum, count, bits, product,
         never);
  for (int k = 0; k < 3000; k++) sum += many[k] * (long)(k % 13);
  printf("%ld: ", sum);
  for (int k = 0; k < 8; k++) printf("%d ", odd[k]);
  printf("\n");
  return 0;
}
