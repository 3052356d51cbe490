/* Histograms by atomic updates: few bins, of which every worker counts its own copy, and many, for which one
 * tile counts alone. */
#include <stdio.h>
#include <stdlib.h>

enum { few = 256, many = 65536 };

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 20000;
  unsigned* sample = malloc(sizeof(unsigned) * n);
  int *low = calloc(few, sizeof(int)), *high = calloc(many, sizeof(int));
  unsigned state = 1;
  for (int k = 0; k < n; k++) sample[k] = state = state * 1664525u + 1013904223u;

#pragma omp target teams distribute parallel for map(to : sample [0:n]) map(tofrom : low [0:few])
  for (int k = 0; k < n; k++) {
#pragma omp atomic update
    low[sample[k] >> 24] += 1;
  }
#pragma omp target map(to : sample [0:n]) map(tofrom : high [0:many])
  for (int k = 0; k < n; k++) high[sample[k] >> 16]++;

  int total = 0, most = 0, all = 0;
  for (int k = 0; k < few; k++) total += low[k], most = low[k] > most ? low[k] : most;
  for (int k = 0; k < many; k++) all += high[k];
  long check = 0;
  for (int k = 0; k < few; k++) check += (long)low[k] * k;
  for (int k = 0; k < many; k++) check = check * 31 % 1000003 + high[k];
  printf("%d samples in %d bins, the fullest has %d; %d in %d bins; check %ld\n", total, few, most, all, many,
         check);
  free(sample);
  free(low);
  free(high);
  return 0;
}
