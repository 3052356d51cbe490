/* Constructs that are the whole of a target region, without braces around them. */
#include <stdio.h>

static int task(int x) {
#pragma omp target map(tofrom : x)
#pragma omp task shared(x)
  { x += 5; }
  return x;
}

static int task_of_a_line(int x) {
#pragma omp target map(tofrom : x)
#pragma omp task shared(x)
  x *= 3;
  return x;
}

static int task_of_a_loop(int n) {
  int sum = 0;
#pragma omp target map(tofrom : sum)
#pragma omp task shared(sum) firstprivate(n)
  for (int i = 0; i < n; i++) sum += i;
  return sum;
}

static int critical(int x) {
#pragma omp target map(tofrom : x)
#pragma omp critical
  { x -= 2; }
  return x;
}

static int group(int x) {
#pragma omp target map(tofrom : x)
#pragma omp taskgroup
  {
#pragma omp task shared(x)
    x += 7;
  }
  return x;
}

static int atomic(int x) {
#pragma omp target map(tofrom : x)
#pragma omp atomic
  x += 11;
  return x;
}

static int single(int x) {
#pragma omp target map(tofrom : x)
#pragma omp single
  { x = x * x; }
  return x;
}

int main(void) {
  printf("%d %d %d %d %d %d %d\n", task(1), task_of_a_line(2), task_of_a_loop(10), critical(4), group(5),
         atomic(6), single(7));
  return 0;
}
