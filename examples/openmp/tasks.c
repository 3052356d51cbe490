/* The two programs of ANL-23/15, "A pathway to OpenMP in the GraphCore architecture", as programs that
 * compile: sums over a team's part of a vector, and tasks whose slices say what depends on what. */
#include <stdio.h>

enum { n = 4, length = 4 };

int main(void) {
  float v1[n * length], v2[n] = {0}, v3[n] = {0};
  for (int k = 0; k < n * length; k++) v1[k] = 0.5f * k + 1;

    /* One: each iteration has a slice of its own. */
#pragma omp target teams distribute parallel for map(to : v1) map(from : v2)
  for (int t = 0; t < n; t++) {
    float sum = 0;
    for (int k = 0; k < length; k++) sum += v1[t * length + k];
    v2[t] = sum;
  }
  for (int t = 0; t < n; t++) printf("slice %d: sum %g\n", t, v2[t]);

    /* Two: tasks that write v2 by slices, and those that read them. */
#pragma omp target map(to : v1) map(tofrom : v2, v3)
  {
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int t = 0; t < n; t++) {
#pragma omp task depend(in : v1 [t * length:length]) depend(out : v2[t])
      {
        v2[t] = 0;
        for (int k = 0; k < length; k++) v2[t] += v1[t * length + k];
      }
#pragma omp task depend(in : v1 [t * length:length]) depend(out : v3[t])
      {
        v3[t] = 1;
        for (int k = 0; k < length; k++) v3[t] *= v1[t * length + k];
      }
#pragma omp task depend(in : v2[t]) depend(inout : v3[t])
      v3[t] -= v2[t];
    }
  }
  for (int t = 0; t < n; t++) printf("slice %d: product less sum %g\n", t, v3[t]);
  return 0;
}
