/* Data that are more than arrays: types of a function's own, sections with strides, variables of the device
 * that functions name, pointers that are set in a region or only compared. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#pragma omp declare target
int scale = 3, calls = 0, table[16];
static int scaled(int value);
void fill_table(int from) {
#pragma omp parallel for
  for (int i = 0; i < 16; i++) table[i] = scaled(from + i);
  calls++;
}
static int scaled(int value) { return value * scale; }
#pragma omp end declare target

static int structs(void) {
  struct pair {
    int first;
    float second[4];
  };
  typedef struct {
    struct pair inner;
    short tail;
  } wrapped;
  struct pair one = {1, {1, 2, 3, 4}};
  wrapped two = {{5, {0}}, 7};
  struct {
    int x, y;
  } plain = {2, 3};
  enum { shift = 4 };
#pragma omp target map(tofrom : one, plain) firstprivate(two)
  {
    struct pair copy = one;
    wrapped* p = &two;
    one.first = copy.first + p->tail + (int)sizeof(wrapped) + shift;
    one.second[3] += two.inner.first;
    plain.y = plain.x << shift;
    two.tail = 0;
  }
  return one.first * 1000 + (int)one.second[3] * 100 + plain.y + two.tail;
}

static int same_name_elsewhere(void) {
  struct pair {
    long only;
  } one = {40};
#pragma omp target map(tofrom : one)
  one.only += sizeof(struct pair);
  return (int)one.only;
}

/* Memory of the device alone, and addresses of what is mapped. */
static void addresses(void) {
  const int device = omp_get_default_device(), here = omp_get_initial_device();
  float values[64], back[64] = {0};
  for (int i = 0; i < 64; i++) values[i] = i;
  float* far = omp_target_alloc(sizeof(values), device);
  omp_target_memcpy(far, values, sizeof(values), 0, 0, device, here);
#pragma omp target teams distribute parallel for is_device_ptr(far)
  for (int i = 0; i < 64; i++) far[i] = far[i] * 2 + 1;
  omp_target_memcpy(back, far, 32 * sizeof(float), 0, 16 * sizeof(float), here, device);
#pragma omp target data map(tofrom : values) use_device_ptr(far)
  {
    omp_target_memcpy(values, far, sizeof(float), 5 * sizeof(float), 63 * sizeof(float), device, device);
    printf("%g %g %g %d %d\n", back[0], back[31], values[5], omp_target_is_present(values, device),
           omp_target_is_present(back, device));
  }
  printf("%g %g\n", values[5], values[6]);
  omp_target_free(far, device);
}

int main(void) {
  addresses();
  printf("%d %d\n", structs(), same_name_elsewhere());

  int a[40], b[4][10];
  for (int i = 0; i < 40; i++) a[i] = i, b[i / 10][i % 10] = 0;
#pragma omp target data map(to : a, b)
  {
#pragma omp target
    for (int i = 0; i < 40; i++) a[i] += 100, b[i / 10][i % 10] = i;
#pragma omp target update from(a [1:13:3])
#pragma omp target update from(b [1:2] [2:5])
    for (int i = 0; i < 40; i++) a[i] += 1000;
#pragma omp target update to(a [0:20:2])
#pragma omp target
    a[0] += a[2] + a[3];
#pragma omp target update from(a [0:1])
  }
  long sum = 0;
  for (int i = 0; i < 40; i++) sum += (a[i] + b[i / 10][i % 10]) * (long)(i + 1);
  printf("%d %ld\n", a[0], sum);

#pragma omp target
  fill_table(5);
  printf("%d %d\n", calls, table[3]);
#pragma omp target update from(table, calls)
  printf("%d %d\n", calls, table[3]);
  fill_table(1);
  printf("%d %d\n", calls, table[3]);

  int *inside = NULL, *nothing = NULL, *host = a, found = 0;
#pragma omp target map(tofrom : a, found)
  {
    inside = &a[7];
    inside[1] = 77;
    if (nothing == NULL) found += 1;
    if (host) found += 2;
    host = NULL;
  }
  printf("%d %d %d %d\n", inside == NULL, a[8], found, host == a);
  return 0;
}
